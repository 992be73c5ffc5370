"""Dates as they are written in twenty languages -> ISO 8601, as many as you like.

"Dienstag, 3. Mai 1994", "May 3rd, 94", "1994年5月3日" -> "1994-05-03". Names and formats are those
of Unicode CLDR, read through Babel. A text has one reading only:

- years are 1950 to 2049, so that two digits are enough ("94" is 1994, "04" is 2004), and two are
  written only where the day comes before the year;
- a month in digits is written only with the year first, or as day.month.year with full stops:
  never 3/5 or 3-5.
"""

import re
from collections.abc import Sequence
from datetime import date, timedelta
from functools import cache
from hashlib import blake2b
from random import Random
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from regard.corpora.corpus import Record, check_name
from regard.corpora.made import Made

if TYPE_CHECKING:
    from babel import Locale

LANGUAGES = (
    *("en", "de", "nl", "sv", "da", "nb", "fr", "es", "it", "pt"),
    *("ro", "pl", "cs", "ru", "uk", "el", "hu", "tr", "fi", "ja"),
)
T = TypeVar("T")
FIRST, LAST = date(1950, 1, 1), date(2049, 12, 31)
FORMATS = ("full", "long", "medium", "short")
SKELETONS = ("yMMMEd", "yMMMd")
MORE_LOCALES = {"en": ("en_GB",)}
# CLDR knows no "3rd"; {th} is ours.
MORE_TEMPLATES = {"en": ("{th} of {MMMM} {y}", "the {th} of {MMMM} {y}")}
WITH_ORDINALS = {"en"}

TWO_DIGITS, LOWER, UPPER = 0.15, 0.1, 0.1  # how often
# One field of a CLDR pattern, or quoted text, or anything else.
PART = re.compile(r"'(?P<text>[^']*)'|(?P<field>([A-Za-z])\3*)|(?P<other>[^A-Za-z']+)")
SPACES = str.maketrans("\u00a0\u202f", "  ")


class Style(NamedTuple):
    """One way of one language to write a date: fields as `{MMMM}`, and the names that fill them."""

    template: str
    months: dict[str, dict[int, str]]
    weekdays: dict[str, dict[int, str]]

    @property
    def may_shorten(self) -> bool:
        """With the day before the year, 94 can be nothing but the year."""
        return bool(re.search(r"\{(d|dd|th)\}.*\{y\}", self.template))

    def write(self, day: date, *, two_digits: bool = False) -> str:
        year = f"{day.year % 100:02d}"
        fields = {
            "y": year if two_digits else str(day.year),
            "yy": year,
            "M": str(day.month),
            "MM": f"{day.month:02d}",
            "d": str(day.day),
            "dd": f"{day.day:02d}",
            "th": _ordinal(day.day),
            **{name: names[day.month] for name, names in self.months.items()},
            **{name: names[day.weekday()] for name, names in self.weekdays.items()},
        }
        return self.template.format_map(fields)


class Dates(Made):
    """A corpus of `size` pairs to train on and `held_out` each in dev and test.

    A date is in one split only, whatever the seed: no date of the test is ever trained on. The
    n-th pair of a split depends on nothing but the seed and n.
    """

    def __init__(
        self,
        size: int = 100_000,
        *,
        seed: int = 0,
        languages: Sequence[str] = LANGUAGES,
        held_out: int = 1000,
    ) -> None:
        super().__init__(size, seed, held_out)
        if not languages:
            raise ValueError("languages are empty: name at least one, such as 'en'")
        for language in languages:
            check_name("language", language, LANGUAGES)
        self.languages = tuple(languages)

    def example(self, split: str, number: int) -> Record:
        """The n-th pair, without those before it."""
        chance = Random(f"regard dates {self.seed} {split} {number}")
        day = _pick(chance, days(split))
        style = _pick(chance, styles(_pick(chance, self.languages)))
        text = style.write(day, two_digits=chance.random() < TWO_DIGITS and style.may_shorten)
        case = chance.random()
        if case < LOWER:
            text = text.lower()
        elif case < LOWER + UPPER:
            text = text.upper()
        return {"source": text, "target": day.isoformat()}

    def describe(self) -> str:
        return (
            f"dates: {self.size:,} dates of {FIRST.year} to {LAST.year}, written in "
            f"{len(self.languages)} languages; from Unicode CLDR through Babel (Unicode-3.0)"
        )


def _pick(chance: Random, things: Sequence[T]) -> T:
    # Only `random()` is promised to be the same in every version of Python.
    return things[int(chance.random() * len(things))]


@cache
def days(split: str) -> tuple[date, ...]:
    """Eight of ten dates are for training, one for dev, one for the test; by a stable hash."""
    every = (FIRST + timedelta(number) for number in range((LAST - FIRST).days + 1))
    return tuple(day for day in every if _split_of(day) == split)


def _split_of(day: date) -> str:
    tenth = blake2b(day.isoformat().encode(), digest_size=8).digest()
    return {0: "dev", 1: "test"}.get(int.from_bytes(tenth) % 10, "train")


@cache
def styles(language: str) -> tuple[Style, ...]:
    """The formats of a language that can be read in one way only."""
    from babel import Locale

    found: dict[str, Style] = {}
    for name in (language, *MORE_LOCALES.get(language, ())):
        locale = Locale.parse(name)
        patterns = [locale.date_formats[name].pattern for name in FORMATS]
        patterns += [locale.datetime_skeletons[name].pattern for name in SKELETONS]
        templates = [_template(pattern) for pattern in patterns]
        if language in WITH_ORDINALS:
            templates += [template.replace("{d}", "{th}") for template in templates]
        for template in (*templates, *MORE_TEMPLATES.get(language, ())):
            if _has_one_reading(template):
                found[template] = Style(template, *_names(locale))
    return tuple(found.values())


def _template(pattern: str) -> str:
    return "".join(
        f"{{{part['field']}}}" if part["field"] else part["text"] or part["other"]
        for part in PART.finditer(pattern.translate(SPACES))
    )


def _has_one_reading(template: str) -> bool:
    named = any(f"{{{field}}}" in template for field in ("MMM", "MMMM", "LLL", "LLLL"))
    year_first = template.startswith("{y}")
    return named or year_first or bool(re.match(r"\{d+\}\. ?\{M+\}\. ?\{y", template))


def _names(locale: "Locale") -> tuple[dict[str, dict[int, str]], dict[str, dict[int, str]]]:
    """Months are M inside a date and L alone; weekdays are E inside and c alone."""
    months, days = locale.months, locale.days
    return (
        {
            "MMM": dict(months["format"]["abbreviated"]),
            "MMMM": dict(months["format"]["wide"]),
            "LLL": dict(months["stand-alone"]["abbreviated"]),
            "LLLL": dict(months["stand-alone"]["wide"]),
        },
        {
            "E": dict(days["format"]["abbreviated"]),
            "EEE": dict(days["format"]["abbreviated"]),
            "EEEE": dict(days["format"]["wide"]),
            "ccc": dict(days["stand-alone"]["abbreviated"]),
            "cccc": dict(days["stand-alone"]["wide"]),
        },
    )


def _ordinal(number: int) -> str:
    teens = number in (11, 12, 13)
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
