"""Music on the command line: every verb, files that others read, one line for what fails."""

import json
import re
from pathlib import Path

import pytest

from regard.cli.check import check
from regard.cli.init import init
from regard.cli.look import look
from regard.cli.play import play
from regard.cli.score import score
from regard.run import Run
from regard.tasks.load import resolve_settings
from regard.training.trainer import Trainer
from regard.view.midi import midi_bytes as written
from regard.view.midi import notes_from_roll

PIECES = [[[60, 64, 67], [60, 64, 67], [62, 65], []], [[55, 71], [57, 72], [59, 74]]] * 4
TUNE = "X:1\nT:Up\nM:3/4\nL:1/4\nK:G\nGAB|cde|f2d|g3|]\n\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A config of piano rolls, and one of a tune that is learned by heart, both trained."""
    folder = tmp_path_factory.mktemp("music")
    (folder / "a.jsonl").write_text("".join(f"{json.dumps(piece)}\n" for piece in PIECES))
    (folder / "a.abc").write_text(TUNE * 30)
    rolls = dict.fromkeys(("train", "dev", "test"), str(folder / "a.jsonl"))
    tunes = dict.fromkeys(("train", "dev", "test"), str(folder / "a.abc"))
    made = {
        "rolls": {
            "data": {"kind": "rolls", **rolls},
            "model": {"kind": "roll_gpt", "dim": 8, "heads": 2, "layers": 1},
            "train": {"steps": 2, "examples_per_batch": 4},
            "decode": {"max_length": 5},
        },
        "rnn": {
            "data": {"kind": "rolls", **rolls},
            "model": {"kind": "roll_rnn", "dim": 8},
            "train": {"steps": 1, "examples_per_batch": 4},
        },
        "tunes": {
            "data": {"kind": "abc", **tunes},
            "model": {"kind": "rnnlm", "dim": 16, "hidden_dim": 48},
            "train": {
                "steps": 60,
                "examples_per_batch": 8,
                "context_length": 48,
                "learning_rate": 0.02,
            },
            "decode": {"max_length": 100, "temperature": 0.3},
        },
    }
    for name, settings in made.items():
        settings = resolve_settings({"task": "music", **settings})
        list(Trainer(settings, folder / name, lambda _: None))
    return folder


def one_line(call, *words, **options):
    with pytest.raises(ValueError) as caught:
        call(*words, **options)
    return str(caught.value)


def test_a_piece(folder, tmp_path, capsys):
    midi, picture, plain = (tmp_path / name for name in ("a.mid", "a.png", "a.json"))
    same = {"seed": 3, "max_length": 6}
    play(folder / "rolls", "[[60, 64]]", save=midi, piano_roll=picture, **same)
    assert f"{midi} and {picture}: " in capsys.readouterr().out
    assert picture.read_bytes().startswith(b"\x89PNG")
    play(folder / "rolls", "[[60, 64]]", save=plain, **same)
    steps = json.loads(plain.read_text())
    assert steps[0] == [60, 64]
    assert len(steps) == 7
    capsys.readouterr()
    play(folder / "rolls", "[[60, 64]]", **same)
    assert json.loads(capsys.readouterr().out) == steps
    play(folder / "rolls", voices=4, **same)
    assert [len(step) for step in json.loads(capsys.readouterr().out)] == [4] * 6
    assert midi.read_bytes() == written(notes_from_roll(steps), name="roll_gpt, seed 3")


def test_a_tune(folder, tmp_path, capsys, regard):
    where = tmp_path / "a.abc"
    play(folder / "tunes", save=where)
    assert "9 notes, 12 quarter notes long" in capsys.readouterr().out
    assert where.read_text() == TUNE.removesuffix("\n")
    done = regard("play", str(folder / "tunes"), r"T:Up\nM:3/4")
    assert (done.returncode, done.stdout) == (0, TUNE.removesuffix("\n")), done.stderr


def test_other_verbs(folder, capsys):
    init("music")
    assert 'kind = "roll_rnn"' in capsys.readouterr().out
    for name in ("rolls", "tunes"):
        check(folder / name / "config.toml")
        said = capsys.readouterr().out
        assert "also in train" in said  # dev and test are train
        if name == "rolls":
            assert re.search(r"^pieces +8 +8 +8$", said, re.MULTILINE)
            assert re.search(r"^silent steps +4 +4 +4$", said, re.MULTILINE)
        else:
            assert re.search(r"^cannot be played +0 +0 +0$", said, re.MULTILINE)
        score(folder / name)
        assert ("first:given" if name == "rolls" else "perplexity") in capsys.readouterr().out
    look(folder / "rolls", "[[60, 64, 67], [], [62]]")
    looked = capsys.readouterr().out
    assert "C4 E4 G4" in looked
    assert "next: " in looked
    assert "no attention to observe" in one_line(look, folder / "rnn", "[[60]]")


def test_a_tune_that_cannot_be_played_is_told(tmp_path, folder, capsys):
    text = (folder / "a.abc").read_text() + "X:2\nT:Down\nM:3/4\nL:1/4\nK:G\nGAB|cd|ABc|]\n"
    (tmp_path / "a.abc").write_text(text)
    check(folder / "tunes" / "config.toml", [f"data.train={tmp_path / 'a.abc'}"])
    said = capsys.readouterr().out
    why = "line 5, bar 2: 1/2 long, less than the meter, 3/4"
    assert f"train: 1 tunes cannot be played (first: {tmp_path / 'a.abc'}:211: {why}); mend" in said


def test_what_is_wrong(folder, regard):
    rolls, tunes = folder / "rolls", folder / "tunes"
    assert "must end in .mid, .midi, .json" in one_line(play, rolls, save=Path("a.abc"))
    assert "must end in .mid, .midi, .abc" in one_line(play, tunes, save=Path("a.wav"))
    assert "must end in .png" in one_line(play, rolls, piano_roll=Path("a.jpg"))
    assert "--max-length does not support this kind of music" in one_line(play, tunes, max_length=3)
    assert "--temperature must be" in one_line(play, rolls, temperature=0.0)
    done = regard("play", str(rolls), "[[7]]")
    assert done.returncode == 1
    assert done.stderr.startswith("regard: BEGINNING, step 1: pitch 7 is not from 21 to 108")
    assert done.stderr.count("\n") == 1
    said = one_line(play, tunes, r"K:H\nABC")
    assert "none of 20 tunes can be played; the last: line 1, bar 1: K:H is not a key" in said


def test_lines_in_pieces_out(folder):
    run = Run.load(folder / "rolls")
    one, two = run.predict(["", "[[60]]"])
    assert len(json.loads(one.text)) == 5
    assert json.loads(two.text)[0] == [60]
    assert run.records(["[[60]]"]) == [{"beginning": [(60,)]}]
    assert len(run.task.details({"beginning": [(60,)]})["next"]) == 8
    with pytest.raises(ValueError, match=r"^standard input:2: not JSON"):
        run.predict(["", "x"], location="standard input:{}")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["model.kind=rnnlm"], "'rnnlm' does not read piano rolls; take roll_rnn or roll_gpt"),
        (["data.name=nottingham"], "'roll_rnn' does not read tunes in ABC, which are text; take"),
        (
            ["decode.top_k=3"],
            "decode.top_k has no effect: piano rolls have chords of notes",
        ),
        (
            ["train.carry_state=true"],
            "train.carry_state has no effect: piano rolls have chords",
        ),
        (["model.kind=roll_gpt", "model.heads=3"], "dim = 128 cannot be divided among heads = 3"),
    ],
)
def test_settings_that_do_not_fit(words, why):
    with pytest.raises(ValueError, match=why):
        resolve_settings({"task": "music"}, words)
