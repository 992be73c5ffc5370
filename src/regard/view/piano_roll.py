"""Plots of piano rolls as PNG: time to the right, pitch upwards."""

from collections.abc import Sequence

from regard.errors import InputError
from regard.view.chart import figure_bytes, set_title
from regard.view.curve import COLORS
from regard.view.midi import MidiNote

PITCH_NAMES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")
BLACK_KEYS = {1, 3, 6, 8, 10}
QUARTERS_PER_BAR = 4
QUARTER_INCHES, SEMITONE_INCHES = 0.14, 0.13
MAX_WIDTH_INCHES = 60.0


def pitch_name(pitch: int) -> str:
    """Return the name of a pitch; 60 is C4."""
    return f"{PITCH_NAMES[pitch % 12]}{pitch // 12 - 1}"


def piano_roll_png(notes: Sequence[MidiNote], title: str) -> bytes:
    """Draw a bar for each note in the row of its key; the rows of black keys are shaded."""
    from matplotlib.figure import Figure

    if not notes:
        raise InputError("notes is empty; there is nothing to draw")
    low, high = min(note[0] for note in notes) - 2, max(note[0] for note in notes) + 2
    end = float(max(start + length for _, start, length in notes))
    width = min(MAX_WIDTH_INCHES, 1.2 + QUARTER_INCHES * max(end, 16.0))
    figure = Figure(figsize=(width, 1.0 + SEMITONE_INCHES * (high - low)), layout="constrained")
    axes = figure.subplots()
    for pitch in range(low, high + 1):
        if pitch % 12 in BLACK_KEYS:
            axes.axhspan(pitch - 0.5, pitch + 0.5, color="0.95", linewidth=0)
    for pitch, start, length in notes:
        x, y = float(start) + 0.06, pitch - 0.4
        axes.broken_barh([(x, max(float(length) - 0.12, 0.03))], (y, 0.8), color=COLORS[0])
    octaves = [pitch for pitch in range(low, high + 1) if pitch % 12 == 0]
    axes.set_yticks(octaves, [pitch_name(pitch) for pitch in octaves])
    axes.set_xticks([QUARTERS_PER_BAR * n for n in range(int(end) // QUARTERS_PER_BAR + 1)])
    axes.tick_params(axis="x", labelsize="x-small")
    axes.grid(axis="x", color="0.85", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set(xlabel="quarter notes", xlim=(0, max(end, 1.0)), ylim=(low - 0.5, high + 0.5))
    axes.spines[["top", "right"]].set_visible(False)
    set_title(axes, title)
    return figure_bytes(figure)
