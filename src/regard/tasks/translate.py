"""Translation: a source text into a target text, and what each target word looked at."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attend.tap import observe
from regard.batch.batches import in_order
from regard.batch.pair import Batch, Pair
from regard.decode.rules import FREE, Rules
from regard.decode.stepper import Hypothesis
from regard.tasks.loss import Loss, cross_entropy
from regard.text.special import END
from regard.text.tokeniser import Tokeniser

AT_ONCE = 10_000  # lines that are cut into tokens together
DRAWN = 256  # tokens that are drawn together
ROOM = 2000  # tokens of a batch in prediction


# How outputs are found: (model, its memory, a seed for each input, rules) -> outputs of each
Search = Callable[[Any, Any, list[int], Rules], list[list[Hypothesis]]]
# What was found, in another order: (outputs of each, their weights [t s]) -> outputs of each
Ranking = Callable[[list[list[Hypothesis]], list[list[Tensor]]], list[list[Hypothesis]]]


class Translation(NamedTuple):
    text: str
    score: float  # by which it was ranked
    log_prob: float
    ids: list[int]


class Alignment(NamedTuple):
    """How much each target token looked at each source token; rows are target, with the end."""

    source: list[str]
    target: list[str]
    weights: Float[Tensor, "t s"]


class Translator:
    """A model, and the vocabularies of its two sides."""

    fields = ("source", "target")

    def __init__(self, model: nn.Module, source: Tokeniser, target: Tokeniser):
        # any model with remember, forced, logits, output and the steps of a search
        self.model: Any = model
        self.source, self.target = source, target

    def pairs(self, records: Iterable[Mapping[str, str]], longest: int = 256) -> Iterator[Pair]:
        """Records as ids, one by one; no side over `longest` tokens."""
        stream = enumerate(records)
        while some := list(islice(stream, AT_ONCE)):
            sources = self.source.ids([record["source"] for _, record in some])
            targets = self.target.ids([record["target"] for _, record in some])
            for (number, _), source, target in zip(some, sources, targets, strict=True):
                if len(source) <= longest and len(target) <= longest:
                    yield Pair(number, source, target)

    def loss(self, batch: Batch, smoothing: float = 0.0, forcing: float = 1.0) -> Loss:
        """`forcing`: how often the decoder reads the true token before, and not its own guess."""
        memory = self.model.remember(batch.source, batch.source_valid)
        given = batch.target_in
        if forcing < 1:
            given = self.mixed(memory, given, forcing)
        states = self.model.forced(memory, given)
        return cross_entropy(
            self.model.output, states, batch.target_out, batch.target_valid, smoothing=smoothing
        )

    @torch.no_grad()
    def mixed(self, memory: Any, target: Int[Tensor, "b t"], forcing: float) -> Int[Tensor, "b t"]:
        """The target with some of its tokens drawn from the model: scheduled sampling.

        Bengio et al. 2015 draw token by token. Here all are drawn at once, each after the true
        tokens before it (Duckworth et al. 2019, one pass), so that every model trains at its speed.
        """
        states = self.model.forced(memory, target[:, :-1])
        shape, rows = target[:, 1:].shape, states.flatten(0, 1).split(DRAWN)
        drawn = [self.model.logits(some).softmax(-1).multinomial(1) for some in rows]
        guessed = torch.cat(drawn).view(shape)
        true = torch.rand(shape, device=target.device) < forcing
        return torch.cat([target[:, :1], torch.where(true, target[:, 1:], guessed)], 1)

    @torch.no_grad()
    def likelihood(self, pairs: Sequence[Pair]) -> Loss:
        """-log p(target | source) of all pairs, the ends included, and the number of tokens."""
        self.model.eval()
        losses = [self.loss(batch) for batch in in_order(pairs, tokens=ROOM)]
        total = torch.stack([loss.total.double() for loss in losses]).sum()
        return Loss(total, sum(loss.tokens for loss in losses))

    @torch.no_grad()
    def translate(
        self,
        texts: Sequence[str],
        search: Search,
        rules: Rules = FREE,
        *,
        again: Ranking | None = None,
        room: int = ROOM,
        sentences: int | None = None,
        told: Callable[[int], None] | None = None,
    ) -> list[list[Translation]]:
        """The n best translations of each text, in the order of the texts.

        Texts of about equal length are translated together, `room` tokens and `sentences` at most
        at a time; `told` hears how many each time. Neither these nor the order of the texts change
        an output. It may be twice as long as its source, and ten tokens more. With `again`, outputs
        are read once more with somebody looking, and ranked by what was seen.
        """
        self.model.eval()
        longest = rules.max_length if isinstance(rules.max_length, int) else max(rules.max_length)
        pairs = self.asked(texts)
        seeds = seeds_of(pairs)
        results: list[list[Translation]] = [[] for _ in texts]
        for batch in in_order(pairs, tokens=room, sentences=sentences) if pairs else ():
            numbers = batch.numbers.tolist()
            limits = self.limits(batch, longest)
            memory = self.model.remember(batch.source, batch.source_valid)
            some = [seeds[number] for number in numbers]
            found = search(self.model, memory, some, replace(rules, max_length=limits))
            if again is not None:
                found = again(found, self.looked([pairs[n].source for n in numbers], found))
            for number, best in zip(numbers, found, strict=True):
                results[number] = [self.told_as(one, pairs[number]) for one in best]
            if told is not None:
                told(len(numbers))
        return results

    def asked(self, texts: Sequence[str]) -> list[Pair]:
        """Texts whose targets are to be found."""
        return [Pair(n, ids, []) for n, ids in enumerate(self.source.ids(list(texts)))]

    def limits(self, batch: Batch, longest: int) -> list[int]:
        """How long each output may be."""
        return (2 * batch.source_valid.sum(-1) + 10).clamp(max=longest).tolist()

    def told_as(self, found: Hypothesis, pair: Pair) -> Translation:  # noqa: ARG002
        return Translation(self.target.decode(found.ids), found.score, found.log_prob, found.ids)

    def align(self, source: str, target: Sequence[int]) -> Alignment:
        """A finished output, read once more word by word with somebody looking."""
        ids = self.source.ids([source])[0]
        [weights] = self.attended([Pair(0, ids, target)])
        return Alignment(
            [self.source.token(n) for n in [*ids, END]],
            [self.target.token(n) for n in [*target, END]],
            weights,
        )

    def attended(self, pairs: Sequence[Pair]) -> list[Float[Tensor, "t s"]]:
        """How much each target token looked at each source token, both with their ends, by pair.

        What a model has of cross-attentions, heads and layers, is averaged.
        """
        tables: list[Tensor] = [torch.empty(0, 0)] * len(pairs)
        numbered = [pair._replace(number=number) for number, pair in enumerate(pairs)]
        for batch in in_order(numbered, tokens=ROOM):
            means = self.weights(batch).mean((0, 2))
            for number, table in zip(batch.numbers.tolist(), means, strict=True):
                pair = pairs[number]
                tables[number] = table[: len(pair.target) + 1, : len(pair.source) + 1]
        return tables

    @torch.no_grad()
    def weights(self, batch: Batch) -> Float[Tensor, "l b h t s"]:
        """What each position looked at in the source, by layer and head, as it read the batch."""
        model = self.model.eval()
        with observe(model, self.cross) as seen:
            model.forced(model.remember(batch.source, batch.source_valid), batch.target_in)
        layers = [seen.whole()[name] for name in self.cross]
        return torch.stack([one if one.ndim == 4 else one[:, None] for one in layers]).float()

    @property
    def cross(self) -> tuple[str, ...]:
        """The names of the attentions to the source."""
        if not self.model.cross:
            kind = type(self.model).__name__
            raise ValueError(f"model {kind} has no attention to the source: there is none to see")
        return self.model.cross

    def looked(
        self, sources: Sequence[Sequence[int]], found: Sequence[Sequence[Hypothesis]]
    ) -> list[list[Float[Tensor, "t s"]]]:
        """What the outputs of each source looked at; the end of the source is no word to cover."""
        both = list(zip(sources, found, strict=True))
        pairs = [Pair(0, source, one.ids) for source, outputs in both for one in outputs]
        tables = iter(self.attended(pairs))
        return [[next(tables)[:, : len(source)] for _ in outputs] for source, outputs in both]


def seeds_of(pairs: Sequence[Pair]) -> list[int]:
    """By what a source says, and not by where it stands; one that comes again draws anew."""
    times, seeds = Counter[tuple[int, ...]](), list[int]()
    for pair in pairs:
        ids = tuple(pair.source)
        times[ids] += 1
        told = " ".join(map(str, (*ids, -times[ids])))
        seeds.append(int.from_bytes(blake2b(told.encode(), digest_size=7).digest()))
    return seeds
