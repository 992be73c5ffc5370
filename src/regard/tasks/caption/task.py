"""Captioning: an image into a sentence, with the attention of each word to the image.

b: captions of a batch   t: words   k: regions of an image
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.observe import observe
from regard.attention.reinforce import ReinforceLoss, sample_attention
from regard.batching.batches import Batches, InMemoryExamples
from regard.batching.example import padded
from regard.batching.images import ImagePreprocessor
from regard.batching.source import BatchSource
from regard.data.corpus import Corpus, Record
from regard.data.formats.captions import record_captions
from regard.data.formats.images import ImageLike, Pixels, check_image_header, image_digest
from regard.decoding.stepper import Hypothesis
from regard.errors import InputError
from regard.files import JsonObject
from regard.metrics.caption import bleu_1_to_4, cider
from regard.metrics.language import perplexity
from regard.metrics.translation import exact_match
from regard.models.caption import ShowAttend, doubly_stochastic_penalty
from regard.models.protocols import AnyCaptionModel
from regard.tasks.base import (
    BatchOptions,
    FieldValue,
    Metrics,
    Prediction,
    ProgressCallback,
    Task,
)
from regard.tasks.caption import view
from regard.tasks.caption.examples import CaptionBatch, CaptionExample
from regard.tasks.caption.pointing import measure_pointing
from regard.tasks.generation import Decoding, TextOutput, TextPrediction
from regard.tasks.image_tools import image_field
from regard.tasks.loss import Loss, cross_entropy, sum_losses
from regard.tasks.map_tools import step_log_probs, token_choices
from regard.tasks.prefix import NO_PREFIX, OutputPrefix, find_prefix, limit_outputs
from regard.text.special import END, START
from regard.text.tokenizer import Tokenizer
from regard.view.annotations import TokenChoice
from regard.view.attention_map import AttentionMap
from regard.view.terminal import Surface

IMAGES_PER_BATCH = 64  # in prediction and evaluation
MAX_PIXEL_BYTES_IN_MEMORY = 1 << 30  # more images are read again for each batch


@dataclass(frozen=True)
class CaptionPrediction(TextPrediction):
    """The captions of one image, best first."""

    def as_dict(self) -> JsonObject:
        return {"captions": super().as_dict()["outputs"]}


class CaptionAttention(NamedTuple):
    """The attention of each word of a caption to the image; the end is the last word."""

    words: list[str]
    weights: Float[Tensor, "t rows columns"]


class CaptionTask(Task[CaptionExample, CaptionBatch, AnyCaptionModel]):
    """A captioning model, its preprocessing and its tokenizer.

    In training, images are cropped at random after `crop_padding` pixels of padding. Hard attention
    reads all regions in the first `soft_attention_steps` steps. Soft attention is penalized by
    `doubly_stochastic_weight` times sum_k (1 - sum_t weight_tk)^2.
    """

    name: ClassVar = "caption"
    example_unit: ClassVar = "images"
    accepts_target: ClassVar = True
    accepts_prefix: ClassVar = True
    fields: tuple[str, ...] = ()
    packed: bool = False
    streamed: bool = False

    def __init__(
        self,
        model: AnyCaptionModel,
        images: ImagePreprocessor,
        text: Tokenizer,
        *,
        decoding: Decoding,
        max_tokens: int = 50,
        label_smoothing: float = 0.0,
        crop_padding: int = 0,
        doubly_stochastic_weight: float = 0.0,
        soft_attention_steps: int = 0,
    ):
        self.model = model
        self.images, self.text = images, text
        self.input_fields = (image_field(images),)
        self.decoding, self.max_tokens, self.label_smoothing = decoding, max_tokens, label_smoothing
        self.crop_padding = crop_padding
        self.doubly_stochastic_weight = doubly_stochastic_weight
        self.soft_attention_steps = soft_attention_steps

    # --- training

    def examples(
        self, records: Iterable[Record], *, load_images: bool = True
    ) -> Iterator[CaptionExample]:
        """Yield an example for each caption of at most `max_tokens` tokens.

        Without `load_images`, the batch of an example reads its image.
        """
        for index, record in enumerate(records):
            image = self.images.read(record["image"]) if load_images else record["image"]
            for ids in self.text.encode_ids(list(record_captions(record))):
                if len(ids) <= self.max_tokens:
                    yield CaptionExample(index, image, ids)

    def collate(self, examples: Sequence[CaptionExample], *, crop: int = 0) -> CaptionBatch:
        """Return one padded batch; each image is shifted by up to `crop` pixels, at random."""
        pixels = [self.images.read(example.image) for example in examples]
        target_in, valid = padded([[START, *example.caption] for example in examples])
        return CaptionBatch(
            torch.tensor([example.index for example in examples]),
            self.images.augmented(pixels, crop=crop),
            target_in,
            padded([[*example.caption, END] for example in examples])[0],
            valid,
        )

    def batches(self, corpus: Corpus, options: BatchOptions) -> BatchSource[CaptionBatch]:
        """Return batches of captions of about equal length; memory keeps images that fit."""
        records, reader = corpus.read("train"), self.images.reader
        image_bytes = math.prod(reader.size or (1, 1)) * reader.channels
        loaded = islice(records, MAX_PIXEL_BYTES_IN_MEMORY // image_bytes)
        examples = [*self.examples(loaded), *self.examples(records, load_images=False)]
        if not examples:
            raise InputError(
                "train: no caption is left; is the data empty, or train.max_tokens small?"
            )
        return Batches(
            InMemoryExamples(examples, options.seed),
            examples_per_batch=options.examples_per_batch,
            seed=options.seed,
            collate=partial(self.collate, crop=self.crop_padding),
        )

    def loss(self, batch: CaptionBatch, step: int) -> Loss:
        """Return -log p of the captions, with REINFORCE or the doubly stochastic penalty."""
        model, valid = self.model, batch.target_valid
        if isinstance(model, ShowAttend) and model.reinforce is not None:
            is_soft = step < self.soft_attention_steps
            rate = 1.0 if is_soft else model.expectation_rate
            return self.reinforce_loss(batch, model, model.reinforce, rate)
        if not (self.doubly_stochastic_weight and isinstance(model, ShowAttend)):
            return self.cross_entropy(batch, self.label_smoothing)
        decoder_output = model.decode_with_attention(model.remember(batch.images), batch.target_in)
        loss = cross_entropy(
            model.output,
            decoder_output.states,
            batch.target_out,
            valid,
            smoothing=self.label_smoothing,
        )
        penalty = doubly_stochastic_penalty(decoder_output.weights, valid).sum()
        return Loss(loss.total + self.doubly_stochastic_weight * penalty, loss.count)

    def cross_entropy(self, batch: CaptionBatch, smoothing: float = 0.0) -> Loss:
        """Return the teacher-forced loss of a batch."""
        states = self.model.teacher_forced(self.model.remember(batch.images), batch.target_in)
        return cross_entropy(
            self.model.output, states, batch.target_out, batch.target_valid, smoothing=smoothing
        )

    def reinforce_loss(
        self,
        batch: CaptionBatch,
        model: ShowAttend,
        reinforce: ReinforceLoss,
        expectation_rate: float,
    ) -> Loss:
        """Return the loss of hard attention, whose reward is the log-likelihood of a caption.

        Xu et al. 2015, sec. 4.1. A share `expectation_rate` of captions reads all regions.
        """
        valid = batch.target_valid
        with sample_attention(model, expectation_rate) as episode:
            states = model.teacher_forced(model.remember(batch.images), batch.target_in)
        token_log_probs = (
            model.logits(states).log_softmax(-1).gather(-1, batch.target_out[..., None])
        )
        log_likelihood = (token_log_probs[..., 0] * valid).sum(-1)
        total = (reinforce(log_likelihood, episode, valid) - log_likelihood).sum()
        return Loss(total, int(valid.sum()))

    @torch.no_grad()
    def negative_log_likelihood(self, records: Iterable[Record]) -> Loss:
        """Return -log p of all captions, the ends included."""
        examples = list(self.examples(records, load_images=False))
        if not examples:
            raise InputError("captions are missing: all are longer than train.max_tokens; raise it")
        self.model.eval()
        losses = [self.cross_entropy(batch) for batch in self.evaluation_batches(examples)]
        return sum_losses(losses)

    def evaluation_batches(self, examples: Sequence[CaptionExample]) -> Iterator[CaptionBatch]:
        """Yield batches in the order of the examples."""
        for start in range(0, len(examples), IMAGES_PER_BATCH):
            yield self.to_device(self.collate(examples[start : start + IMAGES_PER_BATCH]))

    # --- inference

    def parse(self, line: str, location: str) -> Record:
        """Convert a path to a record, after a check of the header of the file."""
        location = f"{location}: {line}"
        if not Path(line).is_file():
            raise InputError(f"{location}: there is no such image; give the path of an image file")
        check_image_header(line, location)
        return {"image": line}

    def to_record(self, values: Mapping[str, FieldValue], location: str) -> Record:  # noqa: ARG002
        return {"image": values["image"]}

    def predict(
        self, records: Sequence[Record], *, on_progress: ProgressCallback | None = None
    ) -> list[CaptionPrediction]:
        """Return the n best captions of each image."""
        return self.decode(
            [record["image"] for record in records],
            prefixes=[self.prefix(record) for record in records],
            on_progress=on_progress,
        )

    def prefix(self, record: Record) -> OutputPrefix:
        """Return the beginning of the caption that a record prescribes; usually none."""
        text = self.text
        return find_prefix(record, lambda words: text.encode_ids([words])[0], text.token_id, END)

    @torch.no_grad()
    def decode(
        self,
        images: Sequence[ImageLike],
        *,
        prefixes: Sequence[OutputPrefix] = (),
        decoding: Decoding | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> list[CaptionPrediction]:
        """Return the n best captions of each image, which is a path or an array."""
        self.model.eval()
        decoding = decoding or self.decoding
        prefixes = prefixes or [NO_PREFIX] * len(images)
        predictions: list[CaptionPrediction] = []
        for start in range(0, len(images), IMAGES_PER_BATCH):
            chunk = images[start : start + IMAGES_PER_BATCH]
            pixels = [self.images.read(image) for image in chunk]
            memory = self.model.remember(self.to_device(self.images.to_tensor(pixels)))
            max_lengths = [decoding.max_length] * len(pixels)
            search = decoding.search([sampling_seed(image) for image in pixels])
            hypotheses = search(
                self.model,
                memory,
                constraints=limit_outputs(
                    decoding.constraints, max_lengths, prefixes[start : start + len(pixels)]
                ),
            )
            for best in hypotheses:
                outputs = tuple(self.to_output(hypothesis) for hypothesis in best)
                predictions.append(CaptionPrediction(outputs[0].text, outputs))
            if on_progress is not None:
                on_progress(len(pixels))
        return predictions

    def partial_text(self, record: Record, ids: Sequence[int]) -> str | None:  # noqa: ARG002
        return self.text.decode([token_id for token_id in ids if token_id != END])

    def to_output(self, hypothesis: Hypothesis) -> TextOutput:
        text = self.text.decode(hypothesis.ids)
        return TextOutput(text, hypothesis.score, hypothesis.log_prob, hypothesis.ids)

    def metrics(self, records: Sequence[Record], predictions: Sequence[Prediction]) -> Metrics:
        """Return BLEU-1 to 4, CIDEr, exact match and, if records have boxes, pointing."""
        outputs = [prediction.text for prediction in predictions]
        references = [list(record_captions(record)) for record in records]
        metrics: Metrics = {}
        for order, score in enumerate(bleu_1_to_4(outputs, references), 1):
            metrics[f"bleu{order}"] = score.value
            metrics[f"bleu{order}_signature"] = f"{score.signature}|order:{order}"
        metrics["cider"] = cider(outputs, references)
        metrics["cider_signature"] = "cider|d|sigma:6|tok:words|case:lc|v:1"
        metrics["exact"] = exact_match(outputs, references)
        if (pointing := measure_pointing(self, records)) is not None:
            metrics["pointing"] = pointing
        return metrics

    def likelihood_metrics(self, records: Sequence[Record]) -> Metrics:
        loss = self.negative_log_likelihood(records)
        return {"perplexity": perplexity(loss.total.item(), loss.count)}

    def validation_metric(self, name: str, records: Sequence[Record]) -> float:
        metrics = self.metrics(records, self.predict(records))
        if name not in metrics:
            raise InputError(
                f"train.metric = {name!r} is not known for this data and model, which have no "
                "boxes or no attention; choose another"
            )
        return float(metrics[name])

    # --- inspection

    def caption_attention(self, image: ImageLike, ids: Sequence[int]) -> CaptionAttention:
        """Return the attention of a caption, which the model reads teacher-forced."""
        [weights] = self.attention_weights([CaptionExample(0, image, ids)])
        return CaptionAttention([self.text.token(n) for n in [*ids, END]], weights)

    @torch.no_grad()
    def word_choices(
        self, image: ImageLike, ids: Sequence[int]
    ) -> tuple[tuple[TokenChoice, ...], ...]:
        """Return the likeliest words at each step of a caption and at its end."""
        images = self.to_device(self.images.to_tensor([self.images.read(image)]))
        memory = self.model.eval().remember(images)
        return token_choices(step_log_probs(self.model, memory, ids), self.text.token)

    @torch.no_grad()
    def attention_weights(
        self, examples: Sequence[CaptionExample]
    ) -> list[Float[Tensor, "t rows columns"]]:
        """Return the attention of each word of each caption, with its end, to the image."""
        model, [name] = self.model.eval(), self.cross_attentions
        weights: list[Tensor] = []
        for batch in self.evaluation_batches(examples):
            with observe(model, [name]) as recorded:
                model.teacher_forced(model.remember(batch.images), batch.target_in)
            grid = model.grid(*batch.images.shape[2:])
            for row, valid in zip(recorded.joined()[name], batch.target_valid, strict=True):
                weights.append(row[: int(valid.sum())].float().unflatten(-1, grid))
        return weights

    @property
    def cross_attentions(self) -> tuple[str, ...]:
        """The names of the attentions to the image; raises an error if there are none."""
        if not self.model.cross_attentions:
            kind = type(self.model).__name__
            raise InputError(f"model {kind} has no attention to the image")
        return self.model.cross_attentions

    def has_attention(self) -> bool:
        return bool(self.model.cross_attentions)

    def attention_names(self) -> tuple[str, ...]:
        return self.cross_attentions

    def attention_map(self, record: Record, target: str | None = None) -> AttentionMap:
        return view.caption_map(self, record, target)

    def render(
        self,
        record: Record,
        surface: Surface,
        *,
        target: str | None = None,
        layer: int | None = None,  # noqa: ARG002
    ) -> str:
        return view.render_caption(self, record, surface, target)


def sampling_seed(pixels: Pixels) -> int:
    """Return a seed that depends on the pixels alone."""
    return int(image_digest(pixels)[:14], 16)
