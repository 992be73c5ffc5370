"""`regard look --html` and `--save` on runs of several tasks."""

import pytest

import regard as package
from regard.tasks.load import resolve_settings
from regard.training.trainer import Trainer
from regard.view.export import SERIALIZERS

SMALL = {"steps": 2, "examples_per_batch": 4}
TEXTS = {
    "translate": {
        "data": {"kind": "reorder", "size": 20, "held_out": 4, "vocabulary_size": 6},
        "text": {"kind": "words"},
        "model": {"kind": "transformer", "dim": 8, "heads": 2, "layers": 2, "hidden_dim": 8},
        "decode": {"kind": "greedy", "max_length": 6},
    },
    "classify": {
        "data": {"kind": "planted", "size": 20, "held_out": 4, "classes": 2},
        "text": {"kind": "words"},
        "model": {"kind": "birnn", "dim": 4, "hidden_dim": 4},
    },
    "language": {
        "text": {"kind": "characters"},
        "model": {"kind": "gpt2", "dim": 8, "heads": 2, "layers": 2, "max_positions": 16},
    },
}


@pytest.mark.parametrize("task", TEXTS)
def test_a_page_and_a_record(task, tmp_path, regard):
    settings = {"task": task, **TEXTS[task], "train": SMALL}
    if task == "language":
        (tmp_path / "a.txt").write_text("to be or not to be. " * 40)
        settings["data"] = {"kind": "text", "train": str(tmp_path / "a.txt"), "unit": "line"}
        settings["data"] |= dict.fromkeys(("dev", "test"), str(tmp_path / "a.txt"))
        settings["train"] = {**SMALL, "context_length": 8}
    fit = Trainer(resolve_settings(settings), tmp_path / "run", lambda _: None)
    list(fit)
    record = next(fit.run.corpus().read("test"))
    text = record["source" if task == "translate" else "text"][:12].strip()
    files = [str(tmp_path / name) for name in ("map.html", "map.npz")]
    done = regard("look", str(tmp_path / "run"), text, "--html", files[0], "--save", files[1])
    assert done.returncode == 0, done.stderr
    assert "<canvas" not in (tmp_path / "map.html").read_text()  # it is drawn when it is opened
    found = package.AttentionMap.load(files[1])
    heads = [layer.heads for layer in found.layers]
    assert heads == ([1] if task == "classify" else [2, 2])
    assert text in found.title


def test_every_form_is_told_in_the_help(regard):
    said = " ".join(regard("look", "--help").stdout.split())
    assert all(ending in said for ending in SERIALIZERS)
