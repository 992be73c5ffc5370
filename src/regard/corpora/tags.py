"""Stretches of words with a name, as one tag for each word, in three ways to write them.

    bio     B-X begins a stretch of X, I-X goes on with it, O is outside        (IOB2)
    iob1    I-X, and B-X only where a stretch of X follows right after another
    bioes   bio, and E-X for the last word of a stretch, S-X for one of a single word

Reading is as lenient as conlleval: an I-X that continues nothing begins a stretch. `broken` is
strict.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

Scheme = Literal["bio", "iob1", "bioes"]
OUTSIDE = "O"
LETTERS: dict[Scheme, str] = {"bio": "BI", "iob1": "BI", "bioes": "BIES"}


class Span(NamedTuple):
    """Words from `start` to before `end`."""

    label: str
    start: int
    end: int


def parsed(tag: str) -> tuple[str, str]:
    """The letter of a tag and what it names; ("O", "") outside."""
    letter, _, label = tag.partition("-")
    return letter, label


def spans(tags: Iterable[str]) -> list[Span]:
    """The stretches that a row of tags names, in order, whatever its scheme."""
    found, label, start, number = list[Span](), "", 0, -1
    last = OUTSIDE
    for number, tag in enumerate(tags):
        letter, name = parsed(tag)
        if label and (name != label or letter in "BS" or last in "ES"):
            found.append(Span(label, start, number))
            label = ""
        if name and not label:
            label, start = name, number
        last = letter
    if label:
        found.append(Span(label, start, number + 1))
    return found


def tags_of(found: Iterable[Span], length: int, scheme: Scheme = "bio") -> list[str]:
    """A tag for each of so many words; stretches must not overlap."""
    tags, before = [OUTSIDE] * length, Span("", 0, 0)
    for span in sorted(found, key=lambda one: one.start):
        if not before.end <= span.start < span.end <= length:
            raise ValueError(f"{span} overlaps {before}, or is not within {length} words")
        letters = ["B", *"I" * (span.end - span.start - 1)]
        if scheme == "bioes":
            letters[-1] = "S" if len(letters) == 1 else "E"
        elif scheme == "iob1" and not (before.label == span.label and before.end == span.start):
            letters[0] = "I"
        tags[span.start : span.end] = [f"{letter}-{span.label}" for letter in letters]
        before = span
    return tags


def converted(tags: Sequence[str], scheme: Scheme, into: Scheme) -> list[str]:
    """The same stretches, written in another way."""
    return tags_of(spans(tags), len(tags), into) if scheme != into else list(tags)


def broken(tags: Sequence[str], scheme: Scheme = "bio") -> tuple[int, str] | None:
    """The first tag that the scheme does not allow where it stands, and why; None: all are well."""
    for number, tag in enumerate([*tags, OUTSIDE]):
        letter, label = parsed(tag)
        at_end = number == len(tags)
        if not at_end and not (tag == OUTSIDE or (letter in LETTERS[scheme] and label)):
            wanted = ", ".join(f"{one}-X" for one in LETTERS[scheme])
            return number, f"{tag!r} is not one of {wanted} or {OUTSIDE}"
        if not follows(tags[number - 1] if number else OUTSIDE, tag, scheme):
            before = tags[number - 1] if number else "the start"
            return min(number, len(tags) - 1), f"{'the end' if at_end else tag} after {before}"
    return None


def follows(before: str, tag: str, scheme: Scheme = "bio") -> bool:
    """Whether `tag` may come right after `before`; O stands for both ends of a sentence."""
    (last, old), (letter, new) = parsed(before), parsed(tag)
    if scheme == "iob1":  # B-X only parts a stretch of X from another
        return letter != "B" or (last in "BI" and old == new)
    if scheme == "bioes":
        inside = last in "BI" and bool(old)
        return (letter in "IE" and old == new) if inside else letter not in ("I", "E")
    return letter != "I" or (last in "BI" and old == new)
