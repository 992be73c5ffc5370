"""Labeled spans of words as one tag a word, in three schemes.

    bio     B-X begins a span of X, I-X continues it, O is outside              (IOB2)
    iob1    I-X, and B-X only where a span of X directly follows another
    bioes   bio, and E-X for the last word of a span, S-X for a span of one word

`spans_from_tags` is as lenient as conlleval: an I-X that continues nothing begins a span.
`find_violation` is strict.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from regard.errors import InputError

TagScheme = Literal["bio", "iob1", "bioes"]
OUTSIDE = "O"
SCHEME_LETTERS: dict[TagScheme, str] = {"bio": "BI", "iob1": "BI", "bioes": "BIES"}


class TagSpan(NamedTuple):
    """A labeled span of the words `start` to `end` - 1."""

    label: str
    start: int
    end: int


def split_tag(tag: str) -> tuple[str, str]:
    """Return the letter and the label of a tag; ("O", "") for a word outside all spans."""
    letter, _, label = tag.partition("-")
    return letter, label


def spans_from_tags(tags: Iterable[str]) -> list[TagSpan]:
    """Return the spans of a tag sequence, in order; all three schemes are understood."""
    spans, label, start, number = list[TagSpan](), "", 0, -1
    previous_letter = OUTSIDE
    for number, tag in enumerate(tags):
        letter, name = split_tag(tag)
        if label and (name != label or letter in "BS" or previous_letter in "ES"):
            spans.append(TagSpan(label, start, number))
            label = ""
        if name and not label:
            label, start = name, number
        previous_letter = letter
    if label:
        spans.append(TagSpan(label, start, number + 1))
    return spans


def tags_from_spans(spans: Iterable[TagSpan], length: int, scheme: TagScheme = "bio") -> list[str]:
    """Return the tags of a sentence of `length` words; spans must not overlap."""
    tags, previous = [OUTSIDE] * length, TagSpan("", 0, 0)
    for span in sorted(spans, key=lambda item: item.start):
        if not previous.end <= span.start < span.end <= length:
            raise InputError(f"{span} overlaps {previous}, or is outside the {length} words")
        letters = ["B", *"I" * (span.end - span.start - 1)]
        if scheme == "bioes":
            letters[-1] = "S" if len(letters) == 1 else "E"
        elif scheme == "iob1" and not (previous.label == span.label and previous.end == span.start):
            letters[0] = "I"
        tags[span.start : span.end] = [f"{letter}-{span.label}" for letter in letters]
        previous = span
    return tags


def convert_tags(tags: Sequence[str], scheme: TagScheme, target_scheme: TagScheme) -> list[str]:
    """Convert tags of one scheme to another."""
    return (
        tags_from_spans(spans_from_tags(tags), len(tags), target_scheme)
        if scheme != target_scheme
        else list(tags)
    )


def find_violation(tags: Sequence[str], scheme: TagScheme = "bio") -> tuple[int, str] | None:
    """Return the index of the first tag that violates the scheme and the reason, or None."""
    for number, tag in enumerate([*tags, OUTSIDE]):
        letter, label = split_tag(tag)
        at_end = number == len(tags)
        if not at_end and not (tag == OUTSIDE or (letter in SCHEME_LETTERS[scheme] and label)):
            expected = ", ".join(f"{prefix}-X" for prefix in SCHEME_LETTERS[scheme])
            return number, f"{tag!r} is not one of {expected} or {OUTSIDE}"
        if not can_follow(tags[number - 1] if number else OUTSIDE, tag, scheme):
            previous = tags[number - 1] if number else "the start"
            return min(number, len(tags) - 1), f"{'the end' if at_end else tag} after {previous}"
    return None


def can_follow(previous: str, tag: str, scheme: TagScheme = "bio") -> bool:
    """Return whether `tag` may follow `previous`; O stands for both ends of a sentence."""
    (previous_letter, previous_label), (letter, label) = split_tag(previous), split_tag(tag)
    if scheme == "iob1":  # B-X only separates two adjacent spans of X
        return letter != "B" or (previous_letter in "BI" and previous_label == label)
    if scheme == "bioes":
        is_inside = previous_letter in "BI" and bool(previous_label)
        return (
            (letter in "IE" and previous_label == label) if is_inside else letter not in ("I", "E")
        )
    return letter != "I" or (previous_letter in "BI" and previous_label == label)
