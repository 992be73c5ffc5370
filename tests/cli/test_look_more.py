"""`regard look` with links of people, step by step, side by side, in another shape."""

from pathlib import Path

import pytest

from regard.cli.look import look
from regard.config.load import resolve
from regard.train.fit import Fit
from regard.train.run import Run
from regard.view.map import AttentionMap

SETTINGS = {
    "data": {"kind": "reorder", "size": 300, "held_out": 20, "words": 6},
    "text": {"kind": "words"},
    "model": {"kind": "transformer", "dim": 16, "heads": 2, "layers": 2, "hidden_dim": 16},
    "train": {"steps": 30, "sentences_per_batch": 16, "save_every": 10},
    "decode": {"kind": "beam", "width": 3, "max_length": 8},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("more") / "small"
    list(Fit(resolve(SETTINGS), folder, lambda _: None).events())
    return folder


@pytest.fixture(scope="module")
def record(folder):
    return next(iter(Run.load(folder).corpus().read("test")))


def test_step_by_step(folder, record, capsys):
    look(folder, record["source"], target=record["target"], stepwise=True)
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["said", "p", "else", "looked", "at"]
    assert [row.split()[0] for row in rows] == [*record["target"].split(), "</s>"]


def test_links_of_people(folder, record, capsys):
    look(folder, record["source"], target=record["target"], gold=record["links"])
    told = capsys.readouterr().out.split("links of people\n")[1].splitlines()
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
    assert len(seen.more.choices) == len(seen.queries.tokens)
    said = [node.token for node in seen.more.tree if node.best]
    assert said == [*seen.queries.tokens[: len(said)]]
    assert len(seen.more.tree) > len(said)  # a beam tries others
    for step in seen.more.choices:
        shares = [one.share for one in step]
        assert shares == sorted(shares, reverse=True)
        assert 0 < sum(shares) <= 1 + 1e-5


def test_two_runs_and_two_texts(folder, record, tmp_path, capsys):
    other = record["source"].split()[0]
    look(folder, record["source"], beside=folder, other=other, files=[tmp_path / "all.html"])
    assert (tmp_path / "all.html").read_text().count("<iframe") == 3
    capsys.readouterr()
    look(folder, record["source"], other=other)
    assert capsys.readouterr().out.count(" -> ") == 2


def test_a_checkpoint_is_the_run_as_it_was(folder, record, tmp_path):
    early = folder / "checkpoints" / "step-00000010"
    assert Run.load(early).settings == Run.load(folder).settings
    one, other = (Run.load(path).model.state_dict() for path in (early, folder))
    assert any(not one[name].equal(other[name]) for name in one)
    look(folder, record["source"], beside=early, files=[tmp_path / "two.html"])
    assert "step-00000010: " in (tmp_path / "two.html").read_text()
    with pytest.raises(ValueError, match="step-00000099: is not a run"):
        Run.load(folder / "checkpoints" / "step-00000099")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"gold": "0-0 1"}, "--gold: expected links like 0-0 2-1, not '1'"),
        ({"gold": "0-99"}, "gold link 0-99: there are"),
        ({"other": "x", "files": [Path("a.png")]}, "a.png: side by side is a page: name it .html"),
        ({"other": "x", "gold": "0-0"}, "--gold does not go with --beside and --other"),
        ({"other": "x", "words": True}, "--words does not go with --beside and --other"),
        ({"stepwise": True, "files": [Path("a.html")]}, "--steps is for the terminal"),
        ({"shape": "arcs"}, "--shape is for pictures: give --save FILE with it"),
        ({"shape": "arcs", "files": [Path("a.html")]}, "a.html: a shape is for pictures: .png"),
        (
            {"shape": "arcs", "files": [Path("a.png")]},
            "arcs are for tokens that look at each",
        ),
    ],
)
def test_what_does_not_go(folder, record, given, says):
    with pytest.raises(ValueError, match=says):
        look(folder, record["source"], **given)
