"""Word alignments from the cross-attention of a translation model.

The model reads a pair of texts teacher-forced, and its attention is recorded. A `WeightSelection`
says which of the weights become links. The best one is found on pairs that people have aligned, or
by the agreement of two directions.

b: batch   l: layers   h: heads   t: target tokens   s: source tokens   m, n: their words
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from torch import Tensor

from regard.batching.batches import iterate_by_length
from regard.batching.example import Batch, Example, collate
from regard.data.corpus import Record
from regard.data.formats.text_pairs import read_pairs
from regard.errors import InputError
from regard.metrics.alignment import Agreement, agreement, best_links, flipped, word_weights
from regard.metrics.alignment_files import GoldAlignment, Links, parse_links, read_gold
from regard.models.protocols import Model
from regard.tasks.generation import RECORDS_PER_CHUNK, TOKENS_PER_BATCH
from regard.text.tokenizer import Tokenizer

TextPairs = Sequence[tuple[str, str]]  # source and target
WordWeights = Float[np.ndarray, "m n"]  # attention of each target word to each source word
LinkExtractor = Callable[[WordWeights], Links]  # `best_links`, or `strong_links` with a threshold
ProgressCallback = Callable[[int], None]


@runtime_checkable
class AlignableTask(Protocol):
    """A task whose model reads a source and writes a target, with attention between them."""

    @property
    def model(self) -> Model: ...

    source: Tokenizer
    target: Tokenizer

    @property
    def cross_attentions(self) -> tuple[str, ...]: ...
    def attention_weights(self, batch: Batch) -> Float[Tensor, "l b h t s"]: ...


class WeightSelection(NamedTuple):
    """The weights to use: of a layer and a head, counted from 0, or None for the mean of all.

    `shift` 0 takes those of the position that predicts a target token; 1 those of the next, which
    reads it: a transformer knows only then what is to be aligned (Chen et al. 2020, 2004.14837).
    """

    layer: int | None
    head: int | None = None
    shift: int = 0

    def apply(self, weights: Float[Tensor, "l b h t s"]) -> Float[Tensor, "b t s"]:
        if self.layer is not None:
            weights = weights[self.layer : self.layer + 1]
        if self.head is not None:
            weights = weights[:, :, self.head : self.head + 1]
        return weights.mean((0, 2))


class ScoredSelection(NamedTuple):
    """A selection for each direction, and the agreement of its links with the reference."""

    selections: tuple[WeightSelection, ...]
    agreement: Agreement


class Aligner:
    """Links by one model, always as (source word, target word) of the given pairs.

    `target_to_source` is for a model that translates their targets into their sources.
    """

    def __init__(
        self,
        task: AlignableTask,
        *,
        target_to_source: bool = False,
        extract_links: LinkExtractor = best_links,
    ):
        self.task, self.target_to_source, self.extract_links = task, target_to_source, extract_links
        names = task.cross_attentions
        self.layers = len(names)
        self.heads: int = getattr(task.model.get_submodule(names[0]), "heads", 1)

    def default_selection(self) -> WeightSelection:
        """Return the mean of the heads in the last decoder layer but one (Garg et al. 2019)."""
        return WeightSelection(guided_layer(self.layers))

    def selections(self, *, heads: bool = True) -> list[WeightSelection]:
        """Return all selections, the default first; without `heads`, only means over heads."""
        selections = [self.default_selection()]
        for shift in (0, 1):
            for layer in range(self.layers):
                selections.append(WeightSelection(layer, shift=shift))
                if heads and self.heads > 1:
                    selections += [
                        WeightSelection(layer, head, shift) for head in range(self.heads)
                    ]
            if self.layers > 1:
                selections.append(WeightSelection(None, shift=shift))
        return list(dict.fromkeys(selections))

    def check(self, selection: WeightSelection) -> WeightSelection:
        for name, index, count in (
            ("layer", selection.layer, self.layers),
            ("head", selection.head, self.heads),
        ):
            if index is not None and not 0 <= index < count:
                last = f"0 to {count - 1}" if count > 1 else "0 only"
                raise InputError(f"{name} must be {last}, not {index}")
        if selection.shift not in (0, 1):
            raise InputError(f"shift must be 0 or 1, not {selection.shift}")
        return selection

    def links(
        self,
        texts: TextPairs,
        selections: Sequence[WeightSelection],
        *,
        tokens_per_batch: int = TOKENS_PER_BATCH,
        on_progress: ProgressCallback | None = None,
    ) -> list[list[Links]]:
        """Return the links of each pair, by selection; `on_progress` gets the number of pairs."""
        links_by_selection: list[list[Links]] = [[frozenset()] * len(texts) for _ in selections]
        for index, tables in self.word_weight_tables(
            texts, selections, tokens_per_batch=tokens_per_batch
        ):
            for links, table in zip(links_by_selection, tables, strict=True):
                links[index] = (
                    flipped(self.extract_links(table))
                    if self.target_to_source
                    else self.extract_links(table)
                )
            if on_progress is not None:
                on_progress(1)
        return links_by_selection

    def word_weight_tables(
        self,
        texts: TextPairs,
        selections: Sequence[WeightSelection],
        *,
        tokens_per_batch: int = TOKENS_PER_BATCH,
    ) -> Iterator[tuple[int, list[WordWeights]]]:
        """Yield the index of each pair, in any order, and its weights between words by selection.

        The end tokens are no words. Rows are the words that the model writes.
        """
        selections = [self.check(selection) for selection in selections]
        for first in range(0, len(texts), RECORDS_PER_CHUNK):
            chunk = texts[first : first + RECORDS_PER_CHUNK]
            sources = self.task.source.encode_batch([text[self.target_to_source] for text in chunk])
            targets = self.task.target.encode_batch(
                [text[not self.target_to_source] for text in chunk]
            )
            encodings = enumerate(zip(sources, targets, strict=True))
            examples = [
                Example(index, source.ids, target.ids) for index, (source, target) in encodings
            ]
            for batch in iterate_by_length(
                examples, collate=collate, tokens_per_batch=tokens_per_batch
            ):
                weights = self.task.attention_weights(batch)
                selected = [
                    (selection.apply(weights).numpy(), selection.shift) for selection in selections
                ]
                for row, index in enumerate(batch.indices.tolist()):
                    target, source = targets[index].words, sources[index].words
                    row_tables = [table[row, shift:] for table, shift in selected]
                    yield (
                        first + index,
                        [to_word_weights(row_table, target, source) for row_table in row_tables],
                    )


def to_word_weights(
    weights: Float[np.ndarray, "t s"], target: Sequence[int | None], source: Sequence[int | None]
) -> WordWeights:
    """Return the weights between words; those of end tokens and padding are cut off."""
    return word_weights(weights[: len(target), : len(source)], target, source)


def guided_layer(layers: int) -> int:
    """Return the last layer but one, or the only one: it aligns best (Garg et al. 2019)."""
    return max(layers - 2, 0)


def rank_by_gold(
    aligner: Aligner,
    texts: TextPairs,
    gold: Sequence[GoldAlignment],
    on_progress: ProgressCallback | None = None,
) -> list[ScoredSelection]:
    """Return every selection, the one with the lowest alignment error rate first."""
    selections = aligner.selections()
    selection_links = zip(
        selections, aligner.links(texts, selections, on_progress=on_progress), strict=True
    )
    return ranked(
        ScoredSelection((selection,), agreement(links, gold))
        for selection, links in selection_links
    )


def rank_by_agreement(
    first: Aligner, second: Aligner, texts: TextPairs, on_progress: ProgressCallback | None = None
) -> list[ScoredSelection]:
    """Return pairs of selections for two directions, best agreement first (Chen et al. 2020).

    No gold links are needed. Heads are not tried one by one, because every selection of one
    direction meets every selection of the other.
    """
    selections = first.selections(heads=False), second.selections(heads=False)
    first_links, second_links = (
        aligner.links(texts, aligner_selections, on_progress=on_progress)
        for aligner, aligner_selections in zip((first, second), selections, strict=True)
    )
    gold = [[GoldAlignment(links, links) for links in alignments] for alignments in second_links]
    return ranked(
        ScoredSelection((first_selection, second_selection), agreement(links, reference))
        for first_selection, links in zip(selections[0], first_links, strict=True)
        for second_selection, reference in zip(selections[1], gold, strict=True)
    )


def ranked(scored: Iterator[ScoredSelection]) -> list[ScoredSelection]:
    """Sort by error rate; two selections without any link do not agree."""

    def error_key(scored: ScoredSelection) -> tuple[bool, float]:
        return not scored.agreement.predicted_possible, scored.agreement.aer

    return sorted(scored, key=error_key)


class GoldAlignments(NamedTuple):
    """Pairs with known word alignments."""

    records: Sequence[Record]
    gold: Sequence[GoldAlignment]


def alignment_error(aligner: Aligner | None, gold: GoldAlignments | None) -> float | None:
    """Return the AER of the source word with the greatest weight; None if something is missing."""
    if gold is None or aligner is None:
        return None
    texts = [(record["source"], record["target"]) for record in gold.records]
    links = aligner.links(texts, [aligner.default_selection()])[0]
    return agreement(links, gold.gold).aer


def gold_from_records(records: Sequence[Record]) -> GoldAlignments | None:
    """Return the gold links that the records hold themselves, as those of `reorder` do."""
    if not all("links" in record for record in records):
        return None
    link_sets = [
        parse_links(entry["links"], f"record {number}") for number, entry in enumerate(records, 1)
    ]
    return GoldAlignments(records, [GoldAlignment(links, links) for links in link_sets])


def gold_from_files(gold: Path, pairs: Path, base: int = 0) -> GoldAlignments:
    """Return the links of a gold file, with its pairs in any format of `regard align`."""
    records = list(read_pairs([pairs]))
    sizes = [(len(record["source"].split()), len(record["target"].split())) for record in records]
    return GoldAlignments(records, read_gold(gold, base, sizes=sizes))
