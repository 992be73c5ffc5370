"""Extension of griffe: show the doctests of a docstring as code on the page of the API."""

import re

import griffe

DOCTEST = re.compile(r"(?:^>>>[^\n]*\n?(?:^(?!\s*$)[^\n]*\n?)*)+", re.MULTILINE)


def fence_doctests(text: str) -> str:
    """Put each doctest into a code block; it ends at an empty line, as for `doctest`."""
    return DOCTEST.sub(lambda match: f"```pycon\n{match[0].rstrip()}\n```\n", text)


class Doctests(griffe.Extension):
    """Fence the doctests of every docstring."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring:
            obj.docstring.value = fence_doctests(obj.docstring.value)
