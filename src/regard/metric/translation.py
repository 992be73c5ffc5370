"""Translations beside their references: BLEU, chrF and TER, all by sacrebleu, and exact match.

A score without its signature cannot be compared: tokenisation alone moves BLEU by a point or more.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, cast

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

# One reference for each output, or several
References = Sequence[str] | Sequence[Sequence[str]]
EDGES = (10, 20, 30, 40, 50)


class Score(NamedTuple):
    """A number, how it was computed (sacrebleu's signature), and what else there is to say."""

    value: float
    signature: str
    detail: str

    def __str__(self) -> str:
        return f"{self.detail} {self.signature}"


class Bin(NamedTuple):
    """Outputs whose sources have `low` to `high` words; None: or more."""

    low: int
    high: int | None
    sentences: int
    score: Score

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
) -> Score:
    """Corpus BLEU-4 (Papineni et al. 2002).

    The default is what sacrebleu reports on plain text. Text that is tokenised already, as in most
    papers before 2018, wants tokenize="none"; `force` says that this is known, and silences
    sacrebleu's warning of it.
    """
    metric = BLEU(lowercase=lower, force=force, tokenize=tokenize, smooth_method=smooth)
    return scored(metric, outputs, references)


def chrf(
    outputs: Sequence[str], references: References, *, words: int = 0, lower: bool = False
) -> Score:
    """chrF2 (Popovic 2015); with words=2 it is chrF++ (Popovic 2017)."""
    return scored(CHRF(word_order=words, lowercase=lower), outputs, references)


def ter(
    outputs: Sequence[str],
    references: References,
    *,
    lower: bool = True,
    normalise: bool = False,
    punctuation: bool = True,
) -> Score:
    """Translation edit rate (Snover et al. 2006), by default as tercom computes it."""
    metric = TER(normalized=normalise, no_punct=not punctuation, case_sensitive=not lower)
    return scored(metric, outputs, references)


def exact_match(outputs: Sequence[str], references: References) -> float:
    """How many outputs are a reference, character for character; in percent."""
    several = listed(outputs, references)
    hits = sum(output in some for output, some in zip(outputs, several, strict=True))
    return 100 * hits / len(outputs)


def by_length(
    sources: Sequence[str],
    outputs: Sequence[str],
    references: References,
    *,
    score: Callable[[Sequence[str], References], Score] = bleu,
    edges: Sequence[int] = EDGES,
) -> list[Bin]:
    """The score by the length of the source in words: up to the first edge, and so on.

    As in Bahdanau et al. 2015, fig. 2, where long sentences show what a fixed vector forgets. Bins
    without sentences are left out.
    """
    several = listed(outputs, references)
    if len(sources) != len(outputs):
        raise ValueError(f"sources are {len(sources)} lines, but outputs {len(outputs)}")
    if not edges or list(edges) != sorted(set(edges)) or edges[0] < 1:
        raise ValueError(f"edges must be positive and rising, not {list(edges)}")
    members: list[list[int]] = [[] for _ in range(len(edges) + 1)]
    for number, source in enumerate(sources):
        members[bisect_left(edges, len(source.split()))].append(number)
    lows, highs = [1, *(edge + 1 for edge in edges)], [*edges, None]
    return [
        Bin(
            low,
            high,
            len(inside),
            score([outputs[at] for at in inside], [several[at] for at in inside]),
        )
        for low, high, inside in zip(lows, highs, members, strict=True)
        if inside
    ]


def scored(metric: Metric, outputs: Sequence[str], references: References) -> Score:
    """What sacrebleu says of the whole corpus."""
    # sacrebleu skips None, though it does not say so in its types
    columns = cast("list[list[str]]", streams(listed(outputs, references)))
    found = metric.corpus_score(list(outputs), columns)
    return Score(found.score, str(metric.get_signature()), str(found))


def listed(outputs: Sequence[str], references: References) -> list[list[str]]:
    """The references of each output, as many outputs as there are."""
    if isinstance(outputs, str) or isinstance(references, str):
        raise ValueError("outputs and references are lists of lines, not one string")
    if not outputs:
        raise ValueError("outputs are missing: there is nothing to score")
    if len(outputs) != len(references):
        raise ValueError(f"outputs are {len(outputs)} lines, but references {len(references)}")
    several = [[some] if isinstance(some, str) else list(some) for some in references]
    if bare := [number for number, some in enumerate(several, 1) if not some]:
        raise ValueError(f"references of line {bare[0]} are missing: give at least one")
    return several


def streams(several: Sequence[Sequence[str]]) -> list[list[str | None]]:
    """First references, second ones, and so on; None where a line has fewer."""
    most = max(map(len, several))
    return [[one[at] if at < len(one) else None for one in several] for at in range(most)]
