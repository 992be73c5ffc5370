"""Music on the command line: every verb, files that others can read, and one line for what fails."""

import json

import pytest

from regard.config.load import resolve
from regard.train.fit import Fit

PIECES = [[[60, 64, 67], [60, 64, 67], [62, 65], []], [[55, 71], [57, 72], [59, 74]]] * 4
TUNE = "X:1\nT:Up\nM:3/4\nL:1/4\nK:G\nGAB|cde|f2d|g3|]\n\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A config of piano rolls, and one of a tune that is learnt by heart, both trained."""
    folder = tmp_path_factory.mktemp("music")
    (folder / "a.jsonl").write_text("".join(f"{json.dumps(piece)}\n" for piece in PIECES))
    (folder / "a.abc").write_text(TUNE * 30)
    rolls = dict.fromkeys(("train", "dev", "test"), str(folder / "a.jsonl"))
    tunes = dict.fromkeys(("train", "dev", "test"), str(folder / "a.abc"))
    made = {
        "rolls": {
            "data": {"kind": "rolls", **rolls},
            "model": {"kind": "roll_gpt", "dim": 8, "heads": 2, "layers": 1},
            "train": {"steps": 2, "sentences_per_batch": 4},
            "decode": {"max_length": 5},
        },
        "rnn": {
            "data": {"kind": "rolls", **rolls},
            "model": {"kind": "roll_rnn", "dim": 8},
            "train": {"steps": 1, "sentences_per_batch": 4},
        },
        "tunes": {
            "data": {"kind": "abc", **tunes},
            "model": {"kind": "rnnlm", "dim": 16, "hidden_dim": 48},
            "train": {"steps": 60, "sentences_per_batch": 8, "context": 48, "learning_rate": 0.02},
            "decode": {"max_length": 100, "temperature": 0.3},
        },
    }
    for name, settings in made.items():
        settings = resolve({"task": "music", **settings})
        list(Fit(settings, folder / name, lambda _: None).events())
    return folder


def fine(done):
    assert done.returncode == 0, done.stderr
    return done.stdout


def one_line(done):
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_a_piece(folder, regard, tmp_path):
    music21 = pytest.importorskip("music21")
    midi, picture, plain = (str(tmp_path / name) for name in ("a.mid", "a.png", "a.json"))
    words = ("play", str(folder / "rolls"), "[[60, 64]]", "--seed", "3", "--steps", "6")
    said = fine(regard(*words, "--to", midi, "--picture", picture))
    assert f"{midi} and {picture}: " in said
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    fine(regard(*words, "--to", plain))
    steps = json.loads((tmp_path / "a.json").read_text())
    assert steps[0] == [60, 64]
    assert len(steps) == 7
    read = music21.converter.parse(midi).flatten()
    heard = {(p.midi, float(note.offset)) for note in read.notes for p in note.pitches}
    begun = {(p, float(t)) for t, step in enumerate(steps) for p in step}
    begun -= {(p, t) for p, t in begun if (p, t - 1) in begun}  # held on
    assert heard == begun


def test_a_tune(folder, regard, tmp_path):
    where = str(tmp_path / "a.abc")
    assert "9 notes, 12 quarter notes long" in fine(
        regard("play", str(folder / "tunes"), "--to", where)
    )
    assert (tmp_path / "a.abc").read_text() == TUNE.removesuffix("\n")
    assert fine(regard("play", str(folder / "tunes"), r"T:Up\nM:3/4")) == TUNE.removesuffix("\n")


def test_other_verbs(folder, regard, tmp_path):
    assert 'kind = "roll_rnn"' in fine(regard("init", "music"))
    for name in ("rolls", "tunes"):
        config = str(folder / name / "config.toml")
        said = fine(regard("check", config))
        assert "also in train" in said  # dev and test are train
        assert json.loads(fine(regard("check", config, "--json")))["splits"]["train"]
    assert "pieces                                   8" in fine(
        regard("check", str(folder / "rolls" / "config.toml"))
    )
    assert "first:given" in fine(regard("score", str(folder / "rolls")))
    assert "perplexity" in fine(regard("score", str(folder / "tunes")))
    looked = fine(regard("look", str(folder / "rolls"), "[[60, 64, 67], [], [62]]"))
    assert "C4 E4 G4" in looked
    assert "next: " in looked
    assert "no attention to look at" in one_line(regard("look", str(folder / "rnn"), "[[60]]"))


def test_what_is_wrong(folder, regard, tmp_path):
    rolls, tunes = str(folder / "rolls"), str(folder / "tunes")
    assert "must end in .mid, .midi, .json" in one_line(regard("play", rolls, "--to", "a.abc"))
    assert "must end in .mid, .midi, .abc" in one_line(regard("play", tunes, "--to", "a.wav"))
    assert "must end in .png" in one_line(regard("play", rolls, "--picture", "a.jpg"))
    assert "--steps is for piano rolls" in one_line(regard("play", tunes, "--steps", "3"))
    assert "--temperature must be" in one_line(regard("play", rolls, "--temperature", "0"))
    assert "BEGINNING, step 1: pitch 7 is not" in one_line(regard("play", rolls, "[[7]]"))
    assert "none of 20 tunes can be played; the last: line 1" in one_line(
        regard("play", tunes, r"K:H\nABC")
    )


def test_lines_in_pieces_out(folder):
    from regard.train.run import Run

    run = Run.load(folder / "rolls")
    one, two = run.reply(["", "[[60]]"], "standard input:{}")
    assert len(json.loads(one.text)) == 5
    assert json.loads(two.text)[0] == [60]
    assert two.facts["beginning"] == [(60,)]
    assert len(run.further("[[60]]")["next"]) == 8
    with pytest.raises(ValueError, match="^standard input:2: not JSON"):
        run.reply(["", "x"], "standard input:{}")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["model.kind=rnnlm"], "'rnnlm' does not read piano rolls: take roll_rnn or roll_gpt"),
        (["data.name=nottingham"], "'roll_rnn' does not read tunes in ABC, which are text: take"),
        (["decode.top_k=3"], "decode.top_k is for tunes: each key is drawn by itself"),
        (["train.carry=true"], "train.carry is for rnnlm: roll_rnn begins each window anew"),
        (["model.kind=roll_gpt", "model.heads=3"], "dim = 128 cannot be divided among heads = 3"),
    ],
)
def test_settings_that_do_not_fit(words, why):
    with pytest.raises(ValueError, match=why):
        resolve({"task": "music"}, words)
