"""`regard look --faithfulness`: does attention explain a prediction? For a text or a split."""

import math
from collections.abc import Sequence
from statistics import mean

from regard.explain.faithfulness import TOP_TOKENS, FaithfulnessReport, faithfulness
from regard.run import Run
from regard.view.progress import progress_bar
from regard.view.report import render_table

MEASURES = (  # title, field of FaithfulnessReport, format
    ("Kendall's tau of attention and gradient", "tau_gradient", "{:+.2f}"),
    ("Kendall's tau of attention and leave-one-out", "tau_leave_one_out", "{:+.2f}"),
    (f"overlap of top {TOP_TOKENS}: attention and gradient", "top_gradient", "{:.0%}"),
    (f"overlap of top {TOP_TOKENS}: attention and leave-one-out", "top_leave_one_out", "{:.0%}"),
    ("log p lost by uniform attention", "uniform_drop", "{:+.3f}"),
    ("log p lost by permuted attention", "permuted_drop", "{:+.3f}"),
    ("log p lost without the most attended token", "top_token_drop", "{:+.3f}"),
    ("log p lost without another token, on average", "other_tokens_drop", "{:+.3f}"),
)


def render_text_faithfulness(run: Run, text: str) -> str:
    """Return a table of three measures of each token, and a table of how they agree."""
    report = faithfulness(run, run.records([text], "TEXT")[0])
    rows = [["token", "attention", "gradient", "log p lost without it"]]
    rows += [
        [t.text, f"{t.attention:.3f}", f"{t.gradient:.3f}", f"{t.leave_one_out:+.3f}"]
        for t in report.tokens
    ]
    return f"{report.output}\n\n{render_table(rows)}\n\n{render_faithfulness_table([report])}"


def render_split_faithfulness(run: Run, split: str, limit: int) -> str:
    """Return a table of averages over the first texts of two tokens or more."""
    field = run.task.fields[0]
    reports: list[FaithfulnessReport] = []
    with progress_bar("texts", limit) as progress:
        for record in run.corpus().read(split):
            if len(record[field].split()) > 1:
                reports.append(faithfulness(run, record, seed=len(reports)))
                progress.advance(1)
            if len(reports) == limit:
                break
    return f"{len(reports)} texts of {split}\n\n{render_faithfulness_table(reports)}"


def render_faithfulness_table(reports: Sequence[FaithfulnessReport]) -> str:
    rows = []
    for title, field, number_format in MEASURES:
        numbers = [x for report in reports if not math.isnan(x := getattr(report, field))]
        rows.append([title, number_format.format(mean(numbers)) if numbers else "-"])
    changes = [report.label_changes for report in reports if report.label_changes is not None]
    if changes:
        rows.append(["labels changed by uniform attention", f"{mean(u for u, _ in changes):.0%}"])
        rows.append(["labels changed by permuted attention", f"{mean(p for _, p in changes):.0%}"])
    return render_table(rows)
