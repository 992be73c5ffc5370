"""Laws of every kind of [data]: what is held out, and which rows are skipped."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from regard.config.base import DataConfig
from regard.data.build import build_corpus, resolve_held_out
from regard.errors import InputError
from regard.tasks.catalogue import TASKS, table_classes

KINDS = {
    (kind, table): task
    for task in reversed(TASKS)
    for kind, table in table_classes(task, "data").items()
    if issubclass(table, DataConfig)
}
FILE_KINDS = {
    kind: table for kind, table in KINDS if "train" in table.model_fields and kind != "classes"
}
COUNT = 150
RECORDS: dict[str, Any] = {
    "files": lambda n: {"source": f"satz {n}", "target": f"sentence {n}"},
    "summaries": lambda n: {"document": f"news {n}", "summary": f"title {n}"},
    "dialogues": lambda n: {"turns": [f"hello {n}", "good day"]},
    "labeled": lambda n: {"text": f"text {n}", "label": f"{n % 2}"},
    "tagged": lambda n: {"tokens": ["word", f"{n}"], "tags": ["O", "B-number"]},
    "questions": lambda n: {"question": "who?", "context": f"Ada {n}", "answers": []},
    "captions": lambda n: {"image": f"{n}.png", "caption": f"a picture {n}"},
    "rolls": lambda n: [[60 + n % 12], [50 + n // 12]],
    "proteins": lambda n: {"sequence": "ACD" + "M" * n, "states": "H" * (n + 3)},
    "distances": lambda n: {"points": [[0, 0, 0], [0, 0, n + 1]]},
}  # fmt: skip


def write_data(kind: str, folder: Path, count: int, *, bad_rows: int = 0) -> Path:
    """Write records of a kind; `bad_rows` of them cannot be read."""
    if kind == "text":
        path = folder / "train.txt"
        path.write_text("".join(f"line {n}\n" for n in range(count)))
    elif kind == "abc":
        path = folder / "train.abc"
        tunes = [f"X:{n}\nK:C\n{'C' * (n + 1)}\n" for n in range(count)]
        path.write_text("\n".join(["X:1\nno key\n"] * bad_rows + tunes))
    elif kind == "images":
        path = folder / "train.tsv"
        for n in range(count):
            Image.new("L", (2, 2), n).save(folder / f"{n}.png")
        rows = [f"{n}.png\t{n % 2}" for n in range(count)] + ["none.png\t1"] * bad_rows
        path.write_text("\n".join(rows) + "\n")
    else:
        path = folder / "train.jsonl"
        if kind == "captions":
            for n in range(count):
                Image.new("L", (2, 2), n).save(folder / f"{n}.png")
        lines = [json.dumps(RECORDS[kind](n)) for n in range(count)]
        bad_lines = ["{", "5", ""][:bad_rows]
        path.write_text("\n".join([*lines[:1], *bad_lines, *lines[1:]]) + "\n")
    return path


@pytest.mark.parametrize("kind", FILE_KINDS)
def test_a_share_is_held_out_of_own_files(kind, tmp_path):
    path = write_data(kind, tmp_path, COUNT)
    data = FILE_KINDS[kind](train=str(path))
    corpus = build_corpus(data)
    assert set(corpus.splits) == {"train", "dev", "test"}
    records = {split: [repr(r) for r in corpus.read(split)] for split in corpus.splits}
    assert all(records.values())
    sizes = {split: len("".join(texts)) for split, texts in records.items()}
    assert 4 * sizes["dev"] < sizes["train"]
    assert not set(records["train"]) & set(records["dev"] + records["test"])
    explicit = build_corpus(data.model_copy(update={"held_out": 0.0}))
    assert explicit.splits == ("train",)
    with pytest.raises(ValueError, match="held_out"):
        FILE_KINDS[kind](train=str(path), held_out=0.5)


@pytest.mark.parametrize("kind", [kind for kind in FILE_KINDS if kind != "text"])
def test_nothing_is_held_out_of_few_records_or_beside_a_dev_file(kind, tmp_path):
    path = str(write_data(kind, tmp_path, 20))
    assert resolve_held_out(FILE_KINDS[kind](train=path)).held_out == 0.0
    beside_dev = FILE_KINDS[kind](train=str(write_data(kind, tmp_path, COUNT)), dev=path)
    assert build_corpus(beside_dev).splits == ("train", "dev")


@pytest.mark.parametrize(
    "table", [table for kind, table in KINDS if kind not in FILE_KINDS and kind != "mix"]
)
def test_other_kinds_hold_out_a_number_or_have_splits_of_their_own(table):
    field = table.model_fields.get("held_out")
    is_public = "name" in table.model_fields
    assert field is not None or is_public or "eval_episodes" in table.model_fields
    if field is not None and not is_public and field.annotation is int:
        corpus = build_corpus(table(held_out=2))
        assert sum(1 for _ in corpus.read("dev")) == 2
        with pytest.raises(ValueError, match="held_out"):
            table(held_out=0)


@pytest.mark.parametrize("kind", [kind for kind in FILE_KINDS if kind != "text"])
def test_bad_rows_are_refused_or_skipped(kind, tmp_path):
    path = write_data(kind, tmp_path, 3, bad_rows=2)
    data = FILE_KINDS[kind](train=str(path), held_out=0.0)
    with pytest.raises(InputError, match=r"train\.\w+:\d+: ") as refusal:
        list(build_corpus(data).read("train"))
    assert "\n" not in str(refusal.value)
    corpus = build_corpus(data.model_copy(update={"skip_bad": True}))
    assert len(list(corpus.read("train"))) == 3
    assert "2 rows skipped (first: " in corpus.describe()
