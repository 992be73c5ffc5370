"""Write a run as ONNX graphs, and compare each with the run before the folder appears.

bert          model.onnx
gpt2          model.onnx, with its past as an input and an output
transformer   encoder.onnx, decoder.onnx
"""

import shutil
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from regard.convert.onnx_graphs import (
    BertGraph,
    Gpt2Graph,
    TransformerDecoderGraph,
    TransformerEncoderGraph,
)
from regard.engines.ctranslate2_model import first_block, supported_model
from regard.errors import InputError
from regard.files import draft_path, explain_write_errors
from regard.layers.transformer_block import TransformerStack
from regard.models.bert import Bert
from regard.models.gpt2 import Gpt2
from regard.models.transformer import Transformer
from regard.run import Run
from regard.tasks.exportable import ExportableHead

MAX_DIFFERENCE = 1e-4
IDS, SOURCE = {0: "batch", 1: "tokens"}, {0: "batch", 1: "source"}


class Lengths(NamedTuple):
    """The lengths of the free axes in an example; torch takes equal ones for the same axis."""

    rows: int
    tokens: int
    past: int
    source: int


TRACED_LENGTHS, CHECKED_LENGTHS = Lengths(3, 5, 7, 11), Lengths(2, 1, 4, 6)


class Graph(NamedTuple):
    """A module, an example of each input, and the names of their axes and of the outputs."""

    module: nn.Module
    inputs: Mapping[str, tuple[Tensor, Mapping[int, str]]]
    outputs: Sequence[str]


def export_onnx(run: Run, folder: Path, location: str) -> None:
    """Write the model of a run to a new folder, as graphs that an ONNX runtime reads."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: exists already; name a new or an empty folder")
    try:
        # A translator is its model; other tasks say which part of theirs can be written.
        is_translator = isinstance(run.model, Transformer)
        model = supported_model(run.model if is_translator else run.task.exportable_model())
        head = run.task.exportable_head() if isinstance(model, Bert) else None
    except InputError as error:
        raise InputError(f"{location}: cannot be exported to ONNX; {error}") from None
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = draft_path(folder)
    try:
        with explain_write_errors(folder):
            draft.mkdir()
            write_graphs(draft, model.eval(), head)
            for name, vocabulary in run.vocabularies.items():
                vocabulary.save(draft / f"{name}.json")
            if folder.exists():
                folder.rmdir()
            draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def write_graphs(
    folder: Path, model: Transformer | Gpt2 | Bert, head: ExportableHead | None = None
) -> None:
    """Write each graph of a model, and compare it with the model for inputs of other lengths."""
    probes = build_graphs(model, CHECKED_LENGTHS, head)
    for name, graph in build_graphs(model, TRACED_LENGTHS, head).items():
        write_graph(folder / f"{name}.onnx", graph)
        check_graph(folder / f"{name}.onnx", probes[name])


def build_graphs(
    model: Transformer | Gpt2 | Bert, lengths: Lengths, head: ExportableHead | None = None
) -> dict[str, Graph]:
    """Return the graphs of a model with example inputs, by the names of their files."""
    rows, tokens, past_slots, source = lengths
    ids = torch.arange(rows * tokens).view(rows, tokens) % word_count(model)
    mask = torch.ones(rows, source, dtype=torch.long)
    mask[0, source // 2 :] = 0
    encoded = {"ids": (torch.arange(source).expand(rows, -1) % word_count(model), SOURCE)}
    encoded["mask"] = (mask, SOURCE)
    match model:
        case Bert():
            if model.segments is not None:
                encoded["segments"] = (torch.zeros_like(mask), SOURCE)
            names = ["states", *(["pooled"] if model.pooler is not None else [])]
            names += ["logits"] if head is not None else []
            return {"model": Graph(BertGraph(model, head), encoded, names)}
        case Gpt2():
            inputs = {"ids": (ids, IDS), **cache_inputs(model.decoder, "past", rows, past_slots)}
            outputs = ["logits", "keys", "values"]
            return {"model": Graph(Gpt2Graph(model), inputs, outputs)}
        case Transformer():
            memory = cache_inputs(model.decoder, "memory", rows, source)
            past = cache_inputs(model.decoder, "past", rows, past_slots)
            inputs = {"ids": (ids, IDS), "mask": (mask, SOURCE), **memory, **past}
            encoder = Graph(TransformerEncoderGraph(model), encoded, list(memory))
            outputs = ["logits", "keys", "values"]
            decoder = Graph(TransformerDecoderGraph(model), inputs, outputs)
            return {"encoder": encoder, "decoder": decoder}


def word_count(model: Transformer | Gpt2 | Bert) -> int:
    """Return the number of ids that a model reads."""
    table = model.source_words if isinstance(model, Transformer) else model.words
    return len(table.weight)


def cache_inputs(
    stack: TransformerStack, name: str, rows: int, slots: int
) -> dict[str, tuple[Tensor, Mapping[int, str]]]:
    """Return keys and values; they differ, because torch takes one tensor for one input."""
    axes = {1: "batch", 3: "source" if name == "memory" else "past"}
    return {
        f"{name}_{part}": (random_cache(stack, rows=rows, slots=slots), axes)
        for part in ("keys", "values")
    }


def random_cache(stack: TransformerStack, *, rows: int, slots: int) -> Tensor:
    """Return keys or values of all layers: [layers, rows, heads, slots, width of a head]."""
    block, layers = first_block(stack), len(stack.layers)
    heads = block.self_attention.heads
    return torch.randn(layers, rows, heads, slots, block.dim // heads)


def write_graph(path: Path, graph: Graph) -> None:
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # torch warns of its own code
        torch.onnx.export(
            graph.module.eval(),
            tuple(tensor for tensor, _ in graph.inputs.values()),
            path,
            dynamo=True,
            input_names=list(graph.inputs),
            output_names=list(graph.outputs),
            dynamic_shapes=tuple(dynamic_axes(axes) for _, axes in graph.inputs.values()),
            external_data=False,
            verbose=False,
        )


def dynamic_axes(axes: Mapping[int, str]) -> dict[int, object]:
    return {axis: torch.export.Dim(name) for axis, name in axes.items()}


@torch.no_grad()
def check_graph(path: Path, graph: Graph) -> None:
    """Compare the outputs of onnxruntime with those of the module."""
    import onnxruntime

    expected: Sequence[Tensor] = graph.module.eval()(*(x for x, _ in graph.inputs.values()))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    inputs = {name: tensor.numpy() for name, (tensor, _) in graph.inputs.items()}
    for name, output, ours in zip(graph.outputs, session.run(None, inputs), expected, strict=True):
        difference = np.abs(np.asarray(output) - ours.numpy()).max()
        if not difference <= MAX_DIFFERENCE:
            raise InputError(
                f"{path.name}: onnxruntime computes another {name} (it differs by "
                f"{difference:.2g}); please report this as a bug"
            )
