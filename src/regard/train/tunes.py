"""A run that writes tunes in ABC: a language model of them, asked for whole tunes."""

import re
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from regard.corpora.abc import FIELD, played
from regard.tasks.language import Completion
from regard.train.language import LanguageRun
from regard.train.run import Reply

TRIES = 20
STRIDE = 7919  # between the seeds of tries


class Tune(NamedTuple):
    """A tune that can be played, without its number."""

    text: str
    log_prob: float  # of what follows the beginning
    tries: int  # how many were drawn for it

    def numbered(self, number: int = 1) -> str:
        """As ABC wants it in a file."""
        return f"X:{number}\n{self.text}\n"


class TuneRun(LanguageRun):
    """How likely a tune is, and how it goes on."""

    counted: ClassVar = "tokens"
    settings: Any

    def drawn(self, beginnings: Sequence[str], tries: int = 0) -> list[tuple[str, Completion]]:
        """One tune for each beginning, whether it can be played or not; as they are the n-th."""
        decode = self.settings.decode
        again = decode.model_copy(update={"seed": decode.seed + STRIDE * tries})
        found = [outputs[0] for outputs in self.predict(beginnings, again)]
        pairs = zip(beginnings, found, strict=True)
        return [(self.joined(prompt, best), best) for prompt, best in pairs]

    def fault(self, text: str, best: Completion) -> str | None:
        """Why a tune cannot be played, if it cannot."""
        most = self.settings.decode.max_length
        if len(best.ids) >= most:
            return f"no end after {most} tokens; raise decode.max_length"
        try:
            played(text)
        except ValueError as error:
            return str(error)
        return None

    def compose(self, beginnings: Sequence[str], place: str = "text {}") -> list[Tune]:
        """A tune that can be played for each beginning; those that cannot are drawn anew."""
        given = [beginning_of(text) for text in beginnings]
        made: dict[int, Tune] = {}
        faults: dict[int, str] = {}
        for number in range(TRIES):
            left = [row for row in range(len(given)) if row not in made]
            # all are drawn again, so that no tune depends on how its neighbours went
            for row, (text, best) in enumerate(self.drawn(given, number) if left else ()):
                fault = self.fault(text, best)
                if row in left and fault is None:
                    made[row] = Tune(text.strip("\n"), best.log_prob, number + 1)
                elif row in left:
                    faults[row] = str(fault)
        for row in range(len(given)):
            if row not in made:
                what = f"none of {TRIES} tunes can be played; the last: {faults[row]}"
                remedy = "train longer, or lower decode.temperature"
                raise ValueError(f"{place.format(row + 1)}: {what}; {remedy}")
        return [made[row] for row in range(len(given))]

    def reply(self, texts: Sequence[str], place: str = "text {}") -> list[Reply]:
        """A tune after each beginning, with a number, and a blank line behind it."""
        found = self.compose(texts, place)
        return [
            Reply(
                tune.numbered(number),
                {"beginning": text, "abc": tune.numbered(number), **tune._asdict()},
            )
            for number, (text, tune) in enumerate(zip(texts, found, strict=True), 1)
        ]


def beginning_of(text: str) -> str:
    r"""Lines as a tune has them, from one line with `\n` for their ends; its number is not read."""
    lines = [line.strip() for line in re.split(r"\\n|\n", text)]
    fields = [(line, FIELD.fullmatch(line)) for line in lines if line]
    told = [f"{f[1]}:{f[2]}" if f else line for line, f in fields if not line.startswith("X:")]
    after = "\n" if told and FIELD.fullmatch(told[-1]) else ""
    return "\n".join(told) + after
