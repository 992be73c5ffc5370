"""Text with labeled spans, in color."""

from collections.abc import Iterable
from hashlib import blake2b

from regard.view.terminal import label

# Backgrounds for black letters: the palette of Okabe & Ito, without black and brighter, as numbers
# of the 256 colors. Color-blind readers can tell them apart.
HIGHLIGHT_COLORS = (215, 117, 79, 228, 75, 209, 218, 253)
MAX_SPAN_CELLS = 10_000

LabeledSpan = tuple[str, str]
"""A span of text and its label; "" for none."""


def render_highlighted(spans: Iterable[LabeledSpan]) -> str:
    """Return the spans with spaces between them. A label has the same color in every text."""
    rendered_spans = []
    for text, name in spans:
        text, name = (label(part, MAX_SPAN_CELLS) for part in (text, name))
        rendered = (
            f"\x1b[30;48;5;{highlight_color(name)}m {text} \x1b[2m{name} \x1b[0m" if name else text
        )
        rendered_spans.append(rendered)
    return " ".join(rendered_spans)


def highlight_color(name: str) -> int:
    return HIGHLIGHT_COLORS[
        blake2b(name.encode(), digest_size=1).digest()[0] % len(HIGHLIGHT_COLORS)
    ]
