"""Metrics of captions: BLEU-1 to BLEU-4, CIDEr, and pointing accuracy of attention.

    CIDEr_n(c, S) = 10/m sum_j exp(-(l(c) - l(s_j))^2 / 2 sigma^2)
                         min(g_n(c), g_n(s_j)) . g_n(s_j) / (|g_n(c)| |g_n(s_j)|)

g_n: counts of n-grams times log(images / images with the n-gram in a reference). CIDEr is the mean
over n = 1 to 4 (Vedantam et al. 2015, sec. 4: CIDEr-D, sigma = 6; COCO's server calls it CIDEr).
"""

import math
import re
from collections import Counter
from collections.abc import Sequence

from regard.errors import InputError
from regard.metrics.translation import MetricScore, References, corpus_score, reference_lists

MAX_NGRAM_ORDER, SIGMA = 4, 6.0
WORD = re.compile(r"\w+(?:[\'\u2019]\w+)*")
NgramCounts = Counter[tuple[str, ...]]
Pixel = int | float
Box = tuple[Pixel, Pixel, Pixel, Pixel]  # top, left, bottom, right


def bleu_1_to_4(outputs: Sequence[str], references: References) -> list[MetricScore]:
    """Return corpus BLEU of n-grams up to 1, 2, 3 and 4, in lower case."""
    from sacrebleu.metrics.bleu import BLEU  # slow to import, and a prediction needs no metrics

    return [
        corpus_score(BLEU(lowercase=True, max_ngram_order=order), outputs, references)
        for order in range(1, MAX_NGRAM_ORDER + 1)
    ]


def cider(outputs: Sequence[str], references: References) -> float:
    """Return the mean CIDEr of all outputs, times 100 as in papers.

    An output that equals its only reference has 1000. Words are in lower case, without punctuation.
    The references give the inverse document frequencies, so the value for a single image is 0.
    """
    reference_counts = [
        [ngram_counts(text) for text in counts_of_output]
        for counts_of_output in reference_lists(outputs, references)
    ]
    document_counts: NgramCounts = Counter()
    for counts_of_output in reference_counts:
        document_counts.update(set().union(*counts_of_output))
    idf = {gram: math.log(len(reference_counts) / count) for gram, count in document_counts.items()}
    unseen_idf = math.log(len(reference_counts))
    total = 0.0
    for output, counts_of_output in zip(outputs, reference_counts, strict=True):
        output_counts = ngram_counts(output)
        total += sum(
            cider_similarity(output_counts, reference, idf, unseen_idf)
            for reference in counts_of_output
        ) / len(counts_of_output)
    return 100 * total / len(outputs)


def ngram_counts(text: str) -> NgramCounts:
    words = WORD.findall(text.lower())
    return Counter(
        tuple(words[start : start + order])
        for order in range(1, MAX_NGRAM_ORDER + 1)
        for start in range(len(words) - order + 1)
    )


def cider_similarity(
    output: NgramCounts,
    reference: NgramCounts,
    idf: dict[tuple[str, ...], float],
    unseen_idf: float,
) -> float:
    """Return CIDEr of an output and one of its references."""
    dot_products, output_norms, reference_norms = (
        [0.0] * MAX_NGRAM_ORDER,
        [0.0] * MAX_NGRAM_ORDER,
        [0.0] * MAX_NGRAM_ORDER,
    )
    for gram, count in output.items():
        output_norms[len(gram) - 1] += (count * idf.get(gram, unseen_idf)) ** 2
    for gram, count in reference.items():
        weight = idf[gram]
        reference_norms[len(gram) - 1] += (count * weight) ** 2
        dot_products[len(gram) - 1] += min(output[gram], count) * count * weight**2
    lengths = [
        sum(n for gram, n in counts.items() if len(gram) == 1) for counts in (output, reference)
    ]
    length_penalty = math.exp(-((lengths[0] - lengths[1]) ** 2) / (2 * SIGMA**2))
    cosines = (
        dot / math.sqrt(a * b) if a and b else 0.0
        for dot, a, b in zip(dot_products, output_norms, reference_norms, strict=True)
    )
    return 10 * length_penalty * sum(cosines) / MAX_NGRAM_ORDER


def pointing_accuracy(locations: Sequence[tuple[Pixel, Pixel]], boxes: Sequence[Box]) -> float:
    """Return the percentage of words whose attention peaks (row, column) inside their box."""
    if not locations or len(locations) != len(boxes):
        raise InputError(
            f"{len(locations)} locations and {len(boxes)} boxes; give one of both for each word"
        )
    hits = sum(
        top <= row < bottom and left <= column < right
        for (row, column), (top, left, bottom, right) in zip(locations, boxes, strict=True)
    )
    return 100 * hits / len(locations)
