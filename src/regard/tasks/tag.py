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

from regard.batch.pair import Pair, padded
from regard.corpora.tags import OUTSIDE, Scheme, Span, converted, follows, spans
from regard.encode.crf import CRF
from regard.encode.head import Classifier, make_pooling
from regard.tasks.headed import Headed, OnEncoder
from regard.tasks.loss import Loss
from regard.tasks.tag_inputs import Words, at_words
from regard.text.labels import Labels

UNSEEN = -100  # a label that training has not: no loss is told of it


class Read(NamedTuple):
    """How much speaks for each tag of each word, and for each label of the sentence."""

    tags: Float[Tensor, "b w k"]
    valid: Bool[Tensor, "b w"]
    label: Float[Tensor, "b c"] | None


class Tagged(NamedTuple):
    """The words of a sentence with their tags (BIO), and its label with its probability."""

    words: list[str]
    tags: list[str]
    label: str | None = None
    probability: float | None = None

    @property
    def spans(self) -> list[Span]:
        return spans(self.tags)


@dataclass(frozen=True)
class Sentences:
    """As an encoder wants them, with what is true of them."""

    numbers: Int[Tensor, " b"]
    inputs: dict[str, Tensor]
    tags: Int[Tensor, "b w"]
    labels: Int[Tensor, " b"]

    @property
    def tokens(self) -> int:
        return self.tags.numel()


class Tagger(OnEncoder):
    """An encoder with a head for each word, and one for the sentence if there are labels."""

    def __init__(
        self,
        encoder: Any,
        tags: Sequence[str],
        labels: int = 0,
        *,
        scheme: Scheme = "bio",
        crf: bool = True,
        hidden_dim: int | None = None,
        dropout: float = 0.0,
        frozen: bool = False,
    ):
        super().__init__(encoder, frozen=frozen)
        make = {"hidden_dim": hidden_dim, "dropout": dropout}
        self.head = Classifier(encoder.width, len(tags), **make)
        self.crf = CRF(len(tags), *rules_of(tags, scheme)) if crf else None
        self.pooling = self.verdict = None
        if labels:
            own: int | None = encoder.pooled_width
            if own is None:
                self.pooling = make_pooling("attention", encoder.width)
            self.verdict = Classifier(own or encoder.width, labels, **make)

    def forward(self, inputs: Mapping[str, Tensor]) -> Read:
        inputs = dict(inputs)
        begins = inputs.pop("begins", None)
        found = self.encoder.encode(**inputs)
        label = None
        if self.verdict is not None:
            pool = self.pooling
            label = self.verdict(found.pooled if pool is None else pool(found.states, found.valid))
        states, valid = found.states, found.valid
        if begins is not None:
            states, valid = at_words(states, begins)
        return Read(self.head(states), valid, label)

    def best(self, read: Read) -> Int[Tensor, "b w"]:
        if self.crf is not None:
            return self.crf.best(read.tags, read.valid)
        return read.tags.argmax(-1).masked_fill(~read.valid, 0)


class Tag(Headed):
    """A model with its heads, how it reads words, and the names of tags and labels."""

    def __init__(
        self,
        model: Tagger,
        words: Words,
        tags: Labels,
        labels: Labels | None = None,
        *,
        scheme: Scheme = "bio",
    ):
        self.model, self.words, self.tags, self.labels = model, words, tags, labels
        self.scheme: Scheme = scheme
        self.fields = ("text", "tags") if labels is None else ("text", "tags", "label")

    def pairs(self, records: Iterable[Mapping[str, str]], longest: int = 256) -> Iterator[Pair]:
        """Sentences one by one; of longer ones the end is cut off. Tags, and the label last.

        What training has not seen (in dev) counts as outside, or as no label.
        """
        outside = self.tags.numbers.get(OUTSIDE, 0)
        for number, record in enumerate(records):
            row = self.words.row(record["text"].split(), longest)
            tags = converted(record["tags"].split(), "bio", self.scheme)[: self.words.count(row)]
            numbers = [self.tags.numbers.get(tag, outside) for tag in tags]
            if self.labels is not None:
                numbers.append(self.labels.numbers.get(labels_of(record["label"])[0], UNSEEN))
            yield Pair(number, row, numbers)

    def collate(self, pairs: Sequence[Pair]) -> Sentences:
        each = [list(pair.target) for pair in pairs]
        known = self.labels is not None
        tags, _ = padded([[*row[: len(row) - known], 0] for row in each])
        return Sentences(
            torch.tensor([pair.number for pair in pairs]),
            self.words.tensors([pair.source for pair in pairs]),
            tags[:, : max(1, tags.shape[1] - 1)],
            torch.tensor([row[-1] if known else UNSEEN for row in each]),
        )

    def loss(self, batch: Sentences, smoothing: float = 0.0) -> Loss:
        """Summed over sentences, and counted by words."""
        read = self.model(batch.inputs)
        if self.model.crf is not None:
            total = -self.model.crf(read.tags, batch.tags, read.valid).sum()
        else:
            total = F.cross_entropy(
                read.tags[read.valid],
                batch.tags[read.valid],
                reduction="sum",
                label_smoothing=smoothing,
            )
        if read.label is not None:
            total = total + F.cross_entropy(
                read.label, batch.labels, reduction="sum", label_smoothing=smoothing
            )
        return Loss(total, max(1, int(read.valid.sum())))

    @torch.no_grad()
    def tagged(
        self,
        texts: Sequence[str],
        longest: int = 256,
        told: Callable[[int], None] | None = None,
    ) -> list[Tagged]:
        """What the model says of each sentence; words beyond `longest` are outside."""
        self.model.eval()
        words = [text.split() for text in texts]
        rows = [self.words.row(some, longest) for some in words]
        found = [Tagged(some, [OUTSIDE] * len(some)) for some in words]
        outside = [0] if self.labels is None else [0, 0]
        for batch in self.in_order([Pair(n, row, outside) for n, row in enumerate(rows)]):
            read = self.model(batch.inputs)
            best = self.model.best(read).tolist()
            for at, number in enumerate(batch.numbers.tolist()):
                count = self.words.count(rows[number])
                tags = [self.tags.names[one] for one in best[at][:count]]
                tags = converted(tags, self.scheme, "bio") + found[number].tags[count:]
                label, share = self.verdict(read, at)
                found[number] = Tagged(words[number], tags, label, share)
            if told is not None:
                told(len(batch.numbers))
        return found

    def verdict(self, read: Read, at: int) -> tuple[str, float] | tuple[None, None]:
        """The likeliest label of a sentence and its probability, if there are labels."""
        if read.label is None or self.labels is None:
            return None, None
        share, number = read.label[at].softmax(-1).max(-1)
        return self.labels.names[int(number)], share.item()

    def looked(self, text: str, longest: int = 256) -> dict[str, Tensor]:
        """Every weight that was paid while the sentence was read, by the name of the attention."""
        return self.seen(self.words.tensors([self.words.row(text.split(), longest)]))


def labels_of(label: str) -> list[str]:
    """The labels of a sentence that has several, `a#b`, as ATIS writes it: the first is taught."""
    return label.split("#")


def rules_of(tags: Sequence[str], scheme: Scheme) -> tuple[Tensor, Tensor, Tensor]:
    """Which tag may follow which, begin a sentence, and end one."""
    between = [[follows(one, other, scheme) for other in tags] for one in tags]
    begins = [follows(OUTSIDE, tag, scheme) for tag in tags]
    ends = [follows(tag, OUTSIDE, scheme) for tag in tags]
    return torch.tensor(between), torch.tensor(begins), torch.tensor(ends)
