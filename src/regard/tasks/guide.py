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

from regard.attention.observe import observe
from regard.batching.example import Batch, Example
from regard.data.corpus import Record
from regard.metrics.alignment_files import Links, numbered_lines, parse_links
from regard.tasks.align import guided_layer
from regard.tasks.loss import Loss
from regard.tasks.translate import RECORDS_PER_CHUNK, TranslateTask

MIN_WEIGHT = 1e-12  # a smaller weight counts as this one: its logarithm stays finite


class GuidedTranslateTask:
    """A task whose pairs bring their links, and whose loss looks at them.

    `path` is a file in Pharaoh format with a line for each record, words counted from 0.
    """

    def __init__(self, task: TranslateTask, path: Path | str, weight: float):
        names = task.cross_attentions
        self.task, self.path, self.weight = task, Path(path), weight
        self.attention_name = names[guided_layer(len(names))]

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

    def with_links(self, records: Iterable[Record]) -> Iterator[Record]:
        """Records with their line of the file, so that they can be shuffled."""
        for record, (line_number, line) in zip(records, numbered_lines(self.path), strict=True):
            yield {**record, "links": line, "place": f"{self.path}:{line_number}"}

    def examples(self, records: Iterable[Record], max_tokens: int = 256) -> Iterator[Example]:
        """Linked records as of the task, with the links between tokens."""
        source, target = self.task.source, self.task.target
        stream = enumerate(records)
        while chunk := list(islice(stream, RECORDS_PER_CHUNK)):
            sources = source.encode_batch([record["source"] for _, record in chunk])
            targets = target.encode_batch([record["target"] for _, record in chunk])
            for (index, record), source_encoding, target_encoding in zip(
                chunk, sources, targets, strict=True
            ):
                size = len(source.words(record["source"])), len(target.words(record["target"]))
                links = parse_links(record["links"], record["place"], size=size)
                if (
                    len(source_encoding.ids) <= max_tokens
                    and len(target_encoding.ids) <= max_tokens
                ):
                    position_links = token_links(
                        links, source_encoding.words, target_encoding.words
                    )
                    yield Example(index, source_encoding.ids, target_encoding.ids, position_links)

    def loss(self, batch: Batch, smoothing: float = 0.0, teacher_forcing_rate: float = 1.0) -> Loss:
        if batch.guide is None:
            raise ValueError("batch has no guide: take its pairs from GuidedTranslateTask.examples")
        with observe(self.task.model, [self.attention_name], detach=False) as recorded:
            loss = self.task.loss(batch, smoothing, teacher_forcing_rate)
        # the last pass: where tokens were drawn, there was another before it
        weights = recorded.joined()[self.attention_name][..., -batch.target_in.shape[1] :, :]
        if weights.ndim == 4:
            weights = weights.mean(1)
        return Loss(loss.total + self.weight * alignment_loss(weights, batch.guide), loss.count)


def alignment_loss(
    weights: Float[Tensor, "b t s"], guide: Float[Tensor, "b t s"]
) -> Float[Tensor, ""]:
    """-sum guide log weights."""
    weights = weights.to(torch.promote_types(weights.dtype, guide.dtype))  # half: float32
    return -(guide * weights.clamp(min=MIN_WEIGHT).log()).sum()


def token_links(
    links: Links, source_words: Sequence[int | None], target_words: Sequence[int | None]
) -> Int[np.ndarray, "k 2"]:
    """(target position, source position) of all tokens of linked words."""
    sources, targets = word_positions(source_words), word_positions(target_words)
    position_pairs = [(t, s) for i, j in sorted(links) for t in targets[j] for s in sources[i]]
    return np.array(position_pairs, np.int32).reshape(-1, 2)


def word_positions(words: Sequence[int | None]) -> defaultdict[int | None, list[int]]:
    """The positions of each word's tokens."""
    positions: defaultdict[int | None, list[int]] = defaultdict(list)
    for position, word in enumerate(words):
        positions[word].append(position)
    return positions
