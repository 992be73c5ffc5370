"""Pretraining on plain text by masked words and sentence pairs: BERT's objectives.

    loss = mean over masked words of -log p(word) + mean over pairs of -log p(is next)
                                                                Devlin et al. 2019 (1810.04805), 3.1
b: pairs   t: positions   v: ids of the vocabulary and the mask
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int
from torch import Generator, Tensor

from regard.batching.batches import iterate_by_length
from regard.batching.example import padded
from regard.batching.source import BatchSource
from regard.data.corpus import Corpus, Record
from regard.errors import InputError
from regard.files import JsonObject
from regard.metrics.language import perplexity
from regard.models.bert import Bert
from regard.tasks.base import (
    BatchOptions,
    FieldValue,
    Metrics,
    Prediction,
    ProgressCallback,
    batches_by_length,
)
from regard.tasks.encoder_inputs import BertInputs
from regard.tasks.generation import TOKENS_PER_BATCH
from regard.tasks.loss import Loss, cross_entropy
from regard.tasks.pretrain import view
from regard.tasks.pretrain.mask import (
    MASKING_RATE,
    mask_tokens,
    maskable_positions,
    sentence_pairs,
    text_token_ids,
)
from regard.tasks.pretrain.objective import PretrainingObjective
from regard.tasks.text_vectors import TextVectorOptions
from regard.text.sentences import split_sentences
from regard.text.special_ids import AnyTokenizer, special_ids
from regard.view.attention_map import AttentionMap
from regard.view.terminal import Surface

MASK_TOKEN = "[MASK]"  # noqa: S105 - marks a word to predict in a text
MASKING_SEED = 0  # evaluation always masks the same words
MASK_CANDIDATES = 5  # words for each mask


@dataclass(frozen=True)
class PretrainBatch:
    """Pairs of text spans, as START first END second END."""

    ids: Int[Tensor, "b t"]
    valid: Bool[Tensor, "b t"]
    segments: Int[Tensor, "b t"]
    next_sentence_labels: Int[Tensor, " b"]  # 0: the second follows the first, 1: not


class PretrainLoss(NamedTuple):
    """Sums over masked words and over pairs: losses, correct predictions, and counts."""

    words_loss: Tensor
    correct_words: int
    words: int
    pairs_loss: Tensor
    correct_pairs: int
    pairs: int


class MaskCandidate(NamedTuple):
    """A word in the place of a mask."""

    word: str
    probability: float


@dataclass(frozen=True)
class FilledTextPrediction(Prediction):
    """A text whose masks are replaced by the likeliest words, and the candidates of each mask."""

    masks: tuple[tuple[MaskCandidate, ...], ...] = ()

    def as_dict(self) -> JsonObject:
        masks = [[candidate._asdict() for candidate in candidates] for candidates in self.masks]
        return {"filled": self.text, "masks": masks}


@dataclass(frozen=True, slots=True)
class PretrainExample:
    """A pair of spans as ids, with special tokens; `label` is 0 if the second follows the first."""

    index: int
    ids: Sequence[int]
    label: int

    @property
    def lengths(self) -> tuple[int, int]:
        return len(self.ids), 1


class PretrainTask(PretrainingObjective[PretrainExample, PretrainBatch, Bert]):
    """A BERT with its heads, and a vocabulary."""

    unit: ClassVar = "pairs"
    special_token_count: ClassVar = 3  # START, and END twice

    def __init__(
        self,
        model: Bert,
        text: AnyTokenizer,
        *,
        max_tokens: int = 128,
        rate: float = MASKING_RATE,
        whole_words: bool = False,
        next_sentence: bool = True,
        vector_options: TextVectorOptions | None = None,
    ):
        self.model, self.vector_options = model, vector_options or TextVectorOptions()
        self.text, self.max_tokens = text, max_tokens
        self.rate, self.next_sentence = rate, next_sentence
        self.special_ids = special_ids(text)
        self.inputs = BertInputs(text, self.special_ids.start, self.special_ids.end, segments=False)
        self.text_ids = text_token_ids(text.size, self.special_ids.specials)
        self.word_starts = word_start_mask(text) if whole_words else None

    def form_values(self, record: Record) -> dict[str, FieldValue]:
        """Return the first sentence of a text, with a mask for the word in its middle."""
        words = split_sentences(record["text"])[0].split()
        words[len(words) // 2] = MASK_TOKEN
        return {"text": " ".join(words)}

    # --- training

    def examples(self, records: Iterable[Record]) -> Iterator[PretrainExample]:
        """Yield the pairs of evaluation, which are always the same."""
        return self.pair_examples(records, MASKING_SEED)

    def pair_examples(self, records: Iterable[Record], seed: int) -> Iterator[PretrainExample]:
        """Yield pairs of spans with at most `max_tokens` tokens; the target is a label, 0 or 1."""
        documents = [self.text.encode_ids(split_sentences(record["text"])) for record in records]
        generator = Generator().manual_seed(seed)
        pairs = sentence_pairs(documents, self.max_tokens, generator)
        start, end = self.special_ids.start, self.special_ids.end
        for index, pair in enumerate(pairs):
            ids = [start, *pair.first, end, *pair.second, end]
            yield PretrainExample(index, ids, 0 if pair.is_next else 1)

    def batches(self, corpus: Corpus, options: BatchOptions) -> BatchSource[PretrainBatch]:
        """Return batches of pairs that depend on the seed; each step masks other words."""
        to_examples = partial(self.pair_examples, seed=options.seed)
        return batches_by_length(self, corpus, options, to_examples=to_examples)

    def collate(self, examples: Sequence[PretrainExample]) -> PretrainBatch:
        ids, valid = padded([example.ids for example in examples])
        ends = (ids == self.special_ids.end).int()
        segments = ((ends.cumsum(1) - ends) * valid).clamp(max=1)
        return PretrainBatch(
            ids, valid, segments.long(), torch.tensor([example.label for example in examples])
        )

    def loss(self, batch: PretrainBatch, step: int) -> Loss:  # noqa: ARG002 - every step is alike
        """Return the two mean losses times the pairs; torch's global generator masks words."""
        losses = self.batch_losses(batch, torch.default_generator)
        mean = losses.words_loss / max(losses.words, 1)
        if self.next_sentence:
            mean = mean + losses.pairs_loss / losses.pairs
        return Loss(mean * losses.pairs, losses.pairs)

    def batch_losses(self, batch: PretrainBatch, generator: Generator) -> PretrainLoss:
        """Mask words by `generator` and return the losses of a batch."""
        maskable = maskable_positions(
            batch.ids, batch.valid, (self.special_ids.start, self.special_ids.end)
        )
        word_starts = (
            None if self.word_starts is None else self.to_device(self.word_starts)[batch.ids]
        )
        masked_tokens = mask_tokens(
            batch.ids,
            maskable,
            mask_id=self.special_ids.mask,
            text_ids=self.text_ids,
            generator=generator,
            rate=self.rate,
            word_starts=word_starts,
        )
        encoded = self.model.encode(masked_tokens.ids, batch.valid, batch.segments)
        word_states, targets = (
            self.model.masked_word_states(encoded.states[masked_tokens.target_mask]),
            batch.ids[masked_tokens.target_mask],
        )
        valid = torch.ones_like(targets, dtype=torch.bool)
        word_loss = cross_entropy(self.model.output, word_states[None], targets[None], valid[None])
        correct_words = 0
        if not self.model.training:
            correct_words = int((self.model.logits(word_states).argmax(-1) == targets).sum())
        pairs_loss, correct_pairs = word_loss.total.new_zeros(()), 0
        if self.next_sentence:
            if self.model.following is None:
                raise InputError("model: this BERT does not predict whether sentences are adjacent")
            logits = self.model.following(encoded.pooled)
            pairs_loss = F.cross_entropy(logits, batch.next_sentence_labels, reduction="sum")
            correct_pairs = int((logits.argmax(-1) == batch.next_sentence_labels).sum())
        return PretrainLoss(
            word_loss.total,
            correct_words,
            word_loss.count,
            pairs_loss,
            correct_pairs,
            len(batch.ids),
        )

    @torch.no_grad()
    def total_losses(self, examples: Sequence[PretrainExample]) -> PretrainLoss:
        """Return the sums over these pairs; the same words are masked in every call."""
        if not examples:
            raise InputError("texts have no pair of sentences to score; give longer documents")
        self.model.eval()
        generator = Generator().manual_seed(MASKING_SEED)
        batches = iterate_by_length(
            examples,
            tokens_per_batch=TOKENS_PER_BATCH,
            collate=self.collate,
            device=self.device,
        )
        columns = zip(*(self.batch_losses(batch, generator) for batch in batches), strict=True)
        return PretrainLoss._make(sum(column) for column in columns)

    def negative_log_likelihood_of(self, examples: Sequence[PretrainExample]) -> Loss:
        """Return -log p of the masked words."""
        losses = self.total_losses(examples)
        return Loss(losses.words_loss, losses.words)

    def likelihood_metrics(self, records: Sequence[Record]) -> Metrics:
        """Return the accuracy of masked words and of pairs in percent, and perplexity."""
        losses = self.total_losses(list(self.examples(records)))
        metrics: Metrics = {
            "accuracy": 100 * losses.correct_words / losses.words,
            "perplexity": perplexity(losses.words_loss.item(), losses.words),
            "words": losses.words,
        }
        if self.next_sentence:
            metrics["next_sentence"] = 100 * losses.correct_pairs / losses.pairs
        return {**metrics, "pairs": losses.pairs}

    # --- inference

    def parse(self, line: str, location: str) -> Record:  # noqa: ARG002 - every line has a map
        """Return the text; only `predict` needs a [MASK] in it."""
        return {"text": line}

    def predict(
        self, records: Sequence[Record], *, on_progress: ProgressCallback | None = None
    ) -> list[FilledTextPrediction]:
        """Replace each [MASK] of a text by the likeliest word."""
        for number, record in enumerate(records, 1):
            if MASK_TOKEN not in record["text"]:
                raise InputError(
                    f"text {number}: there is no {MASK_TOKEN}; put one where a word is missing"
                )
        predictions: list[FilledTextPrediction] = []
        for record in records:
            text, masks = record["text"], self.mask_candidates(record["text"])
            for candidates in masks:
                text = text.replace(MASK_TOKEN, candidates[0].word, 1)
            predictions.append(FilledTextPrediction(text, tuple(masks)))
            if on_progress is not None:
                on_progress(1)
        return predictions

    def masked_ids(self, text: str) -> list[int]:
        """Return START text END, with the id of the mask for each [MASK]."""
        first, *parts = self.text.encode_ids(text.split(MASK_TOKEN))
        ids = [self.special_ids.start, *first]
        for part in parts:
            ids += [self.special_ids.mask, *part]
        return [*ids, self.special_ids.end]

    def token_name(self, token_id: int) -> str:
        """Return a token; [MASK] for the mask, which need not be in the vocabulary."""
        return MASK_TOKEN if token_id == self.special_ids.mask else self.text.token(token_id)

    @torch.no_grad()
    def mask_candidates(
        self, text: str, count: int = MASK_CANDIDATES
    ) -> list[tuple[MaskCandidate, ...]]:
        """Return the likeliest words for each [MASK], with their probabilities."""
        row = torch.tensor([self.masked_ids(text)], device=self.device)
        encoded = self.model.eval().encode(row, torch.ones_like(row, dtype=torch.bool))
        positions = (row[0] == self.special_ids.mask).nonzero()[:, 0]
        states = self.model.masked_word_states(encoded.states[0, positions])
        probabilities = self.model.logits(states).softmax(-1)
        best = probabilities[:, : self.text.size].topk(min(count, self.text.size))
        return [
            tuple(MaskCandidate(self.text.token(n), p) for n, p in zip(ids, values, strict=True))
            for ids, values in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]

    # --- inspection

    def attention_map(self, record: Record, target: str | None = None) -> AttentionMap:  # noqa: ARG002
        return view.pretraining_map(self, record["text"])

    def render(
        self,
        record: Record,
        surface: Surface,
        *,
        target: str | None = None,  # noqa: ARG002
        layer: int | None = None,  # noqa: ARG002
    ) -> str:
        return view.render_last_layer(self.attention_map(record), surface)

    def exportable_model(self) -> Bert:
        return self.model


def word_start_mask(text: AnyTokenizer) -> Bool[Tensor, " v1"]:
    """Return which pieces of a WordPiece vocabulary begin a word; the mask, the last id, does."""
    tokens = [text.token(token_id) for token_id in range(text.size)]
    if not any(token.startswith("##") for token in tokens):
        raise InputError("whole_words needs pieces of words; set text.kind = 'wordpiece'")
    return torch.tensor([not token.startswith("##") for token in tokens] + [True])
