"""Every model of the catalogue, briefly trained: its map in the terminal and in every file."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torch import Tensor

from regard.attention.memory import Memory
from regard.attention.observe import named_attentions, observe
from regard.cli.look import look
from regard.models.catalogue import MODELS, model_settings
from regard.tasks.building import batch_options
from regard.tasks.catalogue import tasks_of_model
from regard.tasks.load import resolve_settings
from regard.training.trainer import Trainer
from regard.view.attention_map import AttentionMap
from regard.view.export import SERIALIZERS

BLIND = {  # models without attention, and their word for it
    "encdec": "no attention",
    "seq2seq": "no attention",
    "rnnlm": "no attention",
    "show_tell": "no attention",
    "roll_rnn": "no attention",
    "bilstm_crf": "no attention",
    "lstm": "no attention",
}
SMALL = {"dim": 8, "hidden_dim": 8, "heads": 2, "layers": 2}
LINES = "The cat sat. It saw a mouse.\nThe mouse ran away.\n\nA dog ran. It sat down on a log.\n\n"
TASKS = {
    "translate": {
        "data": {"kind": "reorder", "size": 20, "held_out": 4, "vocabulary_size": 6},
        "text": {"kind": "words"},
        "decode": {"kind": "greedy", "max_length": 6},
    },
    "summarize": {
        "data": {"kind": "headlines", "size": 20, "held_out": 4},
        "decode": {"kind": "greedy", "max_length": 6},
    },
    "classify": {
        "data": {"kind": "planted", "size": 20, "held_out": 4, "classes": 2, "min_sentences": 2},
        "text": {"kind": "words"},
    },
    "tag": {"data": {"kind": "tagged"} | dict.fromkeys(("train", "dev", "test"), "tagged")},
    "answer": {"data": {"kind": "facts", "size": 20, "held_out": 4}},
    "music": {"data": {"kind": "rolls"} | dict.fromkeys(("train", "dev", "test"), "rolls.jsonl")},
    "language": {
        "data": {"kind": "text", "train": "text.txt", "unit": "paragraph"},
        "text": {"kind": "wordpiece", "size": 60},
    },
    "fold": {"data": {"kind": "proteins"} | dict.fromkeys(("train", "dev", "test"), "some.fasta")},
    "copy": {"data": {"size": 20, "held_out": 4, "width": 2, "max_vectors": 3, "test_sizes": [2]}},
    "image": {
        "data": {"kind": "shapes", "size": 16, "held_out": 6, "side": 16},
        "image": {"size": [16, 16]},
    },
    "caption": {
        "data": {"kind": "digits", "size": 16, "held_out": 6, "side": 16},
        "image": {"size": [16, 16]},
        "decode": {"kind": "greedy", "max_length": 3},
    },
    "bandit": {"data": {"kind": "bandit", "arms": 3, "steps": 4, "held_out": 4}},
    "pretrain": {
        "data": {"kind": "text", "train": "text.txt", "unit": "paragraph"},
        "text": {"kind": "wordpiece", "size": 60, "lower": True},
    },
}
SAID = {"music": "[[60, 64], [62]]", "tag": "fly to new york", "pretrain": "the [MASK] sat"}
SAID |= {
    "fold": "MKVLAA",
    "copy": "01 11",
    "bandit": "1:1 2:0 2:1",
    "image": "dot.png",
    "caption": "dot.png",
    "language": "the mouse sat",
    "classify": "one two. three four five.",
}
ASKED = [(kind, tasks_of_model(kind)[0]) for kind in MODELS] + [("bert", "pretrain")]
SEEING = [(kind, task) for kind, task in ASKED if kind not in BLIND]
# Plots depend on the shape of a map, so one model of each task draws them.
FIRST_OF_TASK = {task: (kind, task) for kind, task in reversed(SEEING)}.values()
PLOTS = {".png", ".pdf", ".svg"}


def trained(kind: str, task: str) -> Trainer:
    known = set(model_settings(kind))
    wanted = {name: n for name, n in SMALL.items() if name in known}
    wanted |= {
        "pretrain": {"pretrain": "both"},
        "image": {"patch_size": 8},
        "copy": {"slots": 6} if kind == "ntm" else {},
    }.get(task, {})
    steps = {"steps": 2, "examples_per_batch": 4}
    if task == "language":
        steps["context_length"] = 8
    settings = {"task": task, **TASKS[task], "model": {"kind": kind, **wanted}, "train": steps}
    fit = Trainer(resolve_settings(settings), Path("run"), lambda _: None)
    list(fit)
    return fit


def said(fit: Trainer, task: str) -> str:
    if task in SAID:
        return SAID[task]
    record = next(fit.run.corpus().read("test"))
    if task == "answer":
        return f"{record['question']}\t{record['text']}"
    return record["source"]


@pytest.mark.parametrize(("kind", "task"), ASKED)
def test_every_model_can_be_looked_into(kind, task, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text(LINES * 20)
    Path("rolls.jsonl").write_text("[[60, 64], [62]]\n[[65], [], [60, 67]]\n" * 4)
    Path("some.fasta").write_text(">a\nMKVLAAGDE\nCHHHHHHCC\n>b\nGGTVEVEKL\nCCEEEEECC\n")
    Image.new("RGB", (20, 20), "red").save("dot.png")
    Path("tagged").mkdir()
    Path("tagged/seq.in").write_text("fly to new york\ncall ada\n" * 6)
    Path("tagged/seq.out").write_text("O O B-city I-city\nO B-who\n" * 6)
    Path("tagged/label").write_text("travel\nphone\n" * 6)
    fit = trained(kind, task)
    text = said(fit, task)
    files = [Path(f"map{ending}") for ending in SERIALIZERS]
    if (kind, task) not in FIRST_OF_TASK:
        files = [file for file in files if file.suffix not in PLOTS]
    if kind in BLIND:
        with pytest.raises(ValueError, match=BLIND[kind]):
            look(Path("run"), text, files=files)
        return
    look(Path("run"), text, files=files)
    assert all(file.read_bytes() for file in files)
    if (kind, task) in FIRST_OF_TASK:
        assert Path("map.png").read_bytes().startswith(b"\x89PNG")
        assert Path("map.pdf").read_bytes().startswith(b"%PDF")
        assert "</svg>" in Path("map.svg").read_text()
    found = AttentionMap.load("map.npz")
    same = AttentionMap.load("map.json")
    assert [one.weights.shape for one in found.layers] == [one.weights.shape for one in same.layers]
    assert json.loads(Path("map.json").read_text())["queries"][0] == list(found.queries.tokens)
    capsys.readouterr()
    look(Path("run"), text)
    assert "weight" in capsys.readouterr().out
    assert read_with(fit.run, kind)


def read_with(run: Any, kind: str) -> int:
    """Of each call that was read the quick way: the weights seen times the values are what it gave,
    and nothing is on a slot that is not real. How many weights that were."""
    quick: dict[str, list[tuple[Memory, Tensor]]] = {}
    # Before the hooks: the batch of a task that acts is made with attention, too.
    batch = next(run.task.batches(run.corpus(), batch_options(run.settings)))
    attentions = named_attentions(run.model.eval())
    hooks = [
        one.register_forward_hook(
            lambda _, given, context, name=name: quick.setdefault(name, []).append(
                (given[1], context)
            )
        )
        for name, one in attentions.items()
    ]
    with torch.no_grad(), observe(run.model) as seen:
        run.task.loss(batch, 0)
    for hook in hooks:
        hook.remove()
    count = 0
    for name, calls in seen.items():
        for weights in calls:
            assert weights.isfinite().all()
            assert (weights.sum(-1) < 1 + 1e-5).all()
            count += weights.numel()
        for (memory, context), weights in zip(quick.get(name, ()), calls, strict=False):
            found = weights.to(memory.values) @ memory.values
            torch.testing.assert_close(found, context, atol=1e-5, rtol=1e-5)
            if memory.valid is not None:
                unreal = ~memory.valid[..., None, :].expand_as(weights)
                assert not weights[unreal].any(), f"{kind}: {name} looks at padding"
    return count
