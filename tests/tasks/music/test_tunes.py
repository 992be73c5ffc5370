"""Tunes: normalized beginnings, tunes that can be played, and the seeds of attempts."""

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
UNPLAYABLE = "T:Up\nM:3/4\nL:1/4\nK:G\nGAB|cd|f2d|g3|]"


@pytest.fixture
def task() -> TuneTask:
    text = train_tokenizer("characters", [TUNE], 60)
    decode = {"max_length": 90}
    settings = resolve_settings(
        {"task": "music", "data": {"kind": "abc", "train": "a.abc"}, "model": {"kind": "rnnlm"}}
        | {"decode": decode}
    )
    task = BUILDER.build_task(settings, {"text": text}, build_model("rnnlm", {"size": text.size}))
    assert isinstance(task, TuneTask)
    return task


def test_beginnings_are_normalized():
    assert normalize_beginning(r"X:3\nT: Up\nM:3/4") == "T:Up\nM:3/4\n"
    assert normalize_beginning("K:G\nGAB|") == "K:G\nGAB|"
    assert normalize_beginning("") == ""


def script_attempts(task, texts):
    """Let the n-th attempt write the n-th text, whatever the prompt."""

    def complete(prompts, *, decoding, prefixes=(), on_progress=None):
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


def test_unplayable_tunes_are_sampled_again(task):
    script_attempts(task, [UNPLAYABLE, UNPLAYABLE, TUNE])
    first, second = task.predict([{"beginning": ""}, {"beginning": r"T:Up\nM:3/4"}])
    assert first.text == f"X:1\n{TUNE}\n"
    assert second.text == second.file_text == f"X:1\n{TUNE}\n"
    fields = second.as_dict()
    notes = fields.pop("notes")
    assert notes[0].keys() == {"pitch", "start", "length"}
    assert fields == {"abc": second.text, "text": TUNE, "log_prob": -1.0, "tries": 3}
    with pytest.raises(ValueError, match="voices = 3 is for piano rolls"):
        task.predict([{"beginning": ""}], voices=3)


def test_error_if_no_attempt_can_be_played(task):
    script_attempts(task, [UNPLAYABLE])
    message = f"input 1: none of {MAX_ATTEMPTS} tunes can be played; the last: line 5, bar 2"
    with pytest.raises(ValueError, match=message):
        task.predict([{"beginning": ""}])
    assert task.playback_error(TUNE, TextOutput("", 0.0, 0.0, [5] * 90)) == (
        "no end after 90 tokens; raise decode.max_length"
    )


def test_each_attempt_has_its_own_seed(task):
    first, second = (build_attempt(SampleConfig(seed=2), attempt) for attempt in (0, 1))
    outputs = [task.complete([""], decoding=d)[0][0].ids for d in (first, second, first)]
    assert outputs[0] == outputs[2] != outputs[1]
    assert math.isfinite(task.complete([""])[0][0].log_prob)


def test_notes_of_a_tune_are_in_quarter_notes():
    notes = TunePrediction("", 0.0, TUNE, 1).notes
    assert len(notes) == 9
    assert notes[0] == (67, 0, 1)
    assert notes[-1][1:] == (9, 3)
