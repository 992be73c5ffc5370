"""Running text with names on stretches of it, in colour."""

from collections.abc import Iterable
from hashlib import blake2b

from regard.view.terminal import label

# Backgrounds that black letters can be read on, apart from each other for colour-blind eyes too:
# Okabe & Ito's palette without black, brightened; by their numbers in the 256 colours.
HUES = (215, 117, 79, 228, 75, 209, 218, 253)
LONGEST = 10_000  # cells of a stretch

Part = tuple[str, str]  # a stretch of text and its name; "" where it has none


def marked(parts: Iterable[Part]) -> str:
    """The parts with spaces between. The same name has the same colour in every text."""
    found = []
    for text, name in parts:
        text, name = (label(one, LONGEST) for one in (text, name))
        shown = f"\x1b[30;48;5;{hue(name)}m {text} \x1b[2m{name} \x1b[0m" if name else text
        found.append(shown)
    return " ".join(found)


def hue(name: str) -> int:
    return HUES[blake2b(name.encode(), digest_size=1).digest()[0] % len(HUES)]
