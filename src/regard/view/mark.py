"""Running text with names on stretches of it: in colour, or in brackets where there is none."""

from collections.abc import Iterable
from hashlib import blake2b

from regard.view.terminal import Surface, label

# Backgrounds that black letters can be read on, apart from each other for colour-blind eyes too:
# Okabe & Ito's palette without black, brightened; by their numbers in the 256 colours.
HUES = (215, 117, 79, 228, 75, 209, 218, 253)
LONGEST = 10_000  # cells of a stretch

Part = tuple[str, str]  # a stretch of text and its name; "" where it has none


def marked(parts: Iterable[Part], surface: Surface = Surface()) -> str:  # noqa: B008 (immutable)
    """The parts with spaces between. The same name has the same colour in every text."""
    coloured = surface.ink in ("256", "truecolor")
    found = []
    for text, name in parts:
        text, name = (label(one, LONGEST, surface.ink) for one in (text, name))
        if not name:
            found.append(text)
        elif coloured:
            found.append(f"\x1b[30;48;5;{hue(name)}m {text} \x1b[2m{name} \x1b[0m")
        else:
            found.append(f"[{text}]({name})")
    return " ".join(found)


def hue(name: str) -> int:
    return HUES[blake2b(name.encode(), digest_size=1).digest()[0] % len(HUES)]
