"""Metrics of summaries: ROUGE by Google's package, repetition and copying."""

from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import NamedTuple

from regard.errors import InputError
from regard.metrics.translation import References, reference_lists


class RougeScores(NamedTuple):
    """Mean F1 over outputs, in percent, by name; and a signature."""

    values: dict[str, float]
    signature: str


def rouge(outputs: Sequence[str], references: References, *, stem: bool = True) -> RougeScores:
    """Return ROUGE-1, -2 and -L (Lin 2004); of several references, the best one counts.

    If a reference has several lines, ROUGE-Lsum is added: longest common subsequences are computed
    line by line, as in papers on CNN/DailyMail.
    """
    references_per_output = reference_lists(outputs, references)
    if find_spec("rouge_score") is None:
        raise InputError("ROUGE needs rouge-score: pip install 'regard[rouge]'")
    names = ["rouge1", "rouge2", "rougeL"]
    if any(
        "\n" in reference.strip()
        for output_references in references_per_output
        for reference in output_references
    ):
        names.append("rougeLsum")
    scorer = import_module("rouge_score.rouge_scorer").RougeScorer(names, use_stemmer=stem)
    sums = dict.fromkeys(names, 0.0)
    for output, output_references in zip(outputs, references_per_output, strict=True):
        best = scorer.score_multi(output_references, output)
        for name in names:
            sums[name] += best[name].fmeasure
    max_references = max(map(len, references_per_output))
    refs = "1" if max_references == 1 else f"1-{max_references}:best"
    signature = f"f1|mean|stem:{'yes' if stem else 'no'}|refs:{refs}"
    return RougeScores(
        {name: 100 * total / len(outputs) for name, total in sums.items()},
        f"{signature}|rouge_score:{version('rouge-score')}",
    )


def repetition_rate(outputs: Iterable[str], size: int = 3) -> float:
    """Return the percentage of n-grams that repeat an earlier one of the same output."""
    repeated_count, total = 0, 0
    for output in outputs:
        words = output.split()
        ngrams = [tuple(words[start : start + size]) for start in range(len(words) - size + 1)]
        repeated_count, total = repeated_count + len(ngrams) - len(set(ngrams)), total + len(ngrams)
    return 100 * repeated_count / total if total else 0.0


def copy_rate(outputs: Sequence[Sequence[str]], sources: Sequence[Iterable[str]]) -> float:
    """Return the percentage of output words that occur in their sources."""
    copied_count, total = 0, 0
    for words, source in zip(outputs, sources, strict=True):
        source_words = set(source)
        copied_count, total = (
            copied_count + sum(word in source_words for word in words),
            total + len(words),
        )
    return 100 * copied_count / total if total else 0.0
