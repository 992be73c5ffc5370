"""`regard score`: the standard metrics of a run on a split, with their signatures."""

import json
import sys

from regard.cli.loading import load_run
from regard.cli.options import (
    DeviceOption,
    EngineOption,
    Int8Option,
    JsonOption,
    RunArgument,
    SetOption,
    SkipBadOption,
    SplitOption,
    with_skip_bad,
)
from regard.data.formats.skipped_rows import SkippedRows
from regard.view.progress import progress_bar
from regard.view.sanitize import terminal_text

MIN_NAME_WIDTH = 12


def score(
    folder: RunArgument,
    split: SplitOption = "test",
    as_json: JsonOption = False,
    skip_bad: SkipBadOption = False,
    int8: Int8Option = False,
    engine: EngineOption = "built-in",
    device: DeviceOption = None,
    overrides: SetOption = None,
) -> None:
    """Compute the standard metrics of a run's task on a split of its data."""
    changes = with_skip_bad(overrides, skip_bad)
    run = load_run(folder, changes, device=device, int8=int8, engine=engine)
    corpus = run.corpus()
    records = run.read_split(split, corpus)
    with progress_bar("scoring", len(records)) as progress:
        metrics = run.task.score(records, on_progress=progress.advance)
    skipped_rows = getattr(corpus, "skipped", None)
    if isinstance(skipped_rows, SkippedRows) and skipped_rows.messages:
        print(f"regard: {terminal_text(skipped_rows.describe())}", file=sys.stderr)
    if as_json:
        print(json.dumps(metrics, indent=1))
        return
    skipped = metrics.pop("not_in_perplexity", 0)
    numbers = [name for name, value in metrics.items() if not isinstance(value, str)]
    width = max(MIN_NAME_WIDTH, 2 + max(map(len, numbers)))
    for name in numbers:
        value = metrics[name]
        if isinstance(value, float):
            signature = metrics.get(f"{name}_signature", "")
            print(f"{name:{width}}{value:8.2f}  {signature}".rstrip())
        else:
            print(f"{name:{width}}{value:8}")
    if skipped:
        print(f"The perplexity leaves out {skipped} records that are too long for the model.")
