"""A run that writes tunes in ABC: a language model of them, asked for whole tunes."""

import re
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from regard.data.formats.abc_notation import FIELD, parse_tune
from regard.tasks.language import CompletionPrediction
from regard.train.language import LanguageRun
from regard.train.run import Prediction

MAX_ATTEMPTS = 20
SEED_STRIDE = 7919  # between the seeds of tries


class TunePrediction(NamedTuple):
    """A tune that can be played, without its number."""

    text: str
    log_prob: float  # of what follows the beginning
    tries: int  # how many were drawn for it

    def to_abc(self, number: int = 1) -> str:
        """As ABC wants it in a file."""
        return f"X:{number}\n{self.text}\n"


class TuneRun(LanguageRun):
    """How likely a tune is, and how it goes on."""

    unit: ClassVar = "tokens"
    settings: Any

    def sample_tunes(
        self, beginnings: Sequence[str], attempt: int = 0
    ) -> list[tuple[str, CompletionPrediction]]:
        """One tune for each beginning, whether it can be played or not; as they are the n-th."""
        decode = self.settings.decode
        seeded_decode = decode.model_copy(update={"seed": decode.seed + SEED_STRIDE * attempt})
        completions = [outputs[0] for outputs in self.predict(beginnings, seeded_decode)]
        pairs = zip(beginnings, completions, strict=True)
        return [(self.join_continuation(prompt, best), best) for prompt, best in pairs]

    def playback_error(self, text: str, best: CompletionPrediction) -> str | None:
        """Why a tune cannot be played, if it cannot."""
        max_length = self.settings.decode.max_length
        if len(best.ids) >= max_length:
            return f"no end after {max_length} tokens; raise decode.max_length"
        try:
            parse_tune(text)
        except ValueError as error:
            return str(error)
        return None

    def compose(
        self, beginnings: Sequence[str], location_format: str = "text {}"
    ) -> list[TunePrediction]:
        """A tune that can be played for each beginning; those that cannot are drawn anew."""
        prompts = [normalize_beginning(text) for text in beginnings]
        tunes: dict[int, TunePrediction] = {}
        problems: dict[int, str] = {}
        for attempt in range(MAX_ATTEMPTS):
            unfinished_rows = [row for row in range(len(prompts)) if row not in tunes]
            # all are drawn again, so that no tune depends on how its neighbours went
            for row, (text, best) in enumerate(
                self.sample_tunes(prompts, attempt) if unfinished_rows else ()
            ):
                problem = self.playback_error(text, best)
                if row in unfinished_rows and problem is None:
                    tunes[row] = TunePrediction(text.strip("\n"), best.log_prob, attempt + 1)
                elif row in unfinished_rows:
                    problems[row] = str(problem)
        for row in range(len(prompts)):
            if row not in tunes:
                message = f"none of {MAX_ATTEMPTS} tunes can be played; the last: {problems[row]}"
                remedy = "train longer, or lower decode.temperature"
                raise ValueError(f"{location_format.format(row + 1)}: {message}; {remedy}")
        return [tunes[row] for row in range(len(prompts))]

    def predict_lines(
        self, lines: Sequence[str], location_format: str = "text {}"
    ) -> list[Prediction]:
        """A tune after each beginning, with a number, and a blank line behind it."""
        tunes = self.compose(lines, location_format)
        return [
            Prediction(
                tune.to_abc(number),
                {"beginning": text, "abc": tune.to_abc(number), **tune._asdict()},
            )
            for number, (text, tune) in enumerate(zip(lines, tunes, strict=True), 1)
        ]


def normalize_beginning(text: str) -> str:
    r"""Lines as a tune has them, from one line with `\n` for their ends; its number is not read."""
    lines = [line.strip() for line in re.split(r"\\n|\n", text)]
    fields = [(line, FIELD.fullmatch(line)) for line in lines if line]
    normalized_lines = [
        f"{f[1]}:{f[2]}" if f else line for line, f in fields if not line.startswith("X:")
    ]
    ending = "\n" if normalized_lines and FIELD.fullmatch(normalized_lines[-1]) else ""
    return "\n".join(normalized_lines) + ending
