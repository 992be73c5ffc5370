"""Naming stretches of words, and perhaps the whole sentence: entities; slots and intents.

    loss = -log p(tags | words), by a CRF or word by word, and - log p(label) where there is one
b: sentences   w: words   k: tags   c: classes
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.batching.example import Example, padded
from regard.data.tag_schemes import (
    OUTSIDE,
    TagScheme,
    TagSpan,
    can_follow,
    convert_tags,
    spans_from_tags,
)
from regard.layers.crf import CRF
from regard.layers.output_heads import ClassifierHead, build_pooling
from regard.tasks.headed import EncoderTask, EncoderWithHead
from regard.tasks.loss import Loss
from regard.tasks.tag_inputs import WordInputs, word_states
from regard.text.labels import Labels

IGNORE_INDEX = -100  # a label that training has not: no loss is told of it


class TagLogits(NamedTuple):
    """How much speaks for each tag of each word, and for each label of the sentence."""

    tags: Float[Tensor, "b w k"]
    valid: Bool[Tensor, "b w"]
    label: Float[Tensor, "b c"] | None


class TagPrediction(NamedTuple):
    """The words of a sentence with their tags (BIO), and its label with its probability."""

    words: list[str]
    tags: list[str]
    label: str | None = None
    probability: float | None = None

    @property
    def spans(self) -> list[TagSpan]:
        return spans_from_tags(self.tags)


@dataclass(frozen=True)
class TagBatch:
    """As an encoder wants them, with what is true of them."""

    indices: Int[Tensor, " b"]
    inputs: dict[str, Tensor]
    tags: Int[Tensor, "b w"]
    labels: Int[Tensor, " b"]

    @property
    def tokens(self) -> int:
        return self.tags.numel()


class SequenceTagger(EncoderWithHead):
    """An encoder with a head for each word, and one for the sentence if there are labels."""

    def __init__(
        self,
        encoder: Any,
        tags: Sequence[str],
        labels: int = 0,
        *,
        scheme: TagScheme = "bio",
        crf: bool = True,
        hidden_dim: int | None = None,
        dropout: float = 0.0,
        frozen: bool = False,
    ):
        super().__init__(encoder, frozen=frozen)
        options = {"hidden_dim": hidden_dim, "dropout": dropout}
        self.head = ClassifierHead(encoder.width, len(tags), **options)
        self.crf = CRF(len(tags), *allowed_transitions(tags, scheme)) if crf else None
        self.pooling = self.verdict = None
        if labels:
            pooled_width: int | None = encoder.pooled_width
            if pooled_width is None:
                self.pooling = build_pooling("attention", encoder.width)
            self.verdict = ClassifierHead(pooled_width or encoder.width, labels, **options)

    def forward(self, inputs: Mapping[str, Tensor]) -> TagLogits:
        inputs = dict(inputs)
        word_starts = inputs.pop("begins", None)
        encoded = self.encoder.encode(**inputs)
        label = None
        if self.verdict is not None:
            pooling = self.pooling
            label = self.verdict(
                encoded.pooled if pooling is None else pooling(encoded.states, encoded.valid)
            )
        states, valid = encoded.states, encoded.valid
        if word_starts is not None:
            states, valid = word_states(states, word_starts)
        return TagLogits(self.head(states), valid, label)

    def best_tags(self, logits: TagLogits) -> Int[Tensor, "b w"]:
        if self.crf is not None:
            return self.crf.best_tags(logits.tags, logits.valid)
        return logits.tags.argmax(-1).masked_fill(~logits.valid, 0)


class TagTask(EncoderTask):
    """A model with its heads, how it reads words, and the names of tags and labels."""

    def __init__(
        self,
        model: SequenceTagger,
        word_inputs: WordInputs,
        tags: Labels,
        labels: Labels | None = None,
        *,
        scheme: TagScheme = "bio",
    ):
        self.model, self.word_inputs, self.tags, self.labels = model, word_inputs, tags, labels
        self.scheme: TagScheme = scheme
        self.fields = ("text", "tags") if labels is None else ("text", "tags", "label")

    def examples(
        self, records: Iterable[Mapping[str, str]], max_tokens: int = 256
    ) -> Iterator[Example]:
        """Sentences one by one; of longer ones the end is cut off. Tags, and the label last.

        What training has not seen (in dev) counts as outside, or as no label.
        """
        outside_id = self.tags.indices.get(OUTSIDE, 0)
        for index, record in enumerate(records):
            row = self.word_inputs.row(record["text"].split(), max_tokens)
            tags = convert_tags(record["tags"].split(), "bio", self.scheme)[
                : self.word_inputs.word_count(row)
            ]
            targets = [self.tags.indices.get(tag, outside_id) for tag in tags]
            if self.labels is not None:
                targets.append(
                    self.labels.indices.get(split_labels(record["label"])[0], IGNORE_INDEX)
                )
            yield Example(index, row, targets)

    def collate(self, examples: Sequence[Example]) -> TagBatch:
        targets = [list(example.target) for example in examples]
        has_label = self.labels is not None
        tags, _ = padded([[*row[: len(row) - has_label], 0] for row in targets])
        return TagBatch(
            torch.tensor([example.index for example in examples]),
            self.word_inputs.tensors([example.source for example in examples]),
            tags[:, : max(1, tags.shape[1] - 1)],
            torch.tensor([row[-1] if has_label else IGNORE_INDEX for row in targets]),
        )

    def loss(self, batch: TagBatch, smoothing: float = 0.0) -> Loss:
        """Summed over sentences, and counted by words."""
        logits = self.model(batch.inputs)
        if self.model.crf is not None:
            total = -self.model.crf(logits.tags, batch.tags, logits.valid).sum()
        else:
            total = F.cross_entropy(
                logits.tags[logits.valid],
                batch.tags[logits.valid],
                reduction="sum",
                label_smoothing=smoothing,
            )
        if logits.label is not None:
            total = total + F.cross_entropy(
                logits.label, batch.labels, reduction="sum", label_smoothing=smoothing
            )
        return Loss(total, max(1, int(logits.valid.sum())))

    @torch.no_grad()
    def predict(
        self,
        texts: Sequence[str],
        max_tokens: int = 256,
        on_progress: Callable[[int], None] | None = None,
    ) -> list[TagPrediction]:
        """What the model says of each sentence; words beyond `longest` are outside."""
        self.model.eval()
        sentences = [text.split() for text in texts]
        rows = [self.word_inputs.row(sentence, max_tokens) for sentence in sentences]
        predictions = [TagPrediction(sentence, [OUTSIDE] * len(sentence)) for sentence in sentences]
        placeholder = [0] if self.labels is None else [0, 0]
        for batch in self.iterate_by_length(
            [Example(position, row, placeholder) for position, row in enumerate(rows)]
        ):
            logits = self.model(batch.inputs)
            best = self.model.best_tags(logits).tolist()
            for batch_row, index in enumerate(batch.indices.tolist()):
                count = self.word_inputs.word_count(rows[index])
                tags = [self.tags.names[tag_id] for tag_id in best[batch_row][:count]]
                tags = convert_tags(tags, self.scheme, "bio") + predictions[index].tags[count:]
                label, probability = self.sentence_label(logits, batch_row)
                predictions[index] = TagPrediction(sentences[index], tags, label, probability)
            if on_progress is not None:
                on_progress(len(batch.indices))
        return predictions

    def sentence_label(self, logits: TagLogits, row: int) -> tuple[str, float] | tuple[None, None]:
        """The likeliest label of a sentence and its probability, if there are labels."""
        if logits.label is None or self.labels is None:
            return None, None
        probability, label_id = logits.label[row].softmax(-1).max(-1)
        return self.labels.names[int(label_id)], probability.item()

    def attention_weights(self, text: str, max_tokens: int = 256) -> dict[str, Tensor]:
        """Every weight that was paid while the sentence was read, by the name of the attention."""
        return self.observed_weights(
            self.word_inputs.tensors([self.word_inputs.row(text.split(), max_tokens)])
        )


def split_labels(label: str) -> list[str]:
    """The labels of a sentence that has several, `a#b`, as ATIS writes it: the first is taught."""
    return label.split("#")


def allowed_transitions(tags: Sequence[str], scheme: TagScheme) -> tuple[Tensor, Tensor, Tensor]:
    """Which tag may follow which, begin a sentence, and end one."""
    transitions = [[can_follow(first, second, scheme) for second in tags] for first in tags]
    begins = [can_follow(OUTSIDE, tag, scheme) for tag in tags]
    ends = [can_follow(tag, OUTSIDE, scheme) for tag in tags]
    return torch.tensor(transitions), torch.tensor(begins), torch.tensor(ends)
