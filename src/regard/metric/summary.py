"""Summaries beside their references: ROUGE by Google's package; and what they repeat and copy."""

from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import NamedTuple

from regard.metric.translation import References, listed


class Rouge(NamedTuple):
    """F1 in percent, the mean over outputs, by name; and how it was computed."""

    values: dict[str, float]
    signature: str


def rouge(outputs: Sequence[str], references: References, *, stem: bool = True) -> Rouge:
    """ROUGE-1, -2 and -L (Lin 2004); of several references, the one that an output is nearest to.

    Where a reference has several lines there is ROUGE-Lsum, too: longest common rows of words are
    then looked for line by line, as in the papers on CNN/DailyMail.
    """
    several = listed(outputs, references)
    if find_spec("rouge_score") is None:
        raise ValueError("ROUGE needs rouge-score: pip install 'regard[rouge]'")
    names = ["rouge1", "rouge2", "rougeL"]
    if any("\n" in one.strip() for some in several for one in some):
        names.append("rougeLsum")
    scorer = import_module("rouge_score.rouge_scorer").RougeScorer(names, use_stemmer=stem)
    sums = dict.fromkeys(names, 0.0)
    for output, some in zip(outputs, several, strict=True):
        best = scorer.score_multi(some, output)
        for name in names:
            sums[name] += best[name].fmeasure
    most = max(map(len, several))
    refs = "1" if most == 1 else f"1-{most}:best"
    signature = f"f1|mean|stem:{'yes' if stem else 'no'}|refs:{refs}"
    return Rouge(
        {name: 100 * total / len(outputs) for name, total in sums.items()},
        f"{signature}|rouge_score:{version('rouge-score')}",
    )


def repeated(outputs: Iterable[str], size: int = 3) -> float:
    """Of all `size` words in a row, those that the same output has said before; in percent."""
    again, total = 0, 0
    for output in outputs:
        words = output.split()
        runs = [tuple(words[at : at + size]) for at in range(len(words) - size + 1)]
        again, total = again + len(runs) - len(set(runs)), total + len(runs)
    return 100 * again / total if total else 0.0


def copied(outputs: Sequence[Sequence[str]], sources: Sequence[Iterable[str]]) -> float:
    """Of all words of the outputs, those that stand in their sources; in percent."""
    there, total = 0, 0
    for words, source in zip(outputs, sources, strict=True):
        known = set(source)
        there, total = there + sum(word in known for word in words), total + len(words)
    return 100 * there / total if total else 0.0
