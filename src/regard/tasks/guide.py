"""Guided alignment: given word links teach the cross-attention where to look.

    loss = -sum_t log p(y_t | …) - weight sum_t sum_s A_ts log a_ts

    a: weights of the cross-attention; of several layers the last but one, of its heads the mean
    A: for each target token the source tokens of the linked words, in equal shares; a token whose
       word has no link teaches nothing

Chen et al. 2016 (1607.01628); Garg et al. 2019 (1909.02074), who guide one head of that layer.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attend.tap import observe
from regard.batch.pair import Batch, Pair
from regard.corpora.corpus import Record
from regard.metric.links import Links, links_of, numbered_lines
from regard.tasks.align import guided_layer
from regard.tasks.loss import Loss
from regard.tasks.translate import AT_ONCE, Translator

LEAST = 1e-12  # a smaller weight counts as this one: its logarithm stays finite


class Guided:
    """A task whose pairs bring their links, and whose loss looks at them.

    `path` is a file in Pharaoh format with a line for each record, words counted from 0.
    """

    def __init__(self, task: Translator, path: Path | str, weight: float):
        names = task.cross
        self.task, self.path, self.weight = task, Path(path), weight
        self.name = names[guided_layer(len(names))]

    def check(self, records: Iterable[Record]) -> None:
        """Before the work: a line for each record, and no more."""
        lines, count = sum(1 for _ in numbered_lines(self.path)), sum(1 for _ in records)
        if lines != count:
            raise ValueError(
                f"{self.path} has {lines} lines, but the training data {count} pairs: "
                "give a line for each, an empty one where there is no link"
            )

    @property
    def model(self) -> Any:
        return self.task.model

    def linked(self, records: Iterable[Record]) -> Iterator[Record]:
        """Records with their line of the file, so that they can be shuffled."""
        for record, (number, line) in zip(records, numbered_lines(self.path), strict=True):
            yield {**record, "links": line, "place": f"{self.path}:{number}"}

    def pairs(self, records: Iterable[Record], longest: int = 256) -> Iterator[Pair]:
        """Linked records as of the task, with the links between tokens."""
        source, target = self.task.source, self.task.target
        stream = enumerate(records)
        while some := list(islice(stream, AT_ONCE)):
            sources = source.encode_batch([record["source"] for _, record in some])
            targets = target.encode_batch([record["target"] for _, record in some])
            for (number, record), one, other in zip(some, sources, targets, strict=True):
                size = len(source.words(record["source"])), len(target.words(record["target"]))
                links = links_of(record["links"], record["place"], size=size)
                if len(one.ids) <= longest and len(other.ids) <= longest:
                    of_tokens = token_links(links, one.words, other.words)
                    yield Pair(number, one.ids, other.ids, of_tokens)

    def loss(self, batch: Batch, smoothing: float = 0.0, forcing: float = 1.0) -> Loss:
        if batch.guide is None:
            raise ValueError("batch has no guide: take its pairs from Guided.pairs")
        with observe(self.task.model, [self.name], detach=False) as seen:
            loss = self.task.loss(batch, smoothing, forcing)
        # the last pass: where tokens were drawn, there was another before it
        weights = seen.whole()[self.name][..., -batch.target_in.shape[1] :, :]
        if weights.ndim == 4:
            weights = weights.mean(1)
        return loss._replace(total=loss.total + self.weight * misfit(weights, batch.guide))


def misfit(weights: Float[Tensor, "b t s"], guide: Float[Tensor, "b t s"]) -> Float[Tensor, ""]:
    """-sum guide log weights."""
    weights = weights.to(torch.promote_types(weights.dtype, guide.dtype))  # half: float32
    return -(guide * weights.clamp(min=LEAST).log()).sum()


def token_links(
    links: Links, source_words: Sequence[int | None], target_words: Sequence[int | None]
) -> Int[np.ndarray, "k 2"]:
    """(target position, source position) of all tokens of linked words."""
    sources, targets = places(source_words), places(target_words)
    found = [(t, s) for i, j in sorted(links) for t in targets[j] for s in sources[i]]
    return np.array(found, np.int32).reshape(-1, 2)


def places(words: Sequence[int | None]) -> defaultdict[int | None, list[int]]:
    """The positions of each word's tokens."""
    found: defaultdict[int | None, list[int]] = defaultdict(list)
    for position, word in enumerate(words):
        found[word].append(position)
    return found
