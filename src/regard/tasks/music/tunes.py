"""Tunes in ABC notation: a language model that composes tunes that can be played."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from regard.data.corpus import Record
from regard.data.formats.abc_notation import FIELD, parse_tune
from regard.errors import InputError
from regard.files import JsonObject
from regard.models.protocols import AnyLanguageModel
from regard.tasks.base import FieldValue, InputField, ProgressCallback
from regard.tasks.generation import Decoding, TextOutput
from regard.tasks.language_view import language_map
from regard.tasks.music.composition import Composer, MusicPrediction
from regard.tasks.prefix import OutputPrefix
from regard.tasks.text_stream import TextStreamTask
from regard.text.special_ids import AnyTokenizer
from regard.view.attention_map import AttentionMap
from regard.view.midi import MidiNote

QUARTERS_PER_WHOLE = 4  # notes of a tune have lengths in whole notes


@dataclass(frozen=True)
class TunePrediction(MusicPrediction):
    """A tune that can be played; `text` is ABC with a number, `tune` has none."""

    tune: str
    tries: int  # attempts until this tune

    def as_dict(self) -> JsonObject:
        return {
            "abc": self.text,
            "text": self.tune,
            "log_prob": self.log_prob,
            "tries": self.tries,
            "notes": self.note_dicts(),
        }

    @property
    def notes(self) -> list[MidiNote]:
        return [
            (note.pitch, note.start * QUARTERS_PER_WHOLE, note.length * QUARTERS_PER_WHOLE)
            for note in parse_tune(self.tune)
            if note.pitch is not None
        ]

    @property
    def file_text(self) -> str:
        return self.text


class TuneTask(TextStreamTask, Composer):
    """A language model of tunes.

    `decodings` have different seeds: the next one is used if a tune cannot be played.
    """

    name: ClassVar = "music"
    input_fields = (
        InputField("beginning", "Beginning in ABC notation", "tune", is_required=False),
    )
    prompt_field: ClassVar = "beginning"
    text_suffix: ClassVar = ".abc"
    play_options: ClassVar = ()

    def __init__(
        self,
        model: AnyLanguageModel,
        text: AnyTokenizer,
        *,
        decodings: Sequence[Decoding],
        context_length: int = 128,
        carry_state: bool = False,
        evaluation_stride: int | None = None,
        label_smoothing: float = 0.0,
    ):
        super().__init__(
            model,
            text,
            decoding=decodings[0],
            context_length=context_length,
            carry_state=carry_state,
            evaluation_stride=evaluation_stride,
            label_smoothing=label_smoothing,
        )
        self.decodings = tuple(decodings)

    def predict(
        self,
        records: Sequence[Record],
        *,
        on_progress: ProgressCallback | None = None,
        voices: int | None = None,
    ) -> list[TunePrediction]:
        """Return a tune that can be played for each beginning."""
        if voices is not None:
            raise InputError(f"voices = {voices} is for piano rolls, not for tunes; leave it out")
        prompts = [normalize_beginning(self.prompt(record)) for record in records]
        prefixes = [self.prefix(record) for record in records]
        tunes: dict[int, TunePrediction] = {}
        problems: dict[int, str] = {}
        for attempt, decoding in enumerate(self.decodings, 1):
            if len(tunes) == len(prompts):
                break
            # all tunes are sampled again, so that none depends on the other records
            for row, (text, output) in enumerate(self.sample_tunes(prompts, decoding, prefixes)):
                problem = self.playback_error(text, output)
                if problem is not None:
                    problems[row] = problem
                elif row not in tunes:
                    tune = text.strip("\n")
                    abc = f"X:1\n{tune}\n"
                    tunes[row] = TunePrediction(abc, output.log_prob, tune, attempt)
        for row in range(len(prompts)):
            if row not in tunes:
                raise InputError(
                    f"input {row + 1}: none of {len(self.decodings)} tunes can be played; the "
                    f"last: {problems[row]}; train longer, or lower decode.temperature"
                )
        if on_progress is not None:
            on_progress(len(records))
        return [tunes[row] for row in range(len(prompts))]

    def output_map(self, record: Record) -> AttentionMap:
        tune, beginning = self.predict([record])[0].tune, normalize_beginning(self.prompt(record))
        ids = self.text_ids(tune)
        return language_map(self, ids, tune, len(ids) - len(self.text_ids(beginning)))

    def form_values(self, record: Record) -> dict[str, FieldValue]:
        """Return the fields of a tune, before its notes."""
        lines = self.prompt(record).splitlines()
        return {"beginning": "\n".join(line for line in lines if FIELD.fullmatch(line))}

    def sample_tunes(
        self,
        beginnings: Sequence[str],
        decoding: Decoding | None = None,
        prefixes: Sequence[OutputPrefix] = (),
    ) -> list[tuple[str, TextOutput]]:
        """Return one tune for each beginning, whether it can be played or not."""
        completed = self.complete(beginnings, prefixes=prefixes, decoding=decoding)
        outputs = [best[0] for best in completed]
        pairs = zip(beginnings, outputs, strict=True)
        return [(self.join_continuation(beginning, best), best) for beginning, best in pairs]

    def playback_error(self, text: str, output: TextOutput) -> str | None:
        """Return why a tune cannot be played, or None if it can."""
        max_length = self.decoding.max_length
        if len(output.ids) >= max_length:
            return f"no end after {max_length} tokens; raise decode.max_length"
        try:
            parse_tune(text)
        except ValueError as error:
            return str(error)
        return None


def normalize_beginning(text: str) -> str:
    r"""Return the lines of a tune from one line with `\n` between them, without its number."""
    lines = [line.strip() for line in re.split(r"\\n|\n", text)]
    fields = [(line, FIELD.fullmatch(line)) for line in lines if line]
    normalized_lines = [
        f"{field[1]}:{field[2]}" if field else line
        for line, field in fields
        if not line.startswith("X:")
    ]
    ending = "\n" if normalized_lines and FIELD.fullmatch(normalized_lines[-1]) else ""
    return "\n".join(normalized_lines) + ending
