"""Metrics of translation: BLEU, chrF and TER by sacrebleu, and exact match.

Compare scores only if their signatures are equal: tokenization alone changes BLEU by a point or
more.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from regard.errors import InputError

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

# One reference or several for each output
References = Sequence[str] | Sequence[Sequence[str]]
LENGTH_EDGES = (10, 20, 30, 40, 50)


class MetricScore(NamedTuple):
    """A value, sacrebleu's signature, and its details (precisions, lengths) as text."""

    value: float
    signature: str
    detail: str

    def __str__(self) -> str:
        return f"{self.detail} {self.signature}"


class LengthBin(NamedTuple):
    """The score of outputs whose sources have `low` to `high` words; None is no upper limit."""

    low: int
    high: int | None
    sentences: int
    score: MetricScore

    @property
    def name(self) -> str:
        return f"{self.low}+" if self.high is None else f"{self.low}-{self.high}"


def bleu(
    outputs: Sequence[str],
    references: References,
    *,
    tokenize: str = "13a",
    lower: bool = False,
    smooth: Literal["exp", "floor", "add-k", "none"] = "exp",
    force: bool = False,
) -> MetricScore:
    """Return corpus BLEU-4 (Papineni et al. 2002).

    The defaults are those of sacrebleu for plain text. For tokenized text, as in most papers before
    2018, use tokenize="none", and `force` to silence sacrebleu's warning about it.
    """
    from sacrebleu.metrics.bleu import BLEU  # slow to import, and a prediction needs no metrics

    metric = BLEU(lowercase=lower, force=force, tokenize=tokenize, smooth_method=smooth)
    return corpus_score(metric, outputs, references)


def chrf(
    outputs: Sequence[str], references: References, *, word_order: int = 0, lower: bool = False
) -> MetricScore:
    """Return chrF2 (Popovic 2015), or chrF++ with word_order=2 (Popovic 2017)."""
    from sacrebleu.metrics.chrf import CHRF

    return corpus_score(CHRF(word_order=word_order, lowercase=lower), outputs, references)


def ter(
    outputs: Sequence[str],
    references: References,
    *,
    lower: bool = True,
    normalize: bool = False,
    punctuation: bool = True,
) -> MetricScore:
    """Return the translation edit rate (Snover et al. 2006), by default as tercom computes it."""
    from sacrebleu.metrics.ter import TER

    metric = TER(normalized=normalize, no_punct=not punctuation, case_sensitive=not lower)
    return corpus_score(metric, outputs, references)


def exact_match(outputs: Sequence[str], references: References) -> float:
    """Return the percentage of outputs that equal a reference."""
    references_per_output = reference_lists(outputs, references)
    hits = sum(
        output in output_references
        for output, output_references in zip(outputs, references_per_output, strict=True)
    )
    return 100 * hits / len(outputs)


def score_by_length(
    sources: Sequence[str],
    outputs: Sequence[str],
    references: References,
    *,
    score: Callable[[Sequence[str], References], MetricScore] = bleu,
    edges: Sequence[int] = LENGTH_EDGES,
) -> list[LengthBin]:
    """Return the score by length of the source in words, as in Bahdanau et al. 2015, fig. 2.

    `edges` are the upper limits of the bins; empty bins are left out.
    """
    references_per_output = reference_lists(outputs, references)
    if len(sources) != len(outputs):
        raise InputError(
            f"{len(sources)} sources, but {len(outputs)} outputs; give one source each"
        )
    if not edges or list(edges) != sorted(set(edges)) or edges[0] < 1:
        raise InputError(f"edges must be positive and increasing, not {list(edges)}")
    indices_by_bin: list[list[int]] = [[] for _ in range(len(edges) + 1)]
    for index, source in enumerate(sources):
        indices_by_bin[bisect_left(edges, len(source.split()))].append(index)
    lows, highs = [1, *(edge + 1 for edge in edges)], [*edges, None]
    return [
        LengthBin(
            low,
            high,
            len(indices),
            score([outputs[i] for i in indices], [references_per_output[i] for i in indices]),
        )
        for low, high, indices in zip(lows, highs, indices_by_bin, strict=True)
        if indices
    ]


def corpus_score(metric: "Metric", outputs: Sequence[str], references: References) -> MetricScore:
    """Compute a sacrebleu metric over the complete corpus."""
    # sacrebleu skips None, but its types do not allow it
    reference_columns = cast(
        "list[list[str]]", reference_streams(reference_lists(outputs, references))
    )
    result = metric.corpus_score(list(outputs), reference_columns)
    return MetricScore(result.score, str(metric.get_signature()), str(result))


def reference_lists(outputs: Sequence[str], references: References) -> list[list[str]]:
    """Return a list of references for each output; errors for wrong numbers of them."""
    if isinstance(outputs, str) or isinstance(references, str):
        raise InputError("outputs and references must be lists of lines, not one string")
    if not outputs:
        raise InputError("no outputs; give at least one")
    if len(outputs) != len(references):
        raise InputError(
            f"{len(outputs)} outputs, but {len(references)} references; give one or more each"
        )
    references_per_output = [
        [output_references] if isinstance(output_references, str) else list(output_references)
        for output_references in references
    ]
    if lines_without_reference := [
        line_number
        for line_number, output_references in enumerate(references_per_output, 1)
        if not output_references
    ]:
        raise InputError(f"line {lines_without_reference[0]} has no references; give at least one")
    return references_per_output


def reference_streams(references_per_output: Sequence[Sequence[str]]) -> list[list[str | None]]:
    """Return the first references, the second ones, and so on; None for lines with fewer."""
    max_references = max(map(len, references_per_output))
    return [
        [
            output_references[column] if column < len(output_references) else None
            for output_references in references_per_output
        ]
        for column in range(max_references)
    ]
