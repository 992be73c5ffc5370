"""Where sentences end, by a rule: good enough for documents that are read sentence by sentence."""

import re

# After . ! ? … (and a closing quote or bracket) before white space; at line breaks, <br> too.
SENTENCE_BREAK = re.compile(
    r"(?:(?<=[.!?…。！？])|(?<=[.!?…][\"'”’)\]]))\s+|\s*(?:\n|<br\s*/?>)+\s*"  # noqa: RUF001
)


def split_sentences(text: str) -> list[str]:
    """At least one, which may be empty; nothing but white space and <br> gets lost."""
    return [part for part in SENTENCE_BREAK.split(text) if part.strip()] or [text.strip()]
