"""Load a run as the options of a command say."""

from collections.abc import Sequence
from pathlib import Path

from regard.run import Run
from regard.tasks.engine_choice import check_engine_name


def load_run(
    folder: Path, overrides: Sequence[str], *, device: str | None, int8: bool, engine: str
) -> Run:
    """Return the run in a folder; weights of 8 bits and CTranslate2 need the CPU."""
    chosen_engine = check_engine_name(engine)
    default = "cpu" if int8 or engine == "ctranslate2" else "auto"
    run = Run.load(folder, device=device or default).override(overrides)
    return (run.quantize() if int8 else run).use_engine(chosen_engine)
