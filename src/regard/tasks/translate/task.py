"""Translation: a source text into a target text, with word alignments from attention."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import ClassVar

import torch
from jaxtyping import Int
from torch import Tensor

from regard.attention.observe import Edit
from regard.batching.batches import Batches
from regard.batching.example import Batch, Example
from regard.batching.source import BatchSource
from regard.batching.store import store_examples
from regard.data.corpus import Corpus, Record
from regard.decoding.tracing import TracingStepper
from regard.errors import InputError
from regard.metrics.language import perplexity
from regard.metrics.translation import bleu, chrf, exact_match, ter
from regard.models.protocols import AnySeq2SeqModel
from regard.tasks.alignment import Aligner
from regard.tasks.base import BatchOptions, InputField, Metrics, Prediction, Readout
from regard.tasks.generation import RECORDS_PER_CHUNK, Decoding, TextOutput
from regard.tasks.loss import Loss, cross_entropy
from regard.tasks.seq2seq import SIDES, Seq2SeqTask
from regard.tasks.translate import view
from regard.tasks.translate.guide import AlignmentGuide, collate_guided
from regard.text.tokenizer import Tokenizer
from regard.view.attention_map import AttentionMap
from regard.view.terminal import Surface

TOKENS_PER_DRAW = 256  # tokens drawn together in scheduled sampling
MAX_EVALUATION_TOKENS = 256  # of each side, for likelihoods


class TranslateTask(Seq2SeqTask):
    """Translation of a source text into a target text."""

    name: ClassVar = "translate"
    input_fields = (InputField("source", "Text to translate", "lines"),)
    example_unit: ClassVar = "sentences"
    accepts_links: ClassVar = True

    def __init__(
        self,
        model: AnySeq2SeqModel,
        source: Tokenizer,
        target: Tokenizer,
        *,
        decoding: Decoding,
        max_tokens: int = 256,
        max_evaluation_tokens: int = MAX_EVALUATION_TOKENS,
        label_smoothing: float = 0.0,
        teacher_forcing_rate: Callable[[int], float] = lambda step: 1.0,  # noqa: ARG005
        guide: AlignmentGuide | None = None,
        bleu_tokenizer: str = "13a",
    ):
        super().__init__(
            model,
            source,
            target,
            decoding=decoding,
            max_tokens=max_tokens,
            label_smoothing=label_smoothing,
        )
        self.max_evaluation_tokens = max_evaluation_tokens
        self.teacher_forcing_rate, self.guide = teacher_forcing_rate, guide
        self.bleu_tokenizer = bleu_tokenizer

    # --- training

    def examples(self, records: Iterable[Record]) -> Iterator[Example]:
        return self.examples_up_to(records, self.max_tokens)

    def examples_up_to(self, records: Iterable[Record], max_tokens: int) -> Iterator[Example]:
        """Yield the pairs whose sides have at most `max_tokens` tokens each."""
        stream = enumerate(records)
        while chunk := list(islice(stream, RECORDS_PER_CHUNK)):
            sources = self.source.encode_ids([record["source"] for _, record in chunk])
            targets = self.target.encode_ids([record["target"] for _, record in chunk])
            for (index, _), source, target in zip(chunk, sources, targets, strict=True):
                if len(source) <= max_tokens and len(target) <= max_tokens:
                    yield Example(index, source, target)

    def evaluation_examples(self, records: Iterable[Record]) -> Iterator[Example]:
        examples = list(self.examples_up_to(records, self.max_evaluation_tokens))
        if not examples:
            raise InputError(
                f"no pair has at most {self.max_evaluation_tokens} tokens on each side: "
                "the likelihood cannot be measured"
            )
        return iter(examples)

    def batches(self, corpus: Corpus, options: BatchOptions) -> BatchSource[Batch]:
        """Return batches of pairs of about equal length, with their links if there is a guide."""
        if self.guide is None:
            return super().batches(corpus, options)
        guide = self.guide
        guide.check(corpus.read("train"))
        examples = store_examples(
            lambda: guide.with_links(corpus.read("train")),
            partial(
                guide.examples, source=self.source, target=self.target, max_tokens=self.max_tokens
            ),
            SIDES,
            seed=options.seed,
            shuffle_buffer=options.shuffle_buffer,
            packed=False,
        )
        return Batches(
            examples,
            collate=collate_guided,
            tokens_per_batch=options.tokens_per_batch,
            examples_per_batch=options.examples_per_batch,
            seed=options.seed,
        )

    def loss(self, batch: Batch, step: int) -> Loss:
        if self.guide is None:
            return self.training_loss(batch, step)
        return self.guide.loss(self.model, batch, partial(self.training_loss, batch, step))

    def training_loss(self, batch: Batch, step: int) -> Loss:
        """Return the loss with label smoothing and scheduled sampling."""
        memory = self.model.remember(batch.source, batch.source_valid)
        target_in, rate = batch.target_in, self.teacher_forcing_rate(step)
        if rate < 1:
            target_in = self.scheduled_sampling(memory, target_in, rate)
        states = self.model.teacher_forced(memory, target_in)
        return cross_entropy(
            self.model.output,
            states,
            batch.target_out,
            batch.target_valid,
            smoothing=self.label_smoothing,
        )

    @torch.no_grad()
    def scheduled_sampling(
        self, memory: object, target: Int[Tensor, "b t"], teacher_forcing_rate: float
    ) -> Int[Tensor, "b t"]:
        """Return the target with some of its tokens drawn from the model.

        Bengio et al. 2015 draw token by token. Here all tokens are drawn in one pass, each after
        the true tokens before it (Duckworth et al. 2019): no model becomes slower.
        """
        states = self.model.teacher_forced(memory, target[:, :-1])
        shape, rows = target[:, 1:].shape, states.flatten(0, 1).split(TOKENS_PER_DRAW)
        draws = [self.model.logits(chunk).softmax(-1).multinomial(1) for chunk in rows]
        sampled = torch.cat(draws).view(shape)
        is_forced = torch.rand(shape, device=target.device) < teacher_forcing_rate
        return torch.cat([target[:, :1], torch.where(is_forced, target[:, 1:], sampled)], 1)

    def compile(self) -> None:
        for name in ("remember", "teacher_forced"):
            setattr(self.model, name, torch.compile(getattr(self.model, name), dynamic=True))

    # --- inference

    def parse(self, line: str, location: str) -> Record:
        length = len(self.source.encode_ids([line])[0])
        if length > self.max_tokens:
            raise InputError(
                f"{location}: {length} tokens, but the run was trained on texts of at most "
                f"{self.max_tokens}; split it into sentences, or train with a larger "
                "train.max_tokens"
            )
        return {"source": line}

    def metrics(self, records: Sequence[Record], predictions: Sequence[Prediction]) -> Metrics:
        """Return BLEU, chrF, TER and exact match."""
        outputs = [prediction.text for prediction in predictions]
        references = [record["target"] for record in records]
        tokenize = self.bleu_tokenizer
        metrics: Metrics = {}
        for name, metric in (
            ("bleu", partial(bleu, tokenize=tokenize, force=tokenize == "none")),
            ("chrf", chrf),
            ("ter", ter),
        ):
            score = metric(outputs, references)
            metrics[name], metrics[f"{name}_signature"] = score.value, score.signature
        metrics["exact"] = exact_match(outputs, references)
        return metrics

    def likelihood_metrics(self, records: Sequence[Record]) -> Metrics:
        examples = list(self.evaluation_examples(records))
        loss = self.negative_log_likelihood_of(examples)
        metrics: Metrics = {"perplexity": perplexity(loss.total.item(), loss.count)}
        if skipped := len(records) - len(examples):
            metrics["not_in_perplexity"] = skipped
        return metrics

    # --- inspection

    def attention_map(self, record: Record, target: str | None = None) -> AttentionMap:
        return view.translation_map(self, record, target)

    def render(
        self,
        record: Record,
        surface: Surface,
        *,
        target: str | None = None,
        layer: int | None = None,  # noqa: ARG002
    ) -> str:
        return view.render_translation(self, record, surface, target)

    def trace(self, record: Record) -> tuple[TextOutput, TracingStepper]:
        """Return the best output for a record, and every hypothesis that the search tried."""
        stepper = TracingStepper(self.model)
        [prediction] = self.decode(
            [record["source"]], prefixes=[self.prefix(record)], stepper=stepper
        )
        return prediction.best, stepper

    def aligner(self) -> Aligner | None:
        return Aligner(self) if self.model.cross_attentions else None

    def readout(self, record: Record) -> Readout:
        return view.translation_readout(self, record["source"])

    def forced_attention(self, record: Record, links: Sequence[str]) -> dict[str, Edit]:
        return view.forced_attention(self, record, links)
