"""Letters with a letter under each: residues of a protein and their states."""

from collections.abc import Iterator

from regard.view.mark import hue
from regard.view.terminal import Surface, label

KNOWN = {"H": 209, "E": 75}  # helices red, strands blue, as programs for proteins draw them
PLAIN = "C-_"  # coil: no colour
NUMBER = 6  # letters before a line, for the number of its first residue


def under(above: str, below: str, surface: Surface = Surface()) -> str:  # noqa: B008 (immutable)
    """Both in lines of the surface's width, a group at a time, what is below in colour.

    The number of a line's first letter stands before it.
    """
    if len(above) != len(below):
        raise ValueError(f"{len(above)} letters above, but {len(below)} below")
    wide = max(10, (surface.width - NUMBER) // 10 * 10)
    groups = []
    for start in range(0, max(1, len(above)), wide):
        letters = label(above[start : start + wide], wide, surface.ink)
        states = "".join(tinted(below[start : start + wide], surface))
        groups.append(f"{start + 1:<{NUMBER}}{letters}\n{'':{NUMBER}}{states}")
    return "\n\n".join(groups)


def tinted(states: str, surface: Surface) -> Iterator[str]:
    """Runs of one state in its colour, where there are colours."""
    start = 0
    for place in range(1, len(states) + 1):
        if place == len(states) or states[place] != states[start]:
            state, run = states[start], label(states[start:place], place - start, surface.ink)
            if surface.ink not in ("256", "truecolor") or state in PLAIN:
                yield run
            else:
                yield f"\x1b[30;48;5;{KNOWN.get(state, hue(state))}m{run}\x1b[0m"
            start = place
