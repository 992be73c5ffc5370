"""`regard look` with links of people, step by step, side by side, in another style."""

from pathlib import Path

import pytest

from regard.cli.look import look
from regard.run import Run
from regard.tasks.load import resolve_settings
from regard.training.trainer import Trainer
from regard.view.attention_map import AttentionMap

SETTINGS = {
    "data": {"kind": "reorder", "size": 300, "held_out": 20, "vocabulary_size": 6},
    "text": {"kind": "words"},
    "model": {"kind": "transformer", "dim": 16, "heads": 2, "layers": 2, "hidden_dim": 16},
    "train": {"steps": 30, "examples_per_batch": 16, "save_every": 10, "keep_finished": True},
    "decode": {"kind": "beam", "width": 3, "max_length": 8},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("more") / "small"
    list(Trainer(resolve_settings(SETTINGS), folder, lambda _: None))
    return folder


@pytest.fixture(scope="module")
def record(folder):
    return next(iter(Run.load(folder).corpus().read("test")))


def test_step_by_step(folder, record, capsys):
    look(folder, record["source"], target=record["target"], step_table=True)
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["token", "p", "alternatives", "attends", "to"]
    assert [row.split()[0] for row in rows] == [*record["target"].split(), "</s>"]


def test_links_of_people(folder, record, capsys):
    look(folder, record["source"], target=record["target"], gold=record["links"])
    told = capsys.readouterr().out.split("gold links\n")[1].splitlines()
    assert told[0].split() == ["AER", "found", "false", "missed"]
    assert len(told) == 1 + 1 + 4  # all in the mean, and two heads of two layers
    links = len(record["links"].split())
    for row in told[1:]:
        aer, found, false, missed = row.split()[-4:]
        assert int(found) + int(missed) == links  # each is sure
        assert int(found) + int(false) == len(record["target"].split())
        total = 2 * int(found) / (int(found) + int(false) + links)
        assert float(aer) == pytest.approx(1 - total, abs=1e-3)


def test_a_file_has_them_too(folder, record, tmp_path):
    look(folder, record["source"], files=[tmp_path / "map.json"])
    seen = AttentionMap.load(tmp_path / "map.json")
    assert len(seen.annotations.choices) == len(seen.queries.tokens)
    said = [node.token for node in seen.annotations.tree if node.is_on_best_path]
    assert said == [*seen.queries.tokens[: len(said)]]
    assert len(seen.annotations.tree) > len(said)  # a beam tries others
    for step in seen.annotations.choices:
        shares = [one.probability for one in step]
        assert shares == sorted(shares, reverse=True)
        assert 0 < sum(shares) <= 1 + 1e-5


def test_two_runs_and_two_texts(folder, record, tmp_path, capsys):
    other = record["source"].split()[0]
    look(
        folder,
        record["source"],
        compare_run=folder,
        compare_text=other,
        files=[tmp_path / "all.html"],
    )
    assert (tmp_path / "all.html").read_text().count('<div class="map">') == 3
    capsys.readouterr()
    look(folder, record["source"], compare_text=other)
    assert capsys.readouterr().out.count(" -> ") == 2


def test_a_checkpoint_is_the_run_as_it_was(folder, record, tmp_path):
    early = folder / "checkpoints" / "step-00000010"
    assert Run.load(early).settings == Run.load(folder).settings
    one, other = (Run.load(path).model.state_dict() for path in (early, folder))
    assert any(not one[name].equal(other[name]) for name in one)
    look(folder, record["source"], compare_run=early, files=[tmp_path / "two.html"])
    assert "step-00000010: " in (tmp_path / "two.html").read_text()
    with pytest.raises(ValueError, match="step-00000099: is not a run"):
        Run.load(folder / "checkpoints" / "step-00000099")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"gold": "0-0 1"}, "--gold: expected links like 0-0 2-1, not '1'"),
        ({"gold": "0-99"}, "gold link 0-99: there are"),
        (
            {"compare_text": "x", "files": [Path("a.png")]},
            "a.png: maps side by side need a web page; name it .html",
        ),
        (
            {"compare_text": "x", "gold": "0-0"},
            "--gold does not go with --compare-run and --compare-text",
        ),
        (
            {"compare_text": "x", "merge_subwords": True},
            "--merge-subwords does not go with --compare-run and --compare-text",
        ),
        ({"step_table": True, "files": [Path("a.html")]}, "--step-table is for the terminal"),
        ({"style": "arcs"}, "--style is for saved plots; give --save FILE with it"),
        ({"style": "arcs", "files": [Path("a.html")]}, "a.html: a style is for plots; end in .png"),
        (
            {"style": "arcs", "files": [Path("a.png")]},
            "arcs need self-attention",
        ),
    ],
)
def test_what_does_not_go(folder, record, given, says):
    with pytest.raises(ValueError, match=says):
        look(folder, record["source"], **given)
