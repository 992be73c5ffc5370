"""Tunes: beginnings as they are read, tunes that can be played, and what each draw depends on."""

import math

import pytest

from regard.config.decode import SampleConfig
from regard.models.catalogue import build_model
from regard.tasks.generation import TextOutput
from regard.tasks.load import resolve_settings
from regard.tasks.music.build import BUILDER, MAX_ATTEMPTS, build_attempt
from regard.tasks.music.tunes import TunePrediction, TuneTask, normalize_beginning
from regard.text.train import train_tokenizer

TUNE = "T:Up\nM:3/4\nL:1/4\nK:G\nGAB|cde|f2d|g3|]"
BAD = "T:Up\nM:3/4\nL:1/4\nK:G\nGAB|cd|f2d|g3|]"


@pytest.fixture
def tunes() -> TuneTask:
    text = train_tokenizer("characters", [TUNE], 60)
    decode = {"max_length": 90}
    settings = resolve_settings(
        {"task": "music", "data": {"kind": "abc", "train": "a.abc"}, "model": {"kind": "rnnlm"}}
        | {"decode": decode}
    )
    task = BUILDER.build_task(settings, {"text": text}, build_model("rnnlm", {"size": text.size}))
    assert isinstance(task, TuneTask)
    return task


def test_beginnings():
    assert normalize_beginning(r"X:3\nT: Up\nM:3/4") == "T:Up\nM:3/4\n"
    assert normalize_beginning("K:G\nGAB|") == "K:G\nGAB|"
    assert normalize_beginning("") == ""


def scripted(task, texts):
    """Let the n-th attempt write the n-th text, whatever the prompt."""

    def complete(prompts, *, decoding, on_progress=None):
        text = texts[min(task.decodings.index(decoding), len(texts) - 1)]
        return [
            [
                TextOutput(
                    text[len(prompt) :], -1.0, -1.0, task.text.encode_ids([text])[0][len(prompt) :]
                )
            ]
            for prompt in prompts
        ]

    task.complete = complete


def test_what_cannot_be_played_is_drawn_again(tunes):
    scripted(tunes, [BAD, BAD, TUNE])
    one, two = tunes.predict([{"beginning": ""}, {"beginning": r"T:Up\nM:3/4"}])
    assert one.text == f"X:1\n{TUNE}\n"
    assert two.text == two.file_text == f"X:2\n{TUNE}\n"
    assert two.as_dict() == {"abc": two.text, "text": TUNE, "log_prob": -1.0, "tries": 3}
    with pytest.raises(ValueError, match="voices = 3 is for piano rolls"):
        tunes.predict([{"beginning": ""}], voices=3)


def test_what_can_never_be_played(tunes):
    scripted(tunes, [BAD])
    said = f"input 1: none of {MAX_ATTEMPTS} tunes can be played; the last: line 5, bar 2"
    with pytest.raises(ValueError, match=said):
        tunes.predict([{"beginning": ""}])
    assert tunes.playback_error(TUNE, TextOutput("", 0.0, 0.0, [5] * 90)) == (
        "no end after 90 tokens; raise decode.max_length"
    )


def test_attempts_have_seeds_of_their_own(tunes):
    first, second = (build_attempt(SampleConfig(seed=2), attempt) for attempt in (0, 1))
    drawn = [tunes.complete([""], decoding=one)[0][0].ids for one in (first, second, first)]
    assert drawn[0] == drawn[2] != drawn[1]
    assert math.isfinite(tunes.complete([""])[0][0].log_prob)


def test_notes():
    notes = TunePrediction("", 0.0, TUNE, 1).notes
    assert len(notes) == 9
    assert notes[0] == (67, 0, 1)
    assert notes[-1][1:] == (9, 3)
