"""How many of the tunes that a run writes can be played: by our own check, and by music21.

    python benchmarks/tunes.py RUN [--count 100] [--show 1]

Each is drawn once, from nothing, by the run's own settings: none is drawn again. Ours wants a key,
signs that ABC knows, nothing left open and full bars; music21 wants what it can parse to notes.
"""

import argparse
import warnings
from pathlib import Path

from regard.run import Run
from regard.tasks.music.tunes import TuneTask


def parses(text: str) -> bool:
    """Whether music21 finds notes in it."""
    from music21 import converter
    from music21.exceptions21 import Music21Exception

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read = converter.parse(f"X:1\n{text}\n", format="abc")
            return len(list(read.recurse().notes)) > 0
    except (Music21Exception, ValueError, KeyError, IndexError, TypeError, ZeroDivisionError):
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--show", type=int, default=1, help="tunes to print")
    given = parser.parse_args()
    task = Run.load(given.run).task
    if not isinstance(task, TuneTask):
        parser.error(f"{given.run} is no run of tunes")
    found = task.sample_tunes([""] * given.count)
    faults = [task.playback_error(*one) for one in found]
    ours = faults.count(None)
    theirs = sum(parses(text) for text, _ in found)
    print(f"drawn {len(found)}, played by us {ours}, parsed by music21 {theirs}")
    for fault in [fault for fault in faults if fault is not None][:5]:
        print(f"  {fault}")
    fine = [text for (text, _), fault in zip(found, faults, strict=True) if fault is None]
    for number, text in enumerate(fine[: given.show], 1):
        print(f"\nX:{number}\n{text}")


if __name__ == "__main__":
    main()
