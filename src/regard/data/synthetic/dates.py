"""Dates written in twenty languages, with their ISO 8601 form as the target.

"Dienstag, 3. Mai 1994", "May 3rd, 94", "1994年5月3日" -> "1994-05-03". Names and formats are those
of Unicode CLDR, read through Babel. Every text is unambiguous:

- Years are 1950 to 2049, so that two digits are enough ("94" is 1994, "04" is 2004). Two-digit
  years occur only where the day comes before the year.
- A month in digits occurs only with the year first, or as day.month.year with full stops: never
  3/5 or 3-5.
"""

import re
from collections.abc import Sequence
from datetime import date, timedelta
from functools import cache
from hashlib import blake2b
from random import Random
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from regard.data.corpus import Record, check_name
from regard.data.synthetic.base import SyntheticCorpus
from regard.errors import InputError

if TYPE_CHECKING:
    from babel import Locale

LANGUAGES = (
    *("en", "de", "nl", "sv", "da", "nb", "fr", "es", "it", "pt"),
    *("ro", "pl", "cs", "ru", "uk", "el", "hu", "tr", "fi", "ja"),
)
T = TypeVar("T")
FIRST_DAY, LAST_DAY = date(1950, 1, 1), date(2049, 12, 31)
CLDR_FORMATS = ("full", "long", "medium", "short")
CLDR_SKELETONS = ("yMMMEd", "yMMMd")
EXTRA_LOCALES = {"en": ("en_GB",)}
# CLDR has no "3rd"; {th} is not one of its fields.
EXTRA_TEMPLATES = {"en": ("{th} of {MMMM} {y}", "the {th} of {MMMM} {y}")}
ORDINAL_LANGUAGES = {"en"}

TWO_DIGIT_YEAR_RATE, LOWERCASE_RATE, UPPERCASE_RATE = 0.15, 0.1, 0.1
# A field of a CLDR pattern, or quoted text, or anything else.
PATTERN_PART = re.compile(r"'(?P<text>[^']*)'|(?P<field>([A-Za-z])\3*)|(?P<other>[^A-Za-z']+)")
PLAIN_SPACES = str.maketrans("\u00a0\u202f", "  ")


class DateStyle(NamedTuple):
    """A date format of one language: a template with fields like `{MMMM}`, and their names."""

    template: str
    months: dict[str, dict[int, str]]
    weekdays: dict[str, dict[int, str]]

    @property
    def can_shorten_year(self) -> bool:
        """Return whether the day comes before the year: then 94 can only be the year."""
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


class Dates(SyntheticCorpus):
    """A corpus of `size` training pairs and `held_out` each in dev and test.

    Each date belongs to one split, for every seed, so test dates never occur in training. A pair
    depends on the seed and its index alone.
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
            raise InputError("languages are empty; name at least one, such as 'en'")
        for language in languages:
            check_name("language", language, LANGUAGES)
        self.languages = tuple(languages)

    def example(self, split: str, index: int) -> Record:
        """Return pair `index` of a split, without drawing those before it."""
        rng = Random(f"regard dates {self.seed} {split} {index}")
        day = _choose(rng, split_days(split))
        style = _choose(rng, date_styles(_choose(rng, self.languages)))
        text = style.write(
            day, two_digits=rng.random() < TWO_DIGIT_YEAR_RATE and style.can_shorten_year
        )
        case = rng.random()
        if case < LOWERCASE_RATE:
            text = text.lower()
        elif case < LOWERCASE_RATE + UPPERCASE_RATE:
            text = text.upper()
        return {"source": text, "target": day.isoformat()}

    def describe(self) -> str:
        return (
            f"dates: {self.size:,} dates of {FIRST_DAY.year} to {LAST_DAY.year}, written in "
            f"{len(self.languages)} languages; from Unicode CLDR through Babel (Unicode-3.0)"
        )


def _choose(rng: Random, items: Sequence[T]) -> T:
    # Python promises the same numbers in all versions for `random()` only.
    return items[int(rng.random() * len(items))]


@cache
def split_days(split: str) -> tuple[date, ...]:
    """Return the dates of a split: by a stable hash, 80 % train, 10 % dev, 10 % test."""
    all_days = (FIRST_DAY + timedelta(offset) for offset in range((LAST_DAY - FIRST_DAY).days + 1))
    return tuple(day for day in all_days if _day_split(day) == split)


def _day_split(day: date) -> str:
    digest = blake2b(day.isoformat().encode(), digest_size=8).digest()
    return {0: "dev", 1: "test"}.get(int.from_bytes(digest) % 10, "train")


@cache
def date_styles(language: str) -> tuple[DateStyle, ...]:
    """Return the unambiguous date formats of a language."""
    from babel import Locale

    styles_by_template: dict[str, DateStyle] = {}
    for name in (language, *EXTRA_LOCALES.get(language, ())):
        locale = Locale.parse(name)
        patterns = [locale.date_formats[name].pattern for name in CLDR_FORMATS]
        patterns += [locale.datetime_skeletons[name].pattern for name in CLDR_SKELETONS]
        templates = [_to_template(pattern) for pattern in patterns]
        if language in ORDINAL_LANGUAGES:
            templates += [template.replace("{d}", "{th}") for template in templates]
        for template in (*templates, *EXTRA_TEMPLATES.get(language, ())):
            if _is_unambiguous(template):
                styles_by_template[template] = DateStyle(template, *_calendar_names(locale))
    return tuple(styles_by_template.values())


def _to_template(pattern: str) -> str:
    return "".join(
        f"{{{part['field']}}}" if part["field"] else part["text"] or part["other"]
        for part in PATTERN_PART.finditer(pattern.translate(PLAIN_SPACES))
    )


def _is_unambiguous(template: str) -> bool:
    has_month_name = any(f"{{{field}}}" in template for field in ("MMM", "MMMM", "LLL", "LLLL"))
    year_first = template.startswith("{y}")
    return has_month_name or year_first or bool(re.match(r"\{d+\}\. ?\{M+\}\. ?\{y", template))


def _calendar_names(
    locale: "Locale",
) -> tuple[dict[str, dict[int, str]], dict[str, dict[int, str]]]:
    """Return the names of months (M in a date, L alone) and weekdays (E in a date, c alone)."""
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
