"""Pretraining by two language models, forward and backward: ELMo's objective.

    loss = mean over words of -log p(w_k | w_1 … w_{k-1}) and of -log p(w_k | w_{k+1} … w_N)
                                                                Peters et al. 2018 (1802.05365), 3.1
b: sentences   t: words, START and END   c: characters of a word
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.batching.batches import iterate_by_length
from regard.batching.example import padded
from regard.data.corpus import Record
from regard.errors import InputError
from regard.files import JsonObject
from regard.metrics.language import perplexity
from regard.models.elmo import Elmo
from regard.tasks.base import Metrics, Prediction, ProgressCallback
from regard.tasks.encoder_inputs import CharacterInputs
from regard.tasks.generation import TOKENS_PER_BATCH
from regard.tasks.loss import Loss, cross_entropy, sum_losses
from regard.tasks.pretrain.objective import PretrainingObjective
from regard.tasks.text_vectors import TextVectorOptions
from regard.text.sentences import split_sentences
from regard.text.special import END, START
from regard.text.special_ids import AnyTokenizer
from regard.view.attention_map import AttentionMap
from regard.view.terminal import Surface


@dataclass(frozen=True)
class BiLmExample:
    """A sentence, or a part of one: the words to read, and their ids as targets."""

    index: int
    words: Sequence[str]
    ids: Sequence[int]

    @property
    def lengths(self) -> tuple[int, int]:
        return len(self.words), len(self.ids)


@dataclass(frozen=True)
class BiLmBatch:
    """Sentences between START and END: characters to read, words to predict."""

    characters: Int[Tensor, "b t c"]
    valid: Bool[Tensor, "b t"]
    ids: Int[Tensor, "b t"]


class BiLmLoss(NamedTuple):
    """The sums of -log p in each direction, and the number of words in one of them."""

    forward: Tensor
    backward: Tensor
    words: int


@dataclass(frozen=True)
class PerplexityPrediction(Prediction):
    """The perplexity of a text; `text` is the perplexity of both directions, with two decimals."""

    perplexity: float = 0.0
    forward: float = 0.0
    backward: float = 0.0
    words: int = 0

    def as_dict(self) -> JsonObject:
        return {
            "perplexity": self.perplexity,
            "forward": self.forward,
            "backward": self.backward,
            "words": self.words,
        }


class BiLmTask(PretrainingObjective[BiLmExample, BiLmBatch, Elmo]):
    """An ELMo, which reads the characters of words and predicts words of its vocabulary."""

    unit: ClassVar = "words"
    packed = False  # examples hold words
    special_token_count: ClassVar = 2  # START and END of a sentence

    def __init__(
        self,
        model: Elmo,
        text: AnyTokenizer,
        *,
        max_tokens: int = 128,
        vector_options: TextVectorOptions | None = None,
    ):
        self.model, self.vector_options = model, vector_options or TextVectorOptions()
        self.text, self.inputs, self.max_tokens = text, CharacterInputs(text), max_tokens

    # --- training

    def examples(self, records: Iterable[Record]) -> Iterator[BiLmExample]:
        """Yield sentences; longer ones are cut into parts of at most `max_tokens` words."""
        return self.sentence_parts(records, self.max_tokens)

    def sentence_parts(self, records: Iterable[Record], max_tokens: int) -> Iterator[BiLmExample]:
        for index, record in enumerate(records):
            sentences = split_sentences(record["text"])
            for sentence, ids in zip(sentences, self.text.encode_ids(sentences), strict=True):
                words = self.text.words(sentence)
                for start in range(0, len(words), max_tokens):
                    span = slice(start, start + max_tokens)
                    yield BiLmExample(index, words[span], ids[span])

    def collate(self, examples: Sequence[BiLmExample]) -> BiLmBatch:
        inputs = self.inputs.tensors([example.words for example in examples])
        ids, _ = padded([[START, *example.ids, END] for example in examples])
        return BiLmBatch(inputs["characters"], inputs["valid"], ids)

    def loss(self, batch: BiLmBatch, step: int) -> Loss:  # noqa: ARG002 - every step is alike
        losses = self.batch_losses(batch)
        return Loss(losses.forward + losses.backward, 2 * losses.words)

    def batch_losses(self, batch: BiLmBatch) -> BiLmLoss:
        """Return -log p of all but START from the left, and of all but END from the right."""
        forward_states, backward_states = self.model.teacher_forced(batch.characters, batch.valid)
        output, valid = self.model.output, batch.valid[:, 1:]
        if output is None:
            raise InputError("model: this ELMo predicts no words; build it with a vocabulary size")
        forward_loss = cross_entropy(output, forward_states, batch.ids[:, 1:], valid)
        backward_loss = cross_entropy(output, backward_states, batch.ids[:, :-1], valid)
        return BiLmLoss(forward_loss.total, backward_loss.total, forward_loss.count)

    @torch.no_grad()
    def total_losses(self, examples: Sequence[BiLmExample]) -> BiLmLoss:
        """Return the sums over these examples, in evaluation mode."""
        self.model.eval()
        batches = iterate_by_length(
            examples,
            tokens_per_batch=TOKENS_PER_BATCH,
            collate=self.collate,
            device=self.device,
        )
        losses = [self.batch_losses(batch) for batch in batches]
        forward = sum_losses([Loss(loss.forward, loss.words) for loss in losses])
        backward = sum_losses([Loss(loss.backward, loss.words) for loss in losses])
        return BiLmLoss(forward.total, backward.total, forward.count)

    def negative_log_likelihood_of(self, examples: Sequence[BiLmExample]) -> Loss:
        losses = self.total_losses(examples)
        return Loss(losses.forward + losses.backward, 2 * losses.words)

    def likelihood_metrics(self, records: Sequence[Record]) -> Metrics:
        """Return the perplexity of a word, END included: of both directions, and of each."""
        return {**self.perplexities(list(self.examples(records))).as_dict()}

    def perplexities(self, examples: Sequence[BiLmExample]) -> PerplexityPrediction:
        forward, backward, words = self.total_losses(examples)
        both = perplexity((forward + backward).item(), 2 * words)
        return PerplexityPrediction(
            f"{both:.2f}",
            perplexity=both,
            forward=perplexity(forward.item(), words),
            backward=perplexity(backward.item(), words),
            words=words,
        )

    # --- inference

    def parse(self, line: str, location: str) -> Record:
        record = {"text": line}
        self.text_examples(record, location)
        return record

    def text_examples(self, record: Record, location: str) -> list[BiLmExample]:
        """Return the sentences of a text, uncut; it must have a word."""
        examples = list(self.sentence_parts([record], max(1, len(record["text"]))))
        if not examples:
            raise InputError(f"{location}: there is no word in it; give at least one")
        return examples

    def predict(
        self, records: Sequence[Record], *, on_progress: ProgressCallback | None = None
    ) -> list[PerplexityPrediction]:
        """Return the perplexity of each text."""
        predictions: list[PerplexityPrediction] = []
        for number, record in enumerate(records, 1):
            predictions.append(self.perplexities(self.text_examples(record, f"text {number}")))
            if on_progress is not None:
                on_progress(1)
        return predictions

    # --- inspection

    def attention_map(self, record: Record, target: str | None = None) -> AttentionMap:  # noqa: ARG002
        raise InputError(f"model {type(self.model).__name__} has no attention to observe")

    def render(
        self,
        record: Record,
        surface: Surface,  # noqa: ARG002
        *,
        target: str | None = None,
        layer: int | None = None,  # noqa: ARG002
    ) -> str:
        """Raise an error: ELMo has no attention."""
        return self.attention_map(record, target).title
