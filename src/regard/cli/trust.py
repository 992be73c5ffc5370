"""`regard look --trust`: does attention tell why? For one text, or in the mean over a split."""

import math
from collections.abc import Sequence
from statistics import mean

from regard.cli.progress import bar
from regard.train.run import Run
from regard.train.trust import TOP, Trust, trust
from regard.view.report import aligned

FEW = (
    ("attention and gradient, Kendall's tau", "tau_gradient", "{:+.2f}"),
    ("attention and leaving out, Kendall's tau", "tau_without", "{:+.2f}"),
    (f"the {TOP} most looked at are the {TOP} of the greatest gradient", "top_gradient", "{:.0%}"),
    (f"the {TOP} most looked at are the {TOP} that are missed most", "top_without", "{:.0%}"),
    ("log p lost by uniform attention", "uniform", "{:+.3f}"),
    ("log p lost by attention in another order", "permuted", "{:+.3f}"),
    ("log p lost without the most looked at token", "most", "{:+.3f}"),
    ("log p lost without another one, in the mean", "random", "{:+.3f}"),
)


def of_text(run: Run, text: str) -> str:
    """Three measures of each token, and how they agree."""
    found = trust(run, text)
    rows = [["token", "attention", "gradient", "log p lost without it"]]
    rows += [
        [one.text, f"{one.attention:.3f}", f"{one.gradient:.3f}", f"{one.without:+.3f}"]
        for one in found.tokens
    ]
    return f"{found.said}\n\n{aligned(rows)}\n\n{summed([found])}"


def of_split(run: Run, split: str, limit: int) -> str:
    """The means over texts of two tokens or more."""
    field = "source" if run.settings.task == "translate" else "text"
    found: list[Trust] = []
    records = run.corpus().read(split)
    with bar("texts", limit) as shown:
        for record in records:
            if len(record[field].split()) > 1:
                found.append(trust(run, record[field], seed=len(found)))
                shown.advance(1)
            if len(found) == limit:
                break
    return f"{len(found)} texts of {split}\n\n{summed(found)}"


def summed(found: Sequence[Trust]) -> str:
    rows = []
    for told, name, form in FEW:
        numbers = [x for one in found if not math.isnan(x := getattr(one, name))]
        rows.append([told, form.format(mean(numbers)) if numbers else "-"])
    turned = [one.turned for one in found if one.turned is not None]
    if turned:
        rows.append(["verdicts undone by uniform attention", f"{mean(u for u, _ in turned):.0%}"])
        rows.append(["verdicts undone by another order", f"{mean(p for _, p in turned):.0%}"])
    return aligned(rows)
