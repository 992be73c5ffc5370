"""Running text in the terminal, each word as strong as its weight.

With colours the words lie on them; else a line of shades, or digits, stands below the words.
"""

from collections.abc import Sequence

from rich.cells import cell_len

from regard.view.terminal import Surface, cell, ground, label

LONGEST = 30  # cells of a word


def shaded(
    tokens: Sequence[str],
    weights: Sequence[float],
    surface: Surface = Surface(),  # noqa: B008 (immutable)
    *,
    top: float = 1.0,
    whole: float | None = None,
) -> str:
    """The tokens in lines that fit, without a last newline; a weight of `top` is drawn in full.

    `whole` is the weight of all of them together: a mark before the first line.
    """
    if len(tokens) != len(weights):
        raise ValueError(f"there are {len(tokens)} tokens, but {len(weights)} weights")
    if not top > 0:
        raise ValueError(f"top must be positive, not {top}")
    words = [label(token, LONGEST, surface.ink) for token in tokens]
    margin = "" if whole is None else f"{cell(whole, 2, surface.ink)} "
    indent = " " * (0 if whole is None else 3)
    lines, here, free = list[list[int]](), list[int](), 0
    for number, word in enumerate(words):
        wide = cell_len(word) + 1
        if here and wide > free:
            lines.append(here)
            here, free = [], 0
        free = (free if here else surface.width - len(indent)) - wide
        here.append(number)
    lines += [here] if here else []
    drawn = []
    for line in lines:
        levels = [weights[n] / top for n in line]
        first, *below = row([words[n] for n in line], levels, surface)
        drawn += [(indent if drawn else margin) + first, *(indent + text for text in below)]
    return "\n".join(text.rstrip() for text in drawn) or margin


def row(words: Sequence[str], levels: Sequence[float], surface: Surface) -> list[str]:
    both = list(zip(words, levels, strict=True))
    if surface.ink in ("16", "256", "truecolor"):
        return [" ".join(ground(word, level, surface.ink) for word, level in both)]
    below = (cell(level, cell_len(word), surface.ink) for word, level in both)
    return [" ".join(words), " ".join(below)]
