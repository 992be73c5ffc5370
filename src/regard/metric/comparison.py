"""What is told of a model beside others, as plain numbers."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Measured(NamedTuple):
    """One model on one set of sentences."""

    name: str
    parameters: int
    bleu: float
    chrf: float
    exact: float
    perplexity: float
    aer: float | None  # None: the model has no attention to the source, or the truth is not known
    training_tokens: float  # target tokens a second
    decoding_sentences: float  # a second
    training_seconds: float  # in steps, without validation
    by_length: dict[str, float]  # BLEU by words of the source: "1-10", "11-20", …


def joined(records: Sequence[Mapping[str, str]], most: int) -> list[dict[str, str]]:
    """Records, and pairs, threes … of consecutive ones as one, each record once in each of them.

    Long sentences out of short ones (as Bahdanau et al. 2015 would need them for their fig. 2). A
    rest that does not fill a group is left out.
    """
    if most < 1:
        raise ValueError(f"most must be at least 1, not {most}")
    return [
        {side: " ".join(one[side] for one in group) for side in ("source", "target")}
        for size in range(1, most + 1)
        for start in range(0, len(records) - size + 1, size)
        for group in [records[start : start + size]]
    ]


def edges(sources: Sequence[str]) -> tuple[int, ...]:
    """Bins of ten words up to 50, or finer ones where no source is that long."""
    longest = max(len(source.split()) for source in sources)
    step = 10 if longest > 20 else 5 if longest > 10 else 2
    return tuple(range(step, 5 * step + 1, step))
