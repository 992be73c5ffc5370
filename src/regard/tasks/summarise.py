"""Summaries: a document into few words, of which some may be copied, known or not."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.batch.pair import Batch, Pair, collate
from regard.decode.stepper import Hypothesis
from regard.models.pointer import coverage_loss
from regard.tasks.loss import Loss, cross_entropy
from regard.tasks.translate import AT_ONCE, Alignment, Translation, Translator
from regard.text.extended import Extended, decoded, extended, seen_from, tokens_of
from regard.text.special import END
from regard.text.tokeniser import Tokeniser


class Said(NamedTuple):
    """How a word of a summary came about."""

    word: str
    p_gen: float
    copied: float  # share of its probability that is of copying


class Summariser(Translator):
    """A translator that reads the beginning of a document, and may say words that it only saw.

    Of a document `longest` tokens are read, of a summary `longest_summary` are learnt; `cut` counts
    the documents and the summaries that were longer. Where the model copies, and tokens are words,
    unknown words of a document have ids of their own.
    """

    def __init__(
        self,
        model: nn.Module,
        source: Tokeniser,
        target: Tokeniser,
        longest: int = 400,
        longest_summary: int = 100,
    ):
        super().__init__(model, source, target)
        self.longest, self.longest_summary = longest, longest_summary
        self.cut = {"documents": 0, "summaries": 0}

    @property
    def copies(self) -> bool:
        return getattr(self.model, "copying", False)

    def pairs(
        self, records: Iterable[Mapping[str, str]], longest: int | None = None
    ) -> Iterator[Pair]:
        """Records as ids, one by one; what is too long is cut, and counted."""
        stream = enumerate(records)
        while some := list(islice(stream, AT_ONCE)):
            sources = self.read([record["source"] for _, record in some], longest)
            summaries = [record["target"] for _, record in some]
            targets = self.summaries(summaries, [one.words for one in sources])
            for (number, _), source, target in zip(some, sources, targets, strict=True):
                self.cut["documents"] += source.length > len(source.ids)
                self.cut["summaries"] += len(target) > self.longest_summary
                short = target[: self.longest_summary]
                yield Pair(number, source.ids, short, words=source.words)

    def read(self, texts: Sequence[str], longest: int | None = None) -> list[Extended]:
        """Documents as they are read."""
        longest = self.longest if longest is None else longest
        if self.copies and self.source.in_words:
            return extended(self.source, texts, longest)
        return [Extended(ids[:longest], [], len(ids)) for ids in self.source.ids(list(texts))]

    def summaries(self, texts: Sequence[str], words: Sequence[Sequence[str]]) -> list[list[int]]:
        """Summaries of documents that have these unknown words."""
        if any(words):
            return seen_from(self.target, texts, words)
        return self.target.ids(list(texts))

    def loss(
        self,
        batch: Batch,
        smoothing: float = 0.0,
        forcing: float = 1.0,
        coverage: float | None = 0.0,
    ) -> Loss:
        """-log p of the summaries and, if the model has it, `coverage` times the coverage loss.

        With None there is no coverage yet: neither its loss, nor what it tells the attention.
        """
        model = self.model
        if not hasattr(model, "written"):
            return super().loss(batch, smoothing, forcing)
        memory = model.remember(batch.source, batch.source_valid)
        written = model.written(memory, batch.target_in, coverage is not None)
        target, valid = batch.target_out, batch.target_valid
        if model.copying:
            told = model.log_likelihood(written, batch.source, target, valid)
            loss = Loss(-told.sum(), len(told))
        else:
            loss = cross_entropy(model.output, written.states, target, valid, smoothing=smoothing)
        if not (model.coverage and coverage):
            return loss
        again = coverage * coverage_loss(written.weights, valid)
        return loss._replace(total=loss.total + again)

    def asked(self, texts: Sequence[str]) -> list[Pair]:
        found = self.read(texts)
        return [Pair(n, one.ids, [], words=one.words) for n, one in enumerate(found)]

    def limits(self, batch: Batch, longest: int) -> list[int]:
        return [longest] * len(batch.numbers)

    def told_as(self, found: Hypothesis, pair: Pair) -> Translation:
        text = decoded(self.target, found.ids, pair.words)
        return Translation(text, found.score, found.log_prob, found.ids)

    def align(self, source: str, target: Sequence[int]) -> Alignment:
        """A finished summary, read once more word by word with somebody looking."""
        [pair] = self.asked([source])
        [weights] = self.attended([pair._replace(target=target)])
        return Alignment(
            tokens_of(self.source, [*pair.source, END], pair.words),
            tokens_of(self.target, [*target, END], pair.words),
            weights,
        )

    @torch.no_grad()
    def said(self, source: str, target: Sequence[int]) -> list[Said]:
        """How each word of a finished summary, and its end, came about; nothing, if not copied."""
        if not self.copies:
            return []
        [pair] = self.asked([source])
        batch, model = collate([pair._replace(target=target)]), self.model.eval()
        memory = model.remember(batch.source, batch.source_valid)
        written = model.written(memory, batch.target_in)
        p_gen = written.gates[0].sigmoid()
        whole = model.log_likelihood(written, batch.source, batch.target_out, batch.target_valid)
        copied = (1 - p_gen) * shares(written.weights[0], batch.source[0], batch.target_out[0])
        words = tokens_of(self.target, [*target, END], pair.words)
        return [
            Said(word, *numbers)
            for word, *numbers in zip(
                words, p_gen.tolist(), (copied / whole.exp()).clamp(max=1).tolist(), strict=True
            )
        ]


def shares(weights: Float[Tensor, "t s"], source: Tensor, target: Tensor) -> Float[Tensor, " t"]:
    """How much each target word looked at itself in the source."""
    return (weights * (source == target[:, None])).sum(-1)
