"""`regard heads` and `regard look --faithfulness`, as somebody would call them."""

import json

import pytest

from regard.cli.heads import heads
from regard.cli.look import look
from regard.run import Run
from regard.tasks.load import resolve_settings
from regard.training.trainer import Trainer
from regard.view.attention_map import AttentionMap


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    settings = {
        "task": "translate",
        "data": {"kind": "reorder", "size": 40, "held_out": 6, "vocabulary_size": 6},
        "text": {"kind": "words"},
        "model": {"kind": "transformer", "dim": 8, "heads": 2, "layers": 1, "hidden_dim": 8},
        "train": {"steps": 4, "examples_per_batch": 8},
        "decode": {"kind": "greedy", "max_length": 6},
    }
    place = tmp_path_factory.mktemp("run") / "run"
    list(Trainer(resolve_settings(settings), place, lambda _: None))
    return place


def test_a_table_a_curve_a_picture_and_a_run(folder, tmp_path, capsys):
    heads(
        folder,
        curve_points=2,
        keep_heads=4,
        save_run=tmp_path / "fewer",
        save=tmp_path / "curve.png",
    )
    said = capsys.readouterr().out
    assert "Decoder 1, cross-attention" in said
    assert "decoder.layers.0.cross_attention" in said  # the name for --ablate
    assert "loss without it" in said
    assert f"{tmp_path / 'fewer'}: a run with 4 of 6 heads" in said
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert Run.load(tmp_path / "fewer")("pule").text is not None


def test_scores_without_each_head(folder, capsys):
    heads(folder, limit=3, with_metrics=True)
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split("  ")[0] == "attention"
    assert all(name in head for name in ("loss without it", "bleu", "aer", "own AER"))
    assert len(rows) == 6 + 2


def test_as_json(folder, capsys):
    heads(folder, curve_points=3, as_json=True, with_metrics=True)
    found = json.loads(capsys.readouterr().out)
    assert len(found["heads"]) == 6
    assert {"attention", "head", "rise", "entropy", "previous"} <= set(found["heads"][0])
    links = {one["attention"]: one["aer"] for one in found["heads"]}
    assert 0 <= links["decoder.layers.0.cross_attention"] <= 1
    assert "Decoder 1, cross-attention" in {one["label"] for one in found["heads"]}
    assert links["decoder.layers.0.self_attention"] is None
    assert all({"bleu", "chrf", "aer"} <= set(one["changes"]) for one in found["heads"])
    kept = [count for count, _ in found["curve"]]
    assert kept == [6, 4, 2, 0]
    assert found["curve"][0][1]["nats"] == pytest.approx(found["loss"], abs=1e-6)


def test_wrong_wishes_are_told(folder, tmp_path):
    with pytest.raises(ValueError, match="--keep-heads and --save-run are given together"):
        heads(folder, keep_heads=3)
    with pytest.raises(ValueError, match="--keep-heads 9: there are 6 heads"):
        heads(folder, keep_heads=9, save_run=tmp_path / "more")
    assert not (tmp_path / "more").exists()


def test_trust_of_a_text_and_of_a_split(folder, capsys):
    record = next(Run.load(folder).corpus().read("test"))
    look(folder, record["source"], faithfulness=True)
    said = capsys.readouterr().out
    assert "log p lost without it" in said
    assert "Kendall" in said
    look(folder, faithfulness=True, limit=3)
    assert "3 texts of test" in capsys.readouterr().out


def test_a_text_is_wanted(folder):
    with pytest.raises(ValueError, match="TEXT is missing"):
        look(folder)


def test_gradient_x_attention(folder, tmp_path):
    record = next(Run.load(folder).corpus().read("test"))
    look(folder, record["source"], files=[tmp_path / "map.npz"], gradient_attention=True)
    found = AttentionMap.load(tmp_path / "map.npz")
    assert max(float(one.weights.sum(-1).max()) for one in found.layers) == pytest.approx(
        1, abs=1e-3
    )
