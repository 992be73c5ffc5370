"""Guided alignment: training of the cross-attention towards given word links.

    loss = -sum_t log p(y_t | …) - weight sum_t sum_s A_ts log a_ts

    a: weights of the cross-attention; of several layers the last but one, of its heads the mean
    A: for each target token the source tokens of the linked words, in equal shares; 0 for a
       token whose word has no link

Chen et al. 2016 (1607.01628); Garg et al. 2019 (1909.02074), who guide one head of that layer.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.observe import ModuleTree, observe
from regard.batching.example import Batch, Example, collate
from regard.data.corpus import Record
from regard.errors import InputError
from regard.metrics.alignment_files import Links, numbered_lines, parse_links
from regard.tasks.alignment import guided_layer
from regard.tasks.generation import RECORDS_PER_CHUNK
from regard.tasks.loss import Loss
from regard.text.tokenizer import Tokenizer

MIN_WEIGHT = 1e-12  # lower bound of weights, so that logarithms stay finite


@dataclass(frozen=True, slots=True)
class GuidedExample(Example):
    """A source and a target, with (target position, source position) of each link."""

    links: Int[np.ndarray, "k 2"]


class AlignmentGuide:
    """Word links of the training pairs, and the loss that compares the attention with them.

    `path` is a file in Pharaoh format with a line for each record, words counted from 0.
    """

    def __init__(self, attentions: Sequence[str], path: Path | str, weight: float):
        self.path, self.weight = Path(path), weight
        self.attention_name = attentions[guided_layer(len(attentions))]

    def check(self, records: Iterable[Record]) -> None:
        """Raise an error unless there is one line for each record."""
        lines, count = sum(1 for _ in numbered_lines(self.path)), sum(1 for _ in records)
        if lines != count:
            raise InputError(
                f"{self.path} has {lines} lines, but the training data {count} pairs: "
                "write a line for each pair, an empty one where there is no link"
            )

    def with_links(self, records: Iterable[Record]) -> Iterator[Record]:
        """Yield records with their line of the file, so that they can be shuffled."""
        for record, (line_number, line) in zip(records, numbered_lines(self.path), strict=True):
            yield {**record, "links": line, "location": f"{self.path}:{line_number}"}

    def examples(
        self, records: Iterable[Record], *, source: Tokenizer, target: Tokenizer, max_tokens: int
    ) -> Iterator[GuidedExample]:
        """Yield examples with the links between their tokens."""
        stream = enumerate(records)
        while chunk := list(islice(stream, RECORDS_PER_CHUNK)):
            sources = source.encode_batch([record["source"] for _, record in chunk])
            targets = target.encode_batch([record["target"] for _, record in chunk])
            for (index, record), encoded_source, encoded_target in zip(
                chunk, sources, targets, strict=True
            ):
                size = len(source.words(record["source"])), len(target.words(record["target"]))
                links = parse_links(record["links"], record["location"], size=size)
                source_ids, target_ids = encoded_source.ids, encoded_target.ids
                if len(source_ids) <= max_tokens and len(target_ids) <= max_tokens:
                    positions = token_links(links, encoded_source.words, encoded_target.words)
                    yield GuidedExample(index, source_ids, target_ids, positions)

    def loss(self, model: ModuleTree, batch: Batch, base_loss: Callable[[], Loss]) -> Loss:
        """Return the base loss plus the weighted alignment loss of the guided attention."""
        if batch.guide is None:
            raise InputError("batch has no guide: take its examples from AlignmentGuide.examples")
        with observe(model, [self.attention_name], detach=False) as recorded:
            loss = base_loss()
        # Scheduled sampling adds a pass before this one.
        weights = recorded.joined()[self.attention_name][..., -batch.target_in.shape[1] :, :]
        if weights.ndim == 4:
            weights = weights.mean(1)
        return Loss(loss.total + self.weight * alignment_loss(weights, batch.guide), loss.count)


def collate_guided(examples: Sequence[Example]) -> Batch:
    """Return one padded batch, with the source positions that each target token attends to."""
    batch = collate(examples)
    size = (len(examples), batch.target_out.shape[1], batch.source.shape[1])
    return replace(batch, guide=alignment_guide(examples, size))


def alignment_guide(
    examples: Sequence[Example], size: tuple[int, int, int]
) -> Float[Tensor, "b t s"]:
    """Return the links of each target token, in equal shares; a row without links is zero."""
    table = np.zeros(size, np.float32)
    for row, example in enumerate(examples):
        if not isinstance(example, GuidedExample):
            raise InputError(f"pair {example.index} has no links; take it from AlignmentGuide")
        table[row, example.links[:, 0], example.links[:, 1]] = 1.0
    return torch.from_numpy(table / np.maximum(table.sum(-1, keepdims=True), 1.0))


def alignment_loss(
    weights: Float[Tensor, "b t s"], guide: Float[Tensor, "b t s"]
) -> Float[Tensor, ""]:
    """-sum guide log weights."""
    weights = weights.to(torch.promote_types(weights.dtype, guide.dtype))  # half: float32
    return -(guide * weights.clamp(min=MIN_WEIGHT).log()).sum()


def token_links(
    links: Links, source_words: Sequence[int | None], target_words: Sequence[int | None]
) -> Int[np.ndarray, "k 2"]:
    """Return (target position, source position) of all tokens of linked words."""
    sources, targets = word_positions(source_words), word_positions(target_words)
    position_pairs = [(t, s) for i, j in sorted(links) for t in targets[j] for s in sources[i]]
    return np.array(position_pairs, np.int32).reshape(-1, 2)


def word_positions(words: Sequence[int | None]) -> defaultdict[int | None, list[int]]:
    """Return the positions of the tokens of each word."""
    positions: defaultdict[int | None, list[int]] = defaultdict(list)
    for position, word in enumerate(words):
        positions[word].append(position)
    return positions
