"""Captions beside those that people gave: BLEU-1 to 4, CIDEr, and whether words looked right.

    CIDEr_n(c, S) = 10/m sum_j exp(-(l(c) - l(s_j))^2 / 2 sigma^2)
                         min(g_n(c), g_n(s_j)) . g_n(s_j) / (|g_n(c)| |g_n(s_j)|)

g_n: counts of n-grams times log(pictures / pictures whose references have it). CIDEr is the mean
over n = 1 to 4 (Vedantam et al. 2015, sec. 4: CIDEr-D, sigma = 6; what COCO's server calls CIDEr).
"""

import math
import re
from collections import Counter
from collections.abc import Sequence

from sacrebleu.metrics.bleu import BLEU

from regard.metric.translation import References, Score, listed, scored

ORDERS, SIGMA = 4, 6.0
WORD = re.compile(r"\w+(?:[\'\u2019]\w+)*")
Grams = Counter[tuple[str, ...]]
Pixel = int | float
Box = tuple[Pixel, Pixel, Pixel, Pixel]  # top, left, bottom, right


def bleus(outputs: Sequence[str], references: References) -> list[Score]:
    """Corpus BLEU of n-grams up to 1, 2, 3 and 4, in lower case."""
    return [
        scored(BLEU(lowercase=True, max_ngram_order=order), outputs, references)
        for order in range(1, ORDERS + 1)
    ]


def cider(outputs: Sequence[str], references: References) -> float:
    """Of all outputs, times 100, as papers have it; an output that is its only reference has 1000.

    Words are in lower case, marks are left out. How rare an n-gram is, the references here tell:
    of one picture alone nothing is rare, and the value is 0.
    """
    several = [[grams(text) for text in some] for some in listed(outputs, references)]
    seen: Grams = Counter()
    for some in several:
        seen.update(set().union(*some))
    rare = {gram: math.log(len(several) / count) for gram, count in seen.items()}
    unseen = math.log(len(several))
    total = 0.0
    for output, some in zip(outputs, several, strict=True):
        told = grams(output)
        total += sum(alike(told, one, rare, unseen) for one in some) / len(some)
    return 100 * total / len(outputs)


def grams(text: str) -> Grams:
    words = WORD.findall(text.lower())
    return Counter(
        tuple(words[at : at + order])
        for order in range(1, ORDERS + 1)
        for at in range(len(words) - order + 1)
    )


def alike(one: Grams, other: Grams, rare: dict[tuple[str, ...], float], unseen: float) -> float:
    """CIDEr of an output and one of its references."""
    dots, ones, others = [0.0] * ORDERS, [0.0] * ORDERS, [0.0] * ORDERS
    for gram, count in one.items():
        ones[len(gram) - 1] += (count * rare.get(gram, unseen)) ** 2
    for gram, count in other.items():
        weight = rare[gram]
        others[len(gram) - 1] += (count * weight) ** 2
        dots[len(gram) - 1] += min(one[gram], count) * count * weight**2
    lengths = [sum(n for gram, n in some.items() if len(gram) == 1) for some in (one, other)]
    near = math.exp(-((lengths[0] - lengths[1]) ** 2) / (2 * SIGMA**2))
    each = (
        dot / math.sqrt(a * b) if a and b else 0.0
        for dot, a, b in zip(dots, ones, others, strict=True)
    )
    return 10 * near * sum(each) / ORDERS


def pointing(places: Sequence[tuple[Pixel, Pixel]], boxes: Sequence[Box]) -> float:
    """Share of words that looked most at a place (row, column) inside their box, in percent."""
    if not places or len(places) != len(boxes):
        raise ValueError(f"places are {len(places)} and boxes {len(boxes)}: give one for each word")
    hits = sum(
        top <= row < bottom and left <= column < right
        for (row, column), (top, left, bottom, right) in zip(places, boxes, strict=True)
    )
    return 100 * hits / len(places)
