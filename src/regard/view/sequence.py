"""A sequence with a symbol below each letter: residues of a protein and their states."""

from collections.abc import Iterator

from regard.errors import InputError
from regard.view.highlight import highlight_color
from regard.view.terminal import Surface, label

STATE_COLORS = {"H": 209, "E": 75}  # helices red, strands blue, as in protein viewers
UNCOLORED_STATES = "C-_"  # coil, gap, unknown
NUMBER_WIDTH = 6  # characters before a line, for the number of its first residue


def render_annotated_sequence(sequence: str, annotation: str, surface: Surface = Surface()) -> str:  # noqa: B008 (immutable)
    """Return pairs of lines of the surface's width: letters, and their symbols in color.

    Each pair begins with the number of its first letter.
    """
    if len(sequence) != len(annotation):
        raise InputError(
            f"annotation must have one symbol per letter: {len(annotation)} for {len(sequence)}"
        )
    line_length = max(10, (surface.width - NUMBER_WIDTH) // 10 * 10)
    groups = []
    for start in range(0, max(1, len(sequence)), line_length):
        letters = label(sequence[start : start + line_length], line_length, surface.ink)
        states = "".join(colored_runs(annotation[start : start + line_length], surface))
        groups.append(f"{start + 1:<{NUMBER_WIDTH}}{letters}\n{'':{NUMBER_WIDTH}}{states}")
    return "\n\n".join(groups)


def colored_runs(states: str, surface: Surface) -> Iterator[str]:
    """Yield runs of one state in its color, if the surface has colors."""
    start = 0
    for position in range(1, len(states) + 1):
        if position == len(states) or states[position] != states[start]:
            state, run = states[start], label(states[start:position], position - start, surface.ink)
            if surface.ink not in ("256", "truecolor") or state in UNCOLORED_STATES:
                yield run
            else:
                yield f"\x1b[30;48;5;{STATE_COLORS.get(state, highlight_color(state))}m{run}\x1b[0m"
            start = position
