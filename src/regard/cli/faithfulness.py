"""`regard look --faithfulness`: does attention tell why? For a text, or a split's mean."""

import math
from collections.abc import Sequence
from statistics import mean

from regard.cli.progress import progress_bar
from regard.explain.faithfulness import TOP_TOKENS, FaithfulnessReport, faithfulness
from regard.run import Run
from regard.view.report import render_table

FEW = (
    ("attention and gradient, Kendall's tau", "tau_gradient", "{:+.2f}"),
    ("attention and leaving out, Kendall's tau", "tau_leave_one_out", "{:+.2f}"),
    (
        f"the {TOP_TOKENS} most looked at are the {TOP_TOKENS} of the greatest gradient",
        "top_gradient",
        "{:.0%}",
    ),
    (
        f"the {TOP_TOKENS} most looked at are the {TOP_TOKENS} that are missed most",
        "top_leave_one_out",
        "{:.0%}",
    ),
    ("log p lost by uniform attention", "uniform_drop", "{:+.3f}"),
    ("log p lost by attention in another order", "permuted_drop", "{:+.3f}"),
    ("log p lost without the most looked at token", "top_token_drop", "{:+.3f}"),
    ("log p lost without another one, in the mean", "other_tokens_drop", "{:+.3f}"),
)


def render_text_faithfulness(run: Run, text: str) -> str:
    """Three measures of each token, and how they agree."""
    found = faithfulness(run, run.records([text], "TEXT")[0])
    rows = [["token", "attention", "gradient", "log p lost without it"]]
    rows += [
        [one.text, f"{one.attention:.3f}", f"{one.gradient:.3f}", f"{one.leave_one_out:+.3f}"]
        for one in found.tokens
    ]
    return f"{found.output}\n\n{render_table(rows)}\n\n{render_faithfulness_table([found])}"


def render_split_faithfulness(run: Run, split: str, limit: int) -> str:
    """The means over texts of two tokens or more."""
    field = run.task.fields[0]
    found: list[FaithfulnessReport] = []
    records = run.corpus().read(split)
    with progress_bar("texts", limit) as shown:
        for record in records:
            if len(record[field].split()) > 1:
                found.append(faithfulness(run, record, seed=len(found)))
                shown.advance(1)
            if len(found) == limit:
                break
    return f"{len(found)} texts of {split}\n\n{render_faithfulness_table(found)}"


def render_faithfulness_table(found: Sequence[FaithfulnessReport]) -> str:
    rows = []
    for told, name, form in FEW:
        numbers = [x for one in found if not math.isnan(x := getattr(one, name))]
        rows.append([told, form.format(mean(numbers)) if numbers else "-"])
    turned = [one.label_changes for one in found if one.label_changes is not None]
    if turned:
        rows.append(["verdicts undone by uniform attention", f"{mean(u for u, _ in turned):.0%}"])
        rows.append(["verdicts undone by another order", f"{mean(p for _, p in turned):.0%}"])
    return render_table(rows)
