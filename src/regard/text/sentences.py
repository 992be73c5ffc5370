"""Split documents into sentences by a rule."""

import re

# After . ! ? … (and a closing quote or bracket) before white space, and at line breaks and <br>
SENTENCE_BREAK = re.compile(
    r"(?:(?<=[.!?…。！？])|(?<=[.!?…][\"'”’)\]]))\s+|\s*(?:\n|<br\s*/?>)+\s*"  # noqa: RUF001
)


def split_sentences(text: str) -> list[str]:
    """Return at least one sentence, which may be empty; only white space and <br> are removed."""
    return [part for part in SENTENCE_BREAK.split(text) if part.strip()] or [text.strip()]
