"""Captions: a picture into a sentence on it, and where each word of it looked.

b: captions of a batch   t: words   k: places of a picture
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.observe import observe
from regard.attention.reinforce import sample_attention
from regard.batching.example import Example, padded
from regard.batching.pictures import PicturePreprocessor
from regard.data.formats.captions import record_captions
from regard.data.formats.images import ImageLike, Pixels, image_digest
from regard.decoding.constraints import UNCONSTRAINED, Constraints
from regard.decoding.stepper import Hypothesis
from regard.models.caption import doubly_stochastic_penalty
from regard.tasks.loss import Loss, cross_entropy
from regard.tasks.translate import SearchFunction, TextPrediction
from regard.text.special import END, START
from regard.text.tokenizer import Tokenizer

PICTURES_PER_BATCH = 64  # pictures that are looked at together, when none is learnt from


@dataclass(frozen=True)
class CaptionBatch:
    """Pictures and right-padded captions: `target_out` is to be said, one step ahead."""

    indices: Int[Tensor, " b"]  # which pairs these are
    pictures: Float[Tensor, "b c h w"]
    target_in: Int[Tensor, "b t"]  # START …
    target_out: Int[Tensor, "b t"]  # … END
    target_valid: Bool[Tensor, "b t"]


class CaptionAttention(NamedTuple):
    """Where each word of a caption looked, its end included."""

    words: list[str]
    weights: Float[Tensor, "t rows columns"]


class CaptionTask:
    """A model, how it reads pictures, and the words that it knows."""

    def __init__(self, model: nn.Module, pictures: PicturePreprocessor, text: Tokenizer):
        # any model with remember, forced, logits, output and the steps of a search
        self.model: Any = model
        self.pictures, self.text = pictures, text

    def examples(
        self, records: Iterable[Mapping[str, Any]], max_tokens: int, *, load_pictures: bool = True
    ) -> Iterator[Example]:
        """One for each caption; what is not `read` now is read when its batch is made."""
        for index, record in enumerate(records):
            picture = self.pictures.read(record["picture"]) if load_pictures else record["picture"]
            for ids in self.text.encode_ids(list(record_captions(record))):
                if len(ids) <= max_tokens:
                    yield Example(index, [picture], ids)

    def collate(self, examples: Sequence[Example], crop: int = 0) -> CaptionBatch:
        pixels = [self.pictures.read(example.source[0]) for example in examples]
        target_in, valid = padded([[START, *example.target] for example in examples])
        return CaptionBatch(
            torch.tensor([example.index for example in examples]),
            self.pictures.augmented(pixels, crop=crop),
            target_in,
            padded([[*example.target, END] for example in examples])[0],
            valid,
        )

    def loss(
        self,
        batch: CaptionBatch,
        smoothing: float = 0.0,
        doubly_stochastic_weight: float = 0.0,
        *,
        soft: bool = False,
    ) -> Loss:
        """-log p of the captions. In training, hard attention adds its REINFORCE (or is `soft`
        yet), and soft attention `doubly` times what is missing from one look at each place."""
        model, valid = self.model, batch.target_valid
        if model.training and getattr(model, "reinforce", None) is not None:
            return self.reinforce_loss(batch, 1.0 if soft else model.expectation_rate)
        memory = model.remember(batch.pictures)
        if not (model.training and doubly_stochastic_weight):
            states = model.teacher_forced(memory, batch.target_in)
            return cross_entropy(model.output, states, batch.target_out, valid, smoothing=smoothing)
        decoder_output = model.decode_with_attention(memory, batch.target_in)
        loss = cross_entropy(
            model.output, decoder_output.states, batch.target_out, valid, smoothing=smoothing
        )
        penalty = (
            doubly_stochastic_weight
            * doubly_stochastic_penalty(decoder_output.weights, valid).sum()
        )
        return Loss(loss.total + penalty, loss.count)

    def reinforce_loss(self, batch: CaptionBatch, expected: float) -> Loss:
        """Xu et al. 2015, sec. 4.1: the reward of a whole caption is its log-likelihood."""
        model, valid = self.model, batch.target_valid
        with sample_attention(model, expected) as episode:
            states = model.teacher_forced(model.remember(batch.pictures), batch.target_in)
        token_log_probs = (
            model.logits(states).log_softmax(-1).gather(-1, batch.target_out[..., None])
        )
        log_likelihood = (token_log_probs[..., 0] * valid).sum(-1)
        total = (model.reinforce(log_likelihood, episode, valid) - log_likelihood).sum()
        return Loss(total, int(valid.sum()))

    @torch.no_grad()
    def negative_log_likelihood(self, examples: Sequence[Example]) -> Loss:
        """-log p of all captions, the ends included, and the number of tokens."""
        if not examples:
            raise ValueError("captions are missing: all are longer than train.max_tokens")
        self.model.eval()
        losses = [self.loss(batch) for batch in self.iterate_by_length(examples)]
        total = torch.stack([loss.total.double() for loss in losses]).sum()
        return Loss(total, sum(loss.count for loss in losses))

    def iterate_by_length(self, examples: Sequence[Example]) -> Iterator[CaptionBatch]:
        for start in range(0, len(examples), PICTURES_PER_BATCH):
            yield self.collate(examples[start : start + PICTURES_PER_BATCH])

    @torch.no_grad()
    def predict(
        self,
        pictures: Sequence[ImageLike],
        search: SearchFunction,
        rules: Constraints = UNCONSTRAINED,
        *,
        locations: Sequence[str] | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> list[list[TextPrediction]]:
        """The n best captions of each picture; `places` are what messages call them."""
        self.model.eval()
        max_length = (
            rules.max_length if isinstance(rules.max_length, int) else max(rules.max_length)
        )
        captions: list[list[TextPrediction]] = []
        for start in range(0, len(pictures), PICTURES_PER_BATCH):
            chunk = range(start, min(start + PICTURES_PER_BATCH, len(pictures)))
            pixels = [
                self.pictures.read(pictures[n], locations[n] if locations else None) for n in chunk
            ]
            memory = self.model.remember(self.pictures.to_tensor(pixels))
            limits = replace(rules, max_length=[max_length] * len(pixels))
            outputs = search(self.model, memory, [sampling_seed(item) for item in pixels], limits)
            captions += [[self.to_prediction(item) for item in best] for best in outputs]
            if on_progress is not None:
                on_progress(len(pixels))
        return captions

    def to_prediction(self, hypothesis: Hypothesis) -> TextPrediction:
        return TextPrediction(
            self.text.decode(hypothesis.ids), hypothesis.score, hypothesis.log_prob, hypothesis.ids
        )

    def caption_attention(self, picture: ImageLike, ids: Sequence[int]) -> CaptionAttention:
        """A finished caption, read once more word by word with somebody looking."""
        [weights] = self.attention_weights([Example(0, [picture], ids)])
        return CaptionAttention([self.text.token(n) for n in [*ids, END]], weights)

    @torch.no_grad()
    def attention_weights(
        self, examples: Sequence[Example]
    ) -> list[Float[Tensor, "t rows columns"]]:
        """Where each word of each caption looked, the end included, over the picture."""
        if not self.model.cross_attentions:
            kind = type(self.model).__name__
            raise ValueError(f"model {kind} has no attention to the picture: there is none to see")
        model, [name] = self.model.eval(), self.model.cross_attentions
        weights: list[Tensor] = []
        for batch in self.iterate_by_length(examples):
            with observe(model, [name]) as recorded:
                model.teacher_forced(model.remember(batch.pictures), batch.target_in)
            grid = model.grid(*batch.pictures.shape[2:])
            for row, valid in zip(recorded.joined()[name], batch.target_valid, strict=True):
                weights.append(row[: int(valid.sum())].float().unflatten(-1, grid))
        return weights

    def attention_peak(self, weights: Float[Tensor, "rows columns"]) -> tuple[float, float]:
        """The middle of the place with the greatest weight, in pixels from the top and left."""
        row, column = divmod(int(weights.argmax()), weights.shape[1])
        cell_size = 2**self.model.picture.pooling_layers
        return (row + 0.5) * cell_size, (column + 0.5) * cell_size


def sampling_seed(pixels: Pixels) -> int:
    """By what a picture shows, and not by where it stands."""
    return int(image_digest(pixels)[:14], 16)
