"""Shared parts of tasks that read one text and write another: `translate` and `summarize`.

b: batch   t: target positions   s: source positions   l: layers   h: heads
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.observe import observe
from regard.batching.batches import iterate_by_length
from regard.batching.example import Batch, Example, collate
from regard.batching.source import BatchSource
from regard.data.corpus import Corpus, Record
from regard.decoding.listen import notify_pause
from regard.decoding.replicas import map_in_replicas, share_of_tokens
from regard.decoding.stepper import Hypothesis, Stepper
from regard.engines.ctranslate2_cache import EngineModel
from regard.engines.ctranslate2_model import SpecialTokens, supported_model, table_rows
from regard.engines.ctranslate2_search import (
    CTranslate2Layout,
    CTranslate2Translator,
    EngineSearch,
)
from regard.errors import InputError
from regard.models.catalogue import build_model
from regard.models.protocols import AnySeq2SeqModel, Seq2SeqModel, require_model
from regard.models.transformer import Transformer
from regard.tasks.base import (
    BatchOptions,
    ProgressCallback,
    RunAsset,
    SettingsT,
    Task,
    TaskBuilder,
    Vocabularies,
    VocabularyLoader,
    batches_by_length,
)
from regard.tasks.building import find_vocabulary, model_options, train_tokenizer_on_corpus
from regard.tasks.generation import (
    TOKENS_PER_BATCH,
    Decoding,
    TextOutput,
    TextPrediction,
    sampling_seeds,
)
from regard.tasks.loss import Loss, cross_entropy, sum_losses
from regard.tasks.prefix import NO_PREFIX, OutputPrefix, find_prefix, limit_outputs
from regard.tasks.text_engine import (
    ModelVersion,
    can_use_engine,
    find_engine_search,
    tokens_of,
)
from regard.text.special import END, SPECIALS
from regard.text.tokenizer import Tokenizer

SIDES = ("source", "target")
TEXTS_PER_ENGINE_CALL = 256  # between two calls, a search can be stopped


class Alignment(NamedTuple):
    """The attention of each target token to each source token; the ends have rows and columns."""

    source: list[str]
    target: list[str]
    weights: Float[Tensor, "t s"]


class Seq2SeqTask(Task[Example, Batch, AnySeq2SeqModel]):
    """A model, the vocabularies of its two sides, and how outputs are found."""

    fields = SIDES
    accepts_target: ClassVar = True
    accepts_prefix: ClassVar = True
    decodes_in_replicas: ClassVar = True
    engine: CTranslate2Translator | None = None
    version: ModelVersion | None = None

    def __init__(
        self,
        model: AnySeq2SeqModel,
        source: Tokenizer,
        target: Tokenizer,
        *,
        decoding: Decoding,
        max_tokens: int = 256,
        label_smoothing: float = 0.0,
    ):
        self.model, self.source, self.target = model, source, target
        self.decoding, self.max_tokens, self.label_smoothing = decoding, max_tokens, label_smoothing

    def collate(self, examples: Sequence[Example]) -> Batch:
        return collate(examples)

    def batches(self, corpus: Corpus, options: BatchOptions) -> BatchSource[Batch]:
        return batches_by_length(self, corpus, options)

    def cross_entropy(self, batch: Batch, smoothing: float = 0.0) -> Loss:
        """Return the teacher-forced loss of a batch."""
        memory = self.model.remember(batch.source, batch.source_valid)
        states = self.model.teacher_forced(memory, batch.target_in)
        return cross_entropy(
            self.model.output, states, batch.target_out, batch.target_valid, smoothing=smoothing
        )

    @abstractmethod
    def evaluation_examples(self, records: Iterable[Record]) -> Iterator[Example]:
        """Return the examples whose likelihood can be measured."""

    def negative_log_likelihood(self, records: Iterable[Record]) -> Loss:
        """Return -log p(target | source), the ends included."""
        return self.negative_log_likelihood_of(list(self.evaluation_examples(records)))

    @torch.no_grad()
    def negative_log_likelihood_of(self, examples: Sequence[Example]) -> Loss:
        self.model.eval()
        batches = iterate_by_length(
            examples, collate=collate, tokens_per_batch=TOKENS_PER_BATCH, device=self.device
        )
        losses = [self.cross_entropy(batch) for batch in batches]
        return sum_losses(losses)

    def predict(
        self, records: Sequence[Record], *, on_progress: ProgressCallback | None = None
    ) -> Sequence[TextPrediction]:
        """Return the n best outputs for each record.

        Texts of about equal length are decoded together; neither this nor the order of the records
        changes an output.
        """
        return self.decode(
            [record["source"] for record in records],
            prefixes=[self.prefix(record) for record in records],
            on_progress=on_progress,
        )

    def prefix(self, record: Record) -> OutputPrefix:
        """Return the beginning of the output that a record prescribes; usually none."""
        target = self.target
        return find_prefix(record, lambda text: target.encode_ids([text])[0], target.token_id, END)

    @torch.no_grad()
    def decode(
        self,
        texts: Sequence[str],
        *,
        prefixes: Sequence[OutputPrefix] = (),
        decoding: Decoding | None = None,
        stepper: Stepper[Any, Any] | None = None,
        tokens_per_batch: int = TOKENS_PER_BATCH,
        examples_per_batch: int | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> list[TextPrediction]:
        """Return the n best outputs for each text; `stepper` takes the place of the model."""
        self.model.eval()
        decoding = decoding or self.decoding
        examples = self.source_examples(texts)
        prefixes = prefixes or [NO_PREFIX] * len(examples)
        seeds, pending = sampling_seeds([example.source for example in examples]), examples
        predictions: list[TextPrediction] = [TextPrediction("")] * len(examples)
        if stepper is None and not any(prefix.ids or prefix.is_complete for prefix in prefixes):
            pending = self.decode_by_engine(examples, decoding, predictions, on_progress)
        replicas = self.replica_count() if stepper is None else 1
        lengths = [max(example.lengths) + 1 for example in pending]
        batches = iterate_by_length(
            pending,
            collate=collate,
            tokens_per_batch=share_of_tokens(lengths, tokens_per_batch, replicas),
            examples_per_batch=examples_per_batch,
            device=self.device,
        )

        def decode_batch(batch: Batch) -> list[tuple[int, TextPrediction]]:
            indices = batch.indices.tolist()
            max_lengths = [
                self.max_output_length(len(examples[index].source), decoding.max_length)
                for index in indices
            ]
            memory = self.model.remember(batch.source, batch.source_valid)
            search = decoding.search([seeds[index] for index in indices])
            hypotheses = search(
                stepper or self.model,
                memory,
                constraints=limit_outputs(
                    decoding.constraints, max_lengths, [prefixes[index] for index in indices]
                ),
            )
            if decoding.rerank is not None:
                sources = [examples[index].source for index in indices]
                hypotheses = decoding.rerank(
                    hypotheses, self.hypothesis_weights(sources, hypotheses)
                )
            outputs = [
                tuple(self.to_output(hypothesis, examples[index]) for hypothesis in best)
                for index, best in zip(indices, hypotheses, strict=True)
            ]
            texts = [TextPrediction(best[0].text, best) for best in outputs]
            return list(zip(indices, texts, strict=True))

        for decoded in map_in_replicas(decode_batch, list(batches) if pending else [], replicas):
            for index, prediction in decoded:
                predictions[index] = prediction
            if on_progress is not None:
                on_progress(len(decoded))
        return predictions

    def decode_by_engine(
        self,
        examples: Sequence[Example],
        decoding: Decoding,
        predictions: list[TextPrediction],
        on_progress: ProgressCallback | None,
    ) -> Sequence[Example]:
        """Fill in the predictions that the engine makes; return the examples of the others."""
        engine = self.engine
        if engine is None or decoding is not self.decoding or not can_use_engine(self.version):
            return examples
        search, pending = self.engine_search(decoding), list[Example]()
        for start in range(0, len(examples), TEXTS_PER_ENGINE_CALL):
            notify_pause()
            chunk = examples[start : start + TEXTS_PER_ENGINE_CALL]
            max_length = decoding.max_length
            lengths = [self.max_output_length(len(item.source), max_length) for item in chunk]
            hypotheses = engine.search([item.source for item in chunk], lengths, search)
            for example, best in zip(chunk, hypotheses, strict=True):
                if best is None:
                    pending.append(example)
                    continue
                outputs = tuple(self.to_output(hypothesis, example) for hypothesis in best)
                predictions[example.index] = TextPrediction(outputs[0].text, outputs)
            if on_progress is not None:
                on_progress(len(hypotheses) - hypotheses.count(None))
        return pending

    def engine_model(self) -> EngineModel:
        model = supported_model(self.model)
        tokens = [tokens_of(vocabulary) for vocabulary in (self.source, self.target)]
        return EngineModel(model, tokens, SpecialTokens(*SPECIALS[1:]))

    def engine_search(self, decoding: Decoding) -> EngineSearch:
        return find_engine_search(decoding, self.target.size)

    def set_engine(self, layout: CTranslate2Layout | None) -> None:
        self.engine = self.version = None
        if layout is not None and isinstance(self.model, Transformer):
            source, target = self.engine_model().vocabularies
            self.engine = CTranslate2Translator(
                layout,
                source,
                target,
                max_source=table_rows(self.model.source_position),
                max_target=table_rows(self.model.target_position),
            )
            self.version = ModelVersion(self.model)

    def partial_text(self, record: Record, ids: Sequence[int]) -> str | None:  # noqa: ARG002
        return self.target.decode([token_id for token_id in ids if token_id != END])

    def source_examples(self, texts: Sequence[str]) -> Sequence[Example]:
        """Return examples without targets."""
        return [Example(n, ids, []) for n, ids in enumerate(self.source.encode_ids(list(texts)))]

    def max_output_length(self, source_length: int, max_length: int) -> int:
        """Return the maximum length of an output: twice its source with its end, and ten more."""
        return min(2 * (source_length + 1) + 10, max_length)

    def to_output(self, hypothesis: Hypothesis, example: Example) -> TextOutput:  # noqa: ARG002
        text = self.target.decode(hypothesis.ids)
        return TextOutput(text, hypothesis.score, hypothesis.log_prob, hypothesis.ids)

    def alignment(self, source: str, target: Sequence[int]) -> Alignment:
        """Return the attention of a finished output, which is read once more, teacher-forced."""
        ids = self.source.encode_ids([source])[0]
        [weights] = self.mean_attention_weights([Example(0, ids, target)])
        return Alignment(
            [self.source.token(n) for n in [*ids, END]],
            [self.target.token(n) for n in [*target, END]],
            weights,
        )

    def mean_attention_weights(self, examples: Sequence[Example]) -> list[Float[Tensor, "t s"]]:
        """Return the attention of each example, averaged over layers and heads."""
        tables: list[Tensor] = [torch.empty(0, 0)] * len(examples)
        indexed = [replace(example, index=index) for index, example in enumerate(examples)]
        for batch in iterate_by_length(indexed, collate=collate, tokens_per_batch=TOKENS_PER_BATCH):
            means = self.attention_weights(batch).mean((0, 2))
            for index, table in zip(batch.indices.tolist(), means, strict=True):
                example = examples[index]
                tables[index] = table[: len(example.target) + 1, : len(example.source) + 1]
        return tables

    @torch.no_grad()
    def attention_weights(self, batch: Batch) -> Float[Tensor, "l b h t s"]:
        """Return the attention of each target position to the source, by layer and head."""
        model, batch = self.model.eval(), self.to_device(batch)
        with observe(model, self.cross_attentions) as recorded:
            model.teacher_forced(model.remember(batch.source, batch.source_valid), batch.target_in)
        layers = [recorded.joined()[name] for name in self.cross_attentions]
        return torch.stack(
            [layer if layer.ndim == 4 else layer[:, None] for layer in layers]
        ).float()

    @property
    def cross_attentions(self) -> tuple[str, ...]:
        """The names of the attentions to the source; an error if the model has none."""
        if not self.model.cross_attentions:
            kind = type(self.model).__name__
            raise InputError(f"model {kind} has no attention to the source")
        return self.model.cross_attentions

    def hypothesis_weights(
        self, sources: Sequence[Sequence[int]], hypotheses: Sequence[Sequence[Hypothesis]]
    ) -> list[list[Float[Tensor, "t s"]]]:
        """Return the attention of each hypothesis to its source, without the end of the source."""
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

    def has_attention(self) -> bool:
        return bool(self.model.cross_attentions)

    def attention_names(self) -> tuple[str, ...]:
        return self.cross_attentions


class Seq2SeqBuilder(TaskBuilder[SettingsT, AnySeq2SeqModel]):
    """Builds two vocabularies, or one for both sides, and a model with their sizes."""

    def vocabulary_loaders(self, settings: SettingsT) -> dict[str, VocabularyLoader]:  # noqa: ARG002
        return dict.fromkeys(SIDES, Tokenizer.load)

    def build_vocabularies(self, settings: SettingsT, corpus: Corpus) -> dict[str, RunAsset]:
        if settings.text.joint:
            return dict.fromkeys(SIDES, train_tokenizer_on_corpus(settings.text, corpus, *SIDES))
        return {side: train_tokenizer_on_corpus(settings.text, corpus, side) for side in SIDES}

    def build_model(self, settings: SettingsT, vocabularies: Vocabularies) -> AnySeq2SeqModel:
        sizes = {
            f"{side}_size": find_vocabulary(vocabularies, side, Tokenizer).size for side in SIDES
        }
        model = build_model(settings.model.kind, {**model_options(settings.model), **sizes})
        return require_model(model, Seq2SeqModel)
