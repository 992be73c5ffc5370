"""Tiny data and tiny models for every task, and runs that are fitted on them once a session."""

import json
import runpy
from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import regard
from regard.run import Run
from support.shared import SharedFolders

WORDS = ["ann", "bob", "cat", "dog", "eve", "fox", "gin", "hat", "ink", "jar"]
RNN = {"dim": 8, "hidden_dim": 8}
BERT = {"kind": "bert", "dim": 8, "heads": 2, "layers": 1}
SNAIL = {"kind": "snail", "blocks": ["A(4, 4)", "TC(4)", "A(4, 4)"]}
GREEDY = {"kind": "greedy", "max_length": 6}


def sentences(count: int = 12) -> list[str]:
    return [" ".join(WORDS[(i + j) % 10] for j in range(3 + i % 3)) for i in range(count)]


def image(seed: int) -> Any:
    return np.random.default_rng(seed).integers(0, 255, (8, 8, 3), dtype=np.uint8)


class Example(NamedTuple):
    """What one task is fitted on."""

    data: Any
    model: dict[str, Any]
    settings: dict[str, Any] = {}  # noqa: RUF012


@cache
def examples() -> dict[str, Example]:
    """Return tiny data and a tiny model for every task."""
    texts = sentences()
    tagged = [{"tokens": t.split(), "tags": ["B-X", *["O"] * (len(t.split()) - 1)]} for t in texts]
    labels = ["even", "odd"] * 6
    tune = "M:4/4\nL:1/4\nK:C\nCDEF|GABc|"
    words = {"text": {"kind": "words"}}
    return {
        **folder_examples(),
        "translate": Example(
            [{"source": t, "target": t[::-1]} for t in texts],
            {"kind": "rnnsearch", **RNN},
            {"decode": {"kind": "beam", "width": 2, "max_length": 6}},
        ),
        "summarize": Example(
            [{"document": f"{t} {t}", "summary": t} for t in texts],
            {"kind": "pointer", **RNN},
            {"decode": GREEDY},
        ),
        "language": Example(
            [{"text": t} for t in texts],
            {"kind": "gpt2", "dim": 8, "heads": 2, "layers": 1, "max_positions": 64},
            {"train": {"context_length": 16}, "decode": {"kind": "sample", "max_length": 6}},
        ),
        "chat": Example(
            [{"turns": [a, b]} for a, b in pairwise(texts)],
            {"kind": "gpt2", "dim": 8, "heads": 2, "layers": 1, "max_positions": 64},
            {"train": {"max_tokens": 64}, "decode": {"kind": "greedy", "max_length": 6}},
        ),
        "classify": Example(
            [{"text": t, "label": label} for t, label in zip(texts, labels, strict=True)],
            {"kind": "birnn", **RNN},
            words,
        ),
        "tag": Example(tagged, {"kind": "birnn_attention", **RNN}),
        "understand": Example(
            [{**record, "intent": label} for record, label in zip(tagged, labels, strict=True)],
            {"kind": "birnn_attention", **RNN},
        ),
        "answer": Example(
            [
                {
                    "question": f"who is {t.split()[0]} ?",
                    "context": t,
                    "answers": [{"text": t.split()[1], "answer_start": t.index(t.split()[1])}],
                }
                for t in texts
            ],
            BERT,
        ),
        "pretrain": Example(
            [{"text": ". ".join(texts)} for _ in range(4)],
            {**BERT, "pretrain": "masked"},
            {"train": {"max_tokens": 64}},
        ),
        "image": Example(
            [{"image": image(i), "label": label} for i, label in enumerate(labels)],
            {"kind": "vit", "patch_size": 4, "dim": 8, "heads": 2, "layers": 1},
            {"image": {"size": (8, 8)}},
        ),
        "caption": Example(
            [{"image": image(i), "caption": t} for i, t in enumerate(texts)],
            {
                "kind": "show_attend",
                "dim": 8,
                "image_dim": 8,
                "image_layers": 2,
                "pooling_layers": 1,
            },
            {"image": {"size": (8, 8)}, "decode": GREEDY},
        ),
        "music": Example(
            [{"notes": [[60 + i, 64], [], [62 + i]] * 2} for i in range(12)],
            {"kind": "roll_gpt", "dim": 8, "heads": 2, "layers": 1},
            {"decode": {"max_length": 3}},
        ),
        "music-tunes": Example(
            [{"abc": tune.replace("C", note)} for note in "CDEFGAB"],
            {"kind": "lstmn", "dim": 8},
            {"train": {"context_length": 16}, "decode": {"max_length": 6}},
        ),
        "copy": Example(
            {
                "kind": "copy",
                "size": 20,
                "held_out": 4,
                "width": 3,
                "max_vectors": 3,
                "test_sizes": [3],
            },
            {"kind": "ntm", "controller": "feedforward", "dim": 8, "slots": 10, "slot_dim": 4},
        ),
        "recall": Example(
            {
                "kind": "recall",
                "size": 20,
                "held_out": 4,
                "width": 3,
                "max_items": 3,
                "test_sizes": [3],
            },
            {"kind": "ntm", "dim": 8, "slots": 10, "slot_dim": 4},
        ),
        "bandit": Example(
            {"kind": "bandit", "arms": 3, "steps": 4, "held_out": 8},
            {**SNAIL, "dim": 6},
            {"train": {"rollout_environments": 8, "rollout_epochs": 1}},
        ),
        "fewshot": Example(
            {"kind": "prototypes", "ways": 2, "shots": 2, "dim": 2, "eval_episodes": 6}, SNAIL
        ),
        "fold": Example(
            [{"sequence": "ACDEFGHI"[i % 3 :], "states": "HHEECCHH"[i % 3 :]} for i in range(12)],
            {
                "kind": "msa",
                "dim": 8,
                "pair_dim": 4,
                "heads": 2,
                "pair_heads": 1,
                "head_dim": 4,
                "layers": 1,
            },
        ),
        "fold-distances": Example(
            [{"points": [[i, j, 3.8 * j] for j in range(4)]} for i in range(12)],
            {
                "kind": "msa",
                "dim": 8,
                "pair_dim": 4,
                "heads": 2,
                "pair_heads": 1,
                "head_dim": 4,
                "layers": 1,
            },
        ),
    }


def subword_examples() -> dict[str, Example]:
    """Return encoders that read pieces of words and special tokens."""
    pieces = {"text": {"kind": "bpe", "size": 60}}
    names = ("tag", "understand", "classify", "answer", "pretrain")
    tiny = {**BERT, "layers": 2}
    return {
        name: Example(
            examples()[name].data,
            {**tiny, "pretrain": "masked"} if name == "pretrain" else tiny,
            {**examples()[name].settings, **pieces},
        )
        for name in names
    }


def folder_examples() -> dict[str, Example]:
    """Return the EXAMPLE of each `tests/tasks/<task>/example.py`."""
    files = sorted(Path(__file__).parents[1].glob("tasks/*/example.py"))
    return {file.parent.name: Example(**runpy.run_path(str(file))["EXAMPLE"]) for file in files}


def records_of(run: Run) -> list[dict[str, Any]]:
    if run.settings.task == "pretrain":  # which fills gaps
        return [{"text": f"{word} [MASK] cat dog"} for word in ("ann", "bob", "eve")]
    return run.read_split("train" if "train" in run.corpus().splits else "test")[:3]


def fit_example(name: str, folder: Path) -> None:
    """Fit a run; beside it stand predictions of the model that was never saved."""
    data, model, settings = examples()[name]
    train = {"examples_per_batch": 4, **settings.get("train", {})}
    run = regard.fit(
        name.partition("-")[0],
        data,
        model,
        steps=2,
        folder=folder / "run",
        settings={**settings, "train": train},
        progress=False,
    )
    predictions = [prediction.as_dict() for prediction in run.predict(records_of(run))]
    (folder / "predictions.json").write_text(json.dumps(predictions))
    records = records_of(run) if name == "pretrain" else []
    (folder / "records.json").write_text(json.dumps(records))


def example_runs(shared: SharedFolders) -> Callable[[str], Path]:
    """Return a function that gives the folder of the tiny run of a task."""
    return lambda name: shared(f"task-{name}", partial(fit_example, name))
