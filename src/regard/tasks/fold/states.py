"""States of residues: helix, strand or coil for each residue of a protein.

    loss = - sum over residues of log p(state | all residues of the window)

The model reads a protein longer than `max_tokens` in windows that overlap by half. In training,
every residue of a window counts. In evaluation, each residue counts once, in the window whose
center is nearest.
b: windows   r: residues   h: heads
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, NamedTuple, cast

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.observe import named_attentions, observe
from regard.batching.batches import iterate_by_length
from regard.batching.example import padded
from regard.data.corpus import Record
from regard.data.formats.proteins import parse_sequences
from regard.files import JsonObject
from regard.metrics.fold import UNKNOWN_STATE, majority_accuracy, residue_accuracy, segment_overlap
from regard.tasks.base import InputField, Metrics, Prediction, ProgressCallback
from regard.tasks.encoding import EncoderTask
from regard.tasks.fold import view
from regard.tasks.fold.model import MAX_PAIRS_PER_BATCH, ResidueClassifier, residue_ids
from regard.tasks.generation import TOKENS_PER_BATCH
from regard.tasks.loss import Loss
from regard.text.labels import Labels
from regard.view.attention_map import AttentionMap
from regard.view.terminal import Surface

IGNORE_INDEX = -100  # a state that is not in the loss
HIDDEN_ATTENTIONS = re.compile(r"\b(edges|columns|pooling)\b")  # not among residues of a sequence

Column = tuple[int, ...]
"""The residue of each sequence at one position, as ids."""


class ResidueWindow(NamedTuple):
    """The residues that the model reads, and those of them whose states it predicts."""

    context: range
    predicted: range


@dataclass(frozen=True)
class StateExample:
    """A window of a protein, column by column, and the state of each of its residues."""

    index: int
    columns: Sequence[Column]
    states: Sequence[int]

    @property
    def lengths(self) -> tuple[int, int]:
        return len(self.columns), len(self.states)


@dataclass(frozen=True)
class StateBatch:
    """The inputs of an encoder, and the states of the residues of each window."""

    indices: Int[Tensor, " b"]
    inputs: dict[str, Tensor]
    states: Int[Tensor, "b r"]


@dataclass(frozen=True)
class StatePrediction(Prediction):
    """A sequence, the likeliest state of each residue, and the probabilities of all states."""

    sequence: str
    states: str
    probabilities: Sequence[Mapping[str, float]]

    def as_dict(self) -> JsonObject:
        return {
            "sequence": self.sequence,
            "states": self.states,
            "probabilities": [dict(row) for row in self.probabilities],
        }

    @property
    def annotation(self) -> tuple[str, str]:
        return self.sequence, self.states


class ResidueStateTask(EncoderTask[StateExample, StateBatch, ResidueClassifier]):
    """A classifier of residues and the names of their states.

    With `use_alignment` the encoder reads aligned sequences, else the first sequence alone.
    """

    name: ClassVar = "fold"
    input_fields = (InputField("text", "Residues", "lines", example="MKTAYIAKQR"),)
    unit: ClassVar = "residues"
    example_unit: ClassVar = "proteins"

    def __init__(
        self,
        model: ResidueClassifier,
        states: Labels,
        *,
        use_alignment: bool,
        max_tokens: int = 128,
        label_smoothing: float = 0.0,
    ):
        super().__init__(model, max_tokens=max_tokens, label_smoothing=label_smoothing)
        self.states, self.use_alignment = states, use_alignment

    # --- training

    def examples(
        self, records: Iterable[Record], *, all_residues: bool = True
    ) -> Iterator[StateExample]:
        """Yield windows; the loss counts all residues, or only those that a window predicts."""
        state_ids = {**self.states.indices, UNKNOWN_STATE: IGNORE_INDEX}
        for index, record in enumerate(records):
            columns = self.columns(record["text"])
            states = [state_ids.get(state, IGNORE_INDEX) for state in record["states"]]
            for window in residue_windows(len(columns), self.max_tokens):
                in_loss = window.context if all_residues else window.predicted
                window_states = [
                    states[position] if position in in_loss else IGNORE_INDEX
                    for position in window.context
                ]
                window_columns = columns[window.context.start : window.context.stop]
                yield StateExample(index, window_columns, window_states)

    def evaluation_examples(self, records: Iterable[Record]) -> Iterator[StateExample]:
        """Return windows in which each residue counts once."""
        return self.examples(records, all_residues=False)

    def columns(self, text: str) -> list[Column]:
        """Return the residues of all sequences at each position, as ids."""
        rows = text.split() if self.use_alignment else text.split()[:1]
        return list(zip(*map(residue_ids, rows), strict=True))

    def collate(self, examples: Sequence[StateExample]) -> StateBatch:
        states, _ = padded([example.states for example in examples])
        inputs = self.tensors([example.columns for example in examples])
        return StateBatch(
            torch.tensor([example.index for example in examples]),
            inputs,
            states.masked_fill(~inputs["valid"], IGNORE_INDEX),
        )

    def tensors(self, windows: Sequence[Sequence[Column]]) -> dict[str, Tensor]:
        """Return the inputs of the encoder, with a row for each aligned sequence if it has any."""
        if not self.use_alignment:
            ids, valid = padded([[column[0] for column in window] for window in windows])
            return {"ids": ids, "valid": valid}
        lengths = torch.tensor([len(window) for window in windows])
        sequence_counts = torch.tensor([len(window[0]) for window in windows])
        size = (len(windows), int(sequence_counts.max()), int(lengths.max()))
        ids = torch.zeros(size, dtype=torch.int64)
        for row, columns in enumerate(windows):
            ids[row, : sequence_counts[row], : lengths[row]] = torch.tensor(columns).T
        return {
            "ids": ids,
            "valid": torch.arange(ids.shape[2]) < lengths[:, None],
            "sequence_valid": torch.arange(ids.shape[1]) < sequence_counts[:, None],
        }

    def cross_entropy(self, batch: StateBatch, smoothing: float = 0.0) -> Loss:
        """Return the loss of the states that are known."""
        logits, in_loss = self.model(batch.inputs), batch.states != IGNORE_INDEX
        total = F.cross_entropy(
            logits[in_loss], batch.states[in_loss], reduction="sum", label_smoothing=smoothing
        )
        return Loss(total, int(in_loss.sum()))

    def iterate_by_length(self, examples: Sequence[StateExample]) -> Iterator[StateBatch]:
        """Yield every example once; with alignments, the number of pairs in a batch is limited."""
        if not examples:
            return iter(())
        max_length = max(len(example.columns) for example in examples)
        examples_per_batch = (
            max(1, MAX_PAIRS_PER_BATCH // max_length**2) if self.use_alignment else None
        )
        return iterate_by_length(
            examples,
            tokens_per_batch=max(TOKENS_PER_BATCH, max_length + 1),
            examples_per_batch=examples_per_batch,
            collate=self.collate,
            device=self.device,
        )

    # --- inference

    def parse(self, line: str, location: str) -> Record:
        """Return residues in capitals; spaces separate aligned sequences."""
        return {"text": " ".join(parse_sequences(line, location))}

    @torch.no_grad()
    def predict(
        self, records: Sequence[Record], *, on_progress: ProgressCallback | None = None
    ) -> list[StatePrediction]:
        """Return the states of each protein, joined from those of its windows."""
        self.model.eval()
        columns = [self.columns(record["text"]) for record in records]
        placements = [
            (protein, window)
            for protein, protein_columns in enumerate(columns)
            for window in residue_windows(len(protein_columns), self.max_tokens)
        ]
        tables = [torch.zeros(len(c), self.states.size, dtype=torch.float64) for c in columns]
        examples = [
            StateExample(number, columns[protein][context.start : context.stop], [0] * len(context))
            for number, (protein, (context, _)) in enumerate(placements)
        ]
        for batch in self.iterate_by_length(examples):
            probabilities = self.model(batch.inputs).softmax(-1).cpu().double()
            finished = 0  # proteins whose last window is in this batch
            for row, number in enumerate(batch.indices.tolist()):
                protein, (context, predicted) = placements[number]
                start = predicted.start - context.start
                part = probabilities[row, start : start + len(predicted)]
                tables[protein][predicted.start : predicted.stop] = part
                finished += predicted.stop == len(tables[protein])
            if on_progress is not None:
                on_progress(finished)
        return [
            self.to_prediction(record["text"].split()[0], table)
            for record, table in zip(records, tables, strict=True)
        ]

    def to_prediction(self, sequence: str, table: Float[Tensor, "r k"]) -> StatePrediction:
        """Return a prediction from the probabilities of the states of each residue."""
        names = self.states.names
        states = "".join(names[state] for state in table.argmax(-1).tolist())
        probabilities = [dict(zip(names, row, strict=True)) for row in table.tolist()]
        return StatePrediction(f"{sequence}\n{states}", sequence, states, probabilities)

    def metrics(self, records: Sequence[Record], predictions: Sequence[Prediction]) -> Metrics:
        """Return Q3 (or Q8) as `accuracy`, SOV, and the accuracy of the most frequent state."""
        predicted = [item.states for item in cast("Sequence[StatePrediction]", predictions)]
        references, names = [record["states"] for record in records], self.states.names
        metrics: Metrics = {
            "accuracy": 100 * residue_accuracy(predicted, references),
            "accuracy_signature": f"Q{len(names)}|residues:all|states:{''.join(names)}|v:1",
            "sov": 100 * segment_overlap(predicted, references),
        }
        for name in names:
            residues_of_state = [mask_other_states(states, name) for states in references]
            if any(name in states for states in residues_of_state):
                accuracy = residue_accuracy(predicted, residues_of_state)
                metrics[f"accuracy_{name}"] = 100 * accuracy
        metrics["majority"] = 100 * majority_accuracy(references)
        known_states = [s for states in references for s in states if s != UNKNOWN_STATE]
        return {**metrics, "residues": len(known_states)}

    # --- inspection

    def attention_names(self) -> tuple[str, ...]:
        """Return the names of the attentions among the residues of one sequence."""
        if not super().has_attention():
            return ()
        names = named_attentions(self.model)
        return tuple(name for name in names if not HIDDEN_ATTENTIONS.search(name))

    def has_attention(self) -> bool:
        return bool(self.attention_names())

    @torch.no_grad()
    def attention_weights(self, text: str) -> dict[str, Float[Tensor, "h r r"]]:
        """Return the attention of the first sequence in the first window, by layer."""
        names = self.attention_names()
        if not names:
            return {}
        with observe(self.model.eval(), names) as recorded:
            self.model(self.to_device(self.tensors([self.columns(text)[: self.max_tokens]])))
        return {
            name: weights[0, 0] if weights.ndim == 5 else weights[0]
            for name, weights in recorded.joined().items()
        }

    def attention_map(self, record: Record, target: str | None = None) -> AttentionMap:  # noqa: ARG002
        return view.state_map(self, record["text"])

    def render(
        self,
        record: Record,
        surface: Surface,
        *,
        target: str | None = None,  # noqa: ARG002
        layer: int | None = None,  # noqa: ARG002
    ) -> str:
        return view.render_states(self, record, surface)


def residue_windows(length: int, max_residues: int) -> list[ResidueWindow]:
    """Return windows that overlap by half; the one with the nearest center predicts a residue."""
    if length <= max_residues:
        return [ResidueWindow(range(length), range(length))]
    starts = [*range(0, length - max_residues, max(1, max_residues // 2)), length - max_residues]
    ends = [(a + b + max_residues) // 2 for a, b in pairwise(starts)]
    return [
        ResidueWindow(range(start, start + max_residues), range(low, high))
        for start, low, high in zip(starts, [0, *ends], [*ends, length], strict=True)
    ]


def mask_other_states(states: str, name: str) -> str:
    """Return the states, with `UNKNOWN_STATE` for all but the state `name`."""
    return "".join(state if state == name else UNKNOWN_STATE for state in states)
