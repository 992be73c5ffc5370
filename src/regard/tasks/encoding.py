"""Shared parts of tasks whose model is an encoder with a head.

`EncoderModel`, `EncoderTask` and `max_tokens` serve any encoder. `EncoderBuilder` is for settings
with [start]: an encoder that reads text and may begin with the weights of another run.
"""

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor, nn

from regard.attention.observe import observe
from regard.batching.batches import iterate_by_length
from regard.batching.example import SizedT
from regard.batching.source import BatchSource
from regard.config.settings import Settings
from regard.data.corpus import Corpus, Record
from regard.errors import InputError
from regard.layers.lora import add_lora
from regard.models.catalogue import build_model
from regard.models.protocols import AnyEncoder
from regard.tasks.base import (
    BatchOptions,
    BatchT,
    ParameterGroup,
    SettingsT,
    Task,
    TaskBuilder,
    Vocabularies,
    VocabularyLoader,
    batches_by_length,
)
from regard.tasks.building import find_tokenizer, model_options, train_tokenizer_on_corpus
from regard.tasks.generation import RECORDS_PER_CHUNK, TOKENS_PER_BATCH
from regard.tasks.loss import Loss, sum_losses
from regard.tasks.pretrained import (
    TOKENIZER_FILE,
    layer_decay_groups,
    load_encoder_weights,
    start_config,
    with_pretrained_settings,
)
from regard.tasks.singletons import Singletons, find_singletons
from regard.tasks.text_vectors import TextVectorOptions
from regard.text.special_ids import AnyTokenizer, load_tokenizer, special_ids
from regard.text.tokenizer import Tokenizer

EncoderT = TypeVar("EncoderT", bound=AnyEncoder)
EncoderModelT = TypeVar("EncoderModelT", bound="EncoderModel[Any]")
EncoderTaskT = TypeVar("EncoderTaskT", bound="EncoderTask[Any, Any, Any]")


class EncoderModel(nn.Module, Generic[EncoderT]):
    """An encoder, trained or frozen; subclasses add a head."""

    def __init__(self, encoder: EncoderT, *, frozen: bool = False):
        super().__init__()
        self.encoder: EncoderT = encoder
        self.frozen = frozen
        if frozen:  # a mixture of layers belongs to the task, and is always trained
            for name, weight in encoder.named_parameters():
                weight.requires_grad_(name.startswith("mix."))

    def train(self: EncoderModelT, mode: bool = True) -> EncoderModelT:
        """Set the mode; a frozen encoder stays in evaluation mode, without dropout."""
        super().train(mode)
        if self.frozen:
            self.encoder.eval()
        return self


class EncoderTask(Task[SizedT, BatchT, EncoderModelT]):
    """A task whose model is an encoder with a head."""

    packed: bool = False
    unknown_singletons: float = 0.0  # probability that a word seen once is unknown in training
    vocabulary_size: int = 0

    def __init__(
        self,
        model: EncoderModelT,
        *,
        max_tokens: int = 256,
        label_smoothing: float = 0.0,
        layer_decay: float = 1.0,
        vector_options: TextVectorOptions | None = None,
    ):
        self.model = model
        self.vector_options = vector_options or TextVectorOptions()
        self.max_tokens, self.label_smoothing = max_tokens, label_smoothing
        self.layer_decay = layer_decay

    def batches(self, corpus: Corpus, options: BatchOptions) -> BatchSource[BatchT]:
        singletons = self.singletons(corpus) if self.unknown_singletons else None
        if singletons is None:
            return batches_by_length(self, corpus, options)

        def collate(examples: Sequence[SizedT]) -> BatchT:
            batch = self.collate(examples)
            singletons.hide(batch_inputs(batch))
            return batch

        return batches_by_length(self, corpus, options, collate=collate)

    def singletons(self, corpus: Corpus) -> Singletons | None:
        """Return the words that the training data has once."""
        examples = self.examples(corpus.read("train"))
        chunks = iter(lambda: list(islice(examples, RECORDS_PER_CHUNK)), [])
        inputs = (
            batch_inputs(batch) for chunk in chunks for batch in self.iterate_by_length(chunk)
        )
        return find_singletons(inputs, self.vocabulary_size, self.unknown_singletons)

    @abstractmethod
    def cross_entropy(self, batch: BatchT, smoothing: float = 0.0) -> Loss:
        """Return the loss of a batch, with smoothed labels in training."""

    def loss(self, batch: BatchT, step: int) -> Loss:  # noqa: ARG002 - every step is alike
        return self.cross_entropy(batch, self.label_smoothing)

    def evaluation_examples(self, records: Iterable[Record]) -> Iterator[SizedT]:
        """Return the examples whose likelihood is measured."""
        return self.examples(records)

    def negative_log_likelihood(self, records: Iterable[Record]) -> Loss:
        return self.negative_log_likelihood_of(list(self.evaluation_examples(records)))

    @torch.no_grad()
    def negative_log_likelihood_of(self, examples: Sequence[SizedT]) -> Loss:
        """Return -log p of the targets of these examples."""
        if not examples:
            raise InputError("no example is left; is the split empty, or train.max_tokens small?")
        self.model.eval()
        losses = [self.cross_entropy(batch) for batch in self.iterate_by_length(examples)]
        return sum_losses(losses)

    def iterate_by_length(self, examples: Sequence[SizedT]) -> Iterator[BatchT]:
        """Yield every example once, in batches of about equal length."""
        if not examples:
            return iter(())
        return iterate_by_length(
            examples,
            collate=self.collate,
            tokens_per_batch=TOKENS_PER_BATCH,
            device=self.device,
        )

    @torch.no_grad()
    def observed_weights(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return all attention weights of a forward pass, by the name of the attention."""
        with observe(self.model.eval()) as recorded:
            self.model(self.to_device(inputs))
        return recorded.joined()

    def parameter_groups(self) -> list[ParameterGroup]:
        if self.layer_decay == 1.0:
            return super().parameter_groups()
        return layer_decay_groups(self.model, self.model.encoder, self.layer_decay)


def batch_inputs(batch: object) -> dict[str, Tensor]:
    """Return the arguments of `encode` in a batch."""
    return getattr(batch, "inputs", {})


class EncoderBuilder(TaskBuilder[SettingsT, EncoderModelT]):
    """Builds an encoder of text with a head, from scratch or from the run that `start.run` names.

    Subclasses define `build_vocabularies`, `build_head` and `build_task`. The vocabulary of the
    text has the name "text".
    """

    special_token_count: ClassVar[int]  # positions that special tokens take

    def resolve_settings(self, settings: SettingsT) -> SettingsT:
        return with_pretrained_settings(settings)

    def vocabulary_loaders(self, settings: SettingsT) -> Mapping[str, VocabularyLoader]:  # noqa: ARG002
        return {"text": load_tokenizer}

    def build_tokenizer(self, settings: SettingsT, corpus: Corpus, *fields: str) -> AnyTokenizer:
        """Return the tokenizer of the pretrained run, or train one on these fields."""
        folder = start_config(settings).run
        if folder is not None:
            return load_tokenizer(Path(folder) / TOKENIZER_FILE)
        return train_tokenizer_on_corpus(settings.text, corpus, *fields)

    def train_unknown_words(
        self, settings: SettingsT, vocabularies: Vocabularies, task: EncoderTaskT
    ) -> EncoderTaskT:
        """Make words that occur once unknown in training, if the vocabulary has words."""
        tokenizer = find_tokenizer(vocabularies)
        if tokenizer.is_word_level and isinstance(tokenizer, Tokenizer):
            task.unknown_singletons = settings.text.unknown_singletons
            task.vocabulary_size = tokenizer.size
        return task

    def build_model(self, settings: SettingsT, vocabularies: Vocabularies) -> EncoderModelT:
        """Return the encoder with its head, then with LoRA if the settings have it."""
        encoder = self.build_encoder(settings, vocabularies)
        model = self.build_head(settings, vocabularies, encoder)
        rank = start_config(settings).lora_rank
        if rank:
            add_lora(encoder, rank)
        return model

    def build_encoder(self, settings: SettingsT, vocabularies: Vocabularies) -> nn.Module:
        """Return an encoder with random weights for the vocabulary of the text."""
        kind, options = settings.model.kind, model_options(settings.model)
        if kind == "elmo":  # which reads characters
            return build_model(kind, options)
        tokenizer = find_tokenizer(vocabularies)
        size = special_ids(tokenizer).size if kind == "bert" else tokenizer.size
        return build_model(kind, {**options, "size": size})

    @abstractmethod
    def build_head(
        self, settings: SettingsT, vocabularies: Vocabularies, encoder: nn.Module
    ) -> EncoderModelT:
        """Return the model: the encoder and a head with random weights."""

    def load_pretrained(self, settings: SettingsT, model: EncoderModelT) -> None:
        """Load the encoder of the run that `start.run` names; its head is not used."""
        folder = start_config(settings).run
        if folder is not None:
            load_encoder_weights(model.encoder, Path(folder))

    def max_tokens(self, settings: SettingsT) -> int:
        """Return the maximum number of tokens of text that is read at once."""
        return max_tokens(settings, self.special_token_count)


def max_tokens(settings: Settings, special_token_count: int = 0) -> int:
    """Return `train.max_tokens`, or fewer where the model has no positions for that many."""
    positions = getattr(settings.model, "max_positions", math.inf)
    return int(min(settings.train.max_tokens, positions - special_token_count))
