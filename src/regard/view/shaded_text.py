"""Text in the terminal with shaded words.

With colors, the weight is the background of a word. Otherwise, a line of shades or digits below
the words shows it.
"""

from collections.abc import Sequence

from regard.errors import InputError
from regard.view.cell_width import cell_len
from regard.view.terminal import Surface, label, render_cell, render_on_color

MAX_WORD_CELLS = 30


def render_shaded_text(
    tokens: Sequence[str],
    weights: Sequence[float],
    surface: Surface = Surface(),  # noqa: B008 (immutable)
    *,
    max_weight: float = 1.0,
    total_weight: float | None = None,
) -> str:
    """Return tokens in lines that fit the surface.

    A weight of `max_weight` has the strongest shade. `total_weight` is shown before the first line.
    """
    if len(tokens) != len(weights):
        raise InputError(f"weights has {len(weights)} numbers for {len(tokens)} tokens")
    if not max_weight > 0:
        raise InputError(f"max_weight must be positive, not {max_weight}")
    words = [label(token, MAX_WORD_CELLS, surface.ink) for token in tokens]
    margin = "" if total_weight is None else f"{render_cell(total_weight, 2, surface.ink)} "
    indent = " " * (0 if total_weight is None else 3)
    lines, current_line, free_cells = list[list[int]](), list[int](), 0
    for number, word in enumerate(words):
        word_width = cell_len(word) + 1
        if current_line and word_width > free_cells:
            lines.append(current_line)
            current_line, free_cells = [], 0
        free_cells = (free_cells if current_line else surface.width - len(indent)) - word_width
        current_line.append(number)
    lines += [current_line] if current_line else []
    output_lines = []
    for line in lines:
        levels = [weights[n] / max_weight for n in line]
        first, *below = render_line([words[n] for n in line], levels, surface)
        output_lines += [
            (indent if output_lines else margin) + first,
            *(indent + text for text in below),
        ]
    return "\n".join(text.rstrip() for text in output_lines) or margin


def render_line(words: Sequence[str], levels: Sequence[float], surface: Surface) -> list[str]:
    pairs = list(zip(words, levels, strict=True))
    if surface.ink in ("16", "256", "truecolor"):
        return [" ".join(render_on_color(word, level, surface.ink) for word, level in pairs)]
    below = (render_cell(level, cell_len(word), surface.ink) for word, level in pairs)
    return [" ".join(words), " ".join(below)]
