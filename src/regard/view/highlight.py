"""Running text with names on stretches of it, in colour."""

from collections.abc import Iterable
from hashlib import blake2b

from regard.view.terminal import label

# Backgrounds that black letters can be read on, apart from each other for colour-blind eyes too:
# Okabe & Ito's palette without black, brightened; by their numbers in the 256 colours.
HIGHLIGHT_COLORS = (215, 117, 79, 228, 75, 209, 218, 253)
MAX_SPAN_CELLS = 10_000  # cells of a stretch

LabeledSpan = tuple[str, str]  # a stretch of text and its name; "" where it has none


def render_highlighted(spans: Iterable[LabeledSpan]) -> str:
    """The parts with spaces between. The same name has the same colour in every text."""
    rendered_spans = []
    for text, name in spans:
        text, name = (label(one, MAX_SPAN_CELLS) for one in (text, name))
        rendered = (
            f"\x1b[30;48;5;{highlight_color(name)}m {text} \x1b[2m{name} \x1b[0m" if name else text
        )
        rendered_spans.append(rendered)
    return " ".join(rendered_spans)


def highlight_color(name: str) -> int:
    return HIGHLIGHT_COLORS[
        blake2b(name.encode(), digest_size=1).digest()[0] % len(HIGHLIGHT_COLORS)
    ]
