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

from regard.attention.observe import observe
from regard.batching.batches import iterate_by_length
from regard.batching.example import Batch, Example
from regard.decoding.constraints import UNCONSTRAINED, Constraints
from regard.decoding.stepper import Hypothesis
from regard.tasks.loss import Loss, cross_entropy
from regard.text.special import END
from regard.text.tokenizer import Tokenizer

RECORDS_PER_CHUNK = 10_000  # lines that are cut into tokens together
TOKENS_PER_DRAW = 256  # tokens that are drawn together
TOKENS_PER_BATCH = 2000  # tokens of a batch in prediction


# How outputs are found: (model, its memory, a seed for each input, rules) -> outputs of each
SearchFunction = Callable[[Any, Any, list[int], Constraints], list[list[Hypothesis]]]
# What was found, in another order: (outputs of each, their weights [t s]) -> outputs of each
RerankFunction = Callable[[list[list[Hypothesis]], list[list[Tensor]]], list[list[Hypothesis]]]


class TextPrediction(NamedTuple):
    text: str
    score: float  # by which it was ranked
    log_prob: float
    ids: list[int]


class Alignment(NamedTuple):
    """How much each target token looked at each source token; rows are target, with the end."""

    source: list[str]
    target: list[str]
    weights: Float[Tensor, "t s"]


class TranslateTask:
    """A model, and the vocabularies of its two sides."""

    fields = ("source", "target")

    def __init__(self, model: nn.Module, source: Tokenizer, target: Tokenizer):
        # any model with remember, forced, logits, output and the steps of a search
        self.model: Any = model
        self.source, self.target = source, target

    def examples(
        self, records: Iterable[Mapping[str, str]], max_tokens: int = 256
    ) -> Iterator[Example]:
        """Records as ids, one by one; no side over `longest` tokens."""
        stream = enumerate(records)
        while chunk := list(islice(stream, RECORDS_PER_CHUNK)):
            sources = self.source.encode_ids([record["source"] for _, record in chunk])
            targets = self.target.encode_ids([record["target"] for _, record in chunk])
            for (index, _), source, target in zip(chunk, sources, targets, strict=True):
                if len(source) <= max_tokens and len(target) <= max_tokens:
                    yield Example(index, source, target)

    def loss(self, batch: Batch, smoothing: float = 0.0, teacher_forcing_rate: float = 1.0) -> Loss:
        """`forcing`: how often the decoder reads the true token before, and not its own guess."""
        memory = self.model.remember(batch.source, batch.source_valid)
        target_in = batch.target_in
        if teacher_forcing_rate < 1:
            target_in = self.scheduled_sampling(memory, target_in, teacher_forcing_rate)
        states = self.model.teacher_forced(memory, target_in)
        return cross_entropy(
            self.model.output, states, batch.target_out, batch.target_valid, smoothing=smoothing
        )

    @torch.no_grad()
    def scheduled_sampling(
        self, memory: Any, target: Int[Tensor, "b t"], teacher_forcing_rate: float
    ) -> Int[Tensor, "b t"]:
        """The target with some of its tokens drawn from the model: scheduled sampling.

        Bengio et al. 2015 draw token by token. Here all are drawn at once, each after the true
        tokens before it (Duckworth et al. 2019, one pass), so that every model trains at its speed.
        """
        states = self.model.teacher_forced(memory, target[:, :-1])
        shape, rows = target[:, 1:].shape, states.flatten(0, 1).split(TOKENS_PER_DRAW)
        draws = [self.model.logits(chunk).softmax(-1).multinomial(1) for chunk in rows]
        sampled = torch.cat(draws).view(shape)
        is_forced = torch.rand(shape, device=target.device) < teacher_forcing_rate
        return torch.cat([target[:, :1], torch.where(is_forced, target[:, 1:], sampled)], 1)

    @torch.no_grad()
    def negative_log_likelihood(self, examples: Sequence[Example]) -> Loss:
        """-log p(target | source) of all pairs, the ends included, and the number of tokens."""
        self.model.eval()
        losses = [
            self.loss(batch)
            for batch in iterate_by_length(examples, tokens_per_batch=TOKENS_PER_BATCH)
        ]
        total = torch.stack([loss.total.double() for loss in losses]).sum()
        return Loss(total, sum(loss.count for loss in losses))

    @torch.no_grad()
    def predict(
        self,
        texts: Sequence[str],
        search: SearchFunction,
        rules: Constraints = UNCONSTRAINED,
        *,
        rerank: RerankFunction | None = None,
        tokens_per_batch: int = TOKENS_PER_BATCH,
        examples_per_batch: int | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> list[list[TextPrediction]]:
        """The n best translations of each text, in the order of the texts.

        Texts of about equal length are translated together, `room` tokens and `sentences` at most
        at a time; `told` hears how many each time. Neither these nor the order of the texts change
        an output. It may be twice as long as its source, and ten tokens more. With `again`, outputs
        are read once more with somebody looking, and ranked by what was seen.
        """
        self.model.eval()
        max_length = (
            rules.max_length if isinstance(rules.max_length, int) else max(rules.max_length)
        )
        examples = self.source_examples(texts)
        seeds = sampling_seeds(examples)
        results: list[list[TextPrediction]] = [[] for _ in texts]
        for batch in (
            iterate_by_length(
                examples, tokens_per_batch=tokens_per_batch, examples_per_batch=examples_per_batch
            )
            if examples
            else ()
        ):
            indices = batch.indices.tolist()
            max_lengths = self.max_lengths(batch, max_length)
            memory = self.model.remember(batch.source, batch.source_valid)
            batch_seeds = [seeds[index] for index in indices]
            hypotheses = search(
                self.model, memory, batch_seeds, replace(rules, max_length=max_lengths)
            )
            if rerank is not None:
                hypotheses = rerank(
                    hypotheses,
                    self.hypothesis_weights([examples[n].source for n in indices], hypotheses),
                )
            for index, best in zip(indices, hypotheses, strict=True):
                results[index] = [
                    self.to_prediction(hypothesis, examples[index]) for hypothesis in best
                ]
            if on_progress is not None:
                on_progress(len(indices))
        return results

    def source_examples(self, texts: Sequence[str]) -> list[Example]:
        """Texts whose targets are to be found."""
        return [Example(n, ids, []) for n, ids in enumerate(self.source.encode_ids(list(texts)))]

    def max_lengths(self, batch: Batch, max_length: int) -> list[int]:
        """How long each output may be."""
        return (2 * batch.source_valid.sum(-1) + 10).clamp(max=max_length).tolist()

    def to_prediction(self, hypothesis: Hypothesis, example: Example) -> TextPrediction:  # noqa: ARG002
        return TextPrediction(
            self.target.decode(hypothesis.ids),
            hypothesis.score,
            hypothesis.log_prob,
            hypothesis.ids,
        )

    def alignment(self, source: str, target: Sequence[int]) -> Alignment:
        """A finished output, read once more word by word with somebody looking."""
        ids = self.source.encode_ids([source])[0]
        [weights] = self.mean_attention_weights([Example(0, ids, target)])
        return Alignment(
            [self.source.token(n) for n in [*ids, END]],
            [self.target.token(n) for n in [*target, END]],
            weights,
        )

    def mean_attention_weights(self, examples: Sequence[Example]) -> list[Float[Tensor, "t s"]]:
        """How much each target token looked at each source token, both with their ends, by pair.

        What a model has of cross-attentions, heads and layers, is averaged.
        """
        tables: list[Tensor] = [torch.empty(0, 0)] * len(examples)
        indexed = [example._replace(index=index) for index, example in enumerate(examples)]
        for batch in iterate_by_length(indexed, tokens_per_batch=TOKENS_PER_BATCH):
            means = self.attention_weights(batch).mean((0, 2))
            for index, table in zip(batch.indices.tolist(), means, strict=True):
                example = examples[index]
                tables[index] = table[: len(example.target) + 1, : len(example.source) + 1]
        return tables

    @torch.no_grad()
    def attention_weights(self, batch: Batch) -> Float[Tensor, "l b h t s"]:
        """What each position looked at in the source, by layer and head, as it read the batch."""
        model = self.model.eval()
        with observe(model, self.cross_attentions) as recorded:
            model.teacher_forced(model.remember(batch.source, batch.source_valid), batch.target_in)
        layers = [recorded.joined()[name] for name in self.cross_attentions]
        return torch.stack(
            [layer if layer.ndim == 4 else layer[:, None] for layer in layers]
        ).float()

    @property
    def cross_attentions(self) -> tuple[str, ...]:
        """The names of the attentions to the source."""
        if not self.model.cross_attentions:
            kind = type(self.model).__name__
            raise ValueError(f"model {kind} has no attention to the source: there is none to see")
        return self.model.cross_attentions

    def hypothesis_weights(
        self, sources: Sequence[Sequence[int]], hypotheses: Sequence[Sequence[Hypothesis]]
    ) -> list[list[Float[Tensor, "t s"]]]:
        """What the outputs of each source looked at; the end of the source is no word to cover."""
        sources_and_outputs = list(zip(sources, hypotheses, strict=True))
        examples = [
            Example(0, source, hypothesis.ids)
            for source, outputs in sources_and_outputs
            for hypothesis in outputs
        ]
        tables = iter(self.mean_attention_weights(examples))
        return [
            [next(tables)[:, : len(source)] for _ in outputs]
            for source, outputs in sources_and_outputs
        ]


def sampling_seeds(examples: Sequence[Example]) -> list[int]:
    """By what a source says, and not by where it stands; one that comes again draws anew."""
    occurrences, seeds = Counter[tuple[int, ...]](), list[int]()
    for example in examples:
        ids = tuple(example.source)
        occurrences[ids] += 1
        key = " ".join(map(str, (*ids, -occurrences[ids])))
        seeds.append(int.from_bytes(blake2b(key.encode(), digest_size=7).digest()))
    return seeds
