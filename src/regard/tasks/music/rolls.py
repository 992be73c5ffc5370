"""Piano rolls: the probability of the keys of each step, given the steps before it.

    loss = - sum over steps and keys of (x log p + (1 - x) log(1 - p))

A piece begins after silence: the model reads silence, x_1 … x_{T-1} and predicts x_1 … x_T.
b: pieces   t: steps   k: keys
"""

import json
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.observe import named_attentions, observe
from regard.batching.batches import iterate_by_length
from regard.batching.source import BatchSource
from regard.data.corpus import Corpus, Record
from regard.data.formats.piano_rolls import HIGHEST_PITCH, LOWEST_PITCH, RollStep, parse_piece
from regard.decoding.conditional_bernoulli import sample_keys
from regard.errors import InputError
from regard.files import JsonObject
from regard.metrics.music import (
    FIRST_STEP_GIVEN_SIGNATURE,
    FIRST_STEP_PREDICTED_SIGNATURE,
    frame_nll,
)
from regard.models.protocols import AnyRollModel
from regard.tasks.base import (
    BatchOptions,
    FieldValue,
    InputField,
    Metrics,
    Prediction,
    ProgressCallback,
    Task,
    batches_by_length,
)
from regard.tasks.generation import TOKENS_PER_BATCH
from regard.tasks.loss import Loss, sum_losses
from regard.tasks.music import view
from regard.tasks.music.composition import Composer, MusicPrediction
from regard.view.attention_map import AttentionMap
from regard.view.midi import MidiNote, notes_from_roll
from regard.view.terminal import Surface

KEY_COUNT = HIGHEST_PITCH - LOWEST_PITCH + 1
NEXT_KEY_CANDIDATES = 8  # in JSON output
FORM_STEPS = 4  # of a piece that a form offers as a beginning


@dataclass(frozen=True)
class RollExample:
    """A piece, or a part of one."""

    index: int
    steps: Sequence[RollStep]

    @property
    def lengths(self) -> tuple[int, int]:
        return len(self.steps), 0


@dataclass(frozen=True)
class RollBatch:
    """Right-padded pieces. The model reads `inputs` and predicts `targets`, one step ahead."""

    inputs: Float[Tensor, "b t k"]
    targets: Float[Tensor, "b t k"]
    valid: Bool[Tensor, "b t"]


@dataclass(frozen=True)
class RollPrediction(MusicPrediction):
    """A piano roll, its beginning included; `text` is JSON."""

    steps: list[RollStep]
    given_steps: int = 0  # of the beginning

    def as_dict(self) -> JsonObject:
        return {
            "steps": self.steps,
            "log_prob": self.log_prob,
            "notes": self.note_dicts(),
            "given": self.given_steps,
        }

    @property
    def notes(self) -> list[MidiNote]:
        return notes_from_roll(self.steps)

    @property
    def file_text(self) -> str:
        return self.text + "\n"


class PianoRollTask(Task[RollExample, RollBatch, AnyRollModel], Composer):
    """A model of piano rolls.

    Training cuts pieces into parts of `max_steps` steps. A composition adds `new_steps` steps.
    """

    name: ClassVar = "music"
    input_fields = (
        InputField(
            "beginning",
            "First chords, as JSON",
            "chords",
            example="[[60, 64, 67]]",
            is_required=False,
        ),
    )
    unit: ClassVar = "steps"
    example_unit: ClassVar = "pieces"
    text_suffix: ClassVar = ".json"
    play_options: ClassVar = ("max-length", "voices")
    packed = False
    streamed = False

    def __init__(
        self,
        model: AnyRollModel,
        *,
        max_steps: int = 512,
        new_steps: int = 64,
        temperature: float = 1.0,
        seed: int = 0,
    ):
        if not 0 < temperature < math.inf:
            raise InputError(f"temperature must be positive, not {temperature}")
        self.model = model
        self.max_steps, self.new_steps = max_steps, new_steps
        self.temperature, self.seed = temperature, seed

    # --- training

    def examples(self, records: Iterable[Record]) -> Iterator[RollExample]:
        """Yield pieces as steps, long ones in parts; each part begins after silence."""
        for index, record in enumerate(records):
            steps = parse_piece(record["text"], f"record {index + 1}")
            for start in range(0, len(steps), self.max_steps):
                yield RollExample(index, steps[start : start + self.max_steps])

    def batches(self, corpus: Corpus, options: BatchOptions) -> BatchSource[RollBatch]:
        """Check the other splits; return batches of pieces of about equal length."""
        for split in set(corpus.splits) - {"train"}:
            for _ in corpus.read(split):
                pass
        return batches_by_length(self, corpus, options)

    def collate(self, examples: Sequence[RollExample]) -> RollBatch:
        return collate_pieces([example.steps for example in examples])

    def loss(self, batch: RollBatch, step: int) -> Loss:  # noqa: ARG002 - every step is alike
        return self.loss_from(batch, 0)

    def loss_from(self, batch: RollBatch, first_step: int) -> Loss:
        """Return the loss of the steps from `first_step` on, without the padding after them."""
        states, _ = self.model.read(self.model.begin(len(batch.inputs)), batch.inputs)
        valid = batch.valid[:, first_step:]
        logits = self.model.logits(states[:, first_step:][valid])
        targets = batch.targets[:, first_step:][valid]
        total = F.binary_cross_entropy_with_logits(logits, targets, reduction="sum")
        return Loss(total, len(targets))

    def negative_log_likelihood(self, records: Iterable[Record]) -> Loss:
        """Return -log p of whole pieces, their first step included."""
        return self.negative_log_likelihood_of(whole_pieces(records))

    @torch.no_grad()
    def negative_log_likelihood_of(
        self, examples: Sequence[RollExample], first_step: int = 0
    ) -> Loss:
        """Return -log p of the steps of these pieces from `first_step` on."""
        self.model.eval()
        batches = iterate_by_length(
            examples,
            tokens_per_batch=TOKENS_PER_BATCH,
            collate=self.collate,
            device=self.device,
        )
        losses = [self.loss_from(batch, first_step) for batch in batches]
        return sum_losses(losses)

    # --- inference

    def parse(self, line: str, location: str) -> Record:
        """Return the beginning of a piece, from JSON or an empty line."""
        return {"beginning": parse_piece(line, location) if line.strip() else []}

    def form_values(self, record: Record) -> dict[str, FieldValue]:
        return {"beginning": json.dumps(list(self.beginning(record)[:FORM_STEPS]))}

    def beginning(self, record: Record) -> Sequence[RollStep]:
        """Return the steps to continue; for a record of a corpus, the whole piece."""
        if "beginning" in record:
            return record["beginning"]
        return parse_piece(record["text"], "record")

    @torch.no_grad()
    def predict(
        self,
        records: Sequence[Record],
        *,
        on_progress: ProgressCallback | None = None,
        voices: int | None = None,
    ) -> list[RollPrediction]:
        """Return each beginning with `new_steps` more steps; keys are sampled independently.

        With `voices`, samples are conditioned on this number of keys in a step (see `sample_keys`).
        A piece depends on the seed, its beginning, and how often that occurred before.
        """
        self.model.eval()
        predictions, occurrences = list[RollPrediction](), dict[str, int]()
        for record in records:
            beginning = self.beginning(record)
            key = str([list(step) for step in beginning])
            occurrences[key] = occurrences.get(key, 0) + 1
            generator = torch.Generator().manual_seed(
                random.Random(f"{self.seed} {occurrences[key]} {key}").getrandbits(62)
            )
            predictions.append(self.compose_piece(beginning, voices, generator))
            if on_progress is not None:
                on_progress(1)
        return predictions

    def compose_piece(
        self, beginning: Sequence[RollStep], voices: int | None, generator: torch.Generator
    ) -> RollPrediction:
        piece, log_prob = [tuple(step) for step in beginning], 0.0
        inputs = self.steps_tensor([(), *piece])
        states, state = self.model.read(self.model.begin(1), inputs)
        logits = self.model.logits(states[:, -1])
        for index in range(self.new_steps):
            sample = sample_keys(logits[0].cpu() / self.temperature, generator, voices)
            keys = sample[None].to(logits)
            log_prob -= F.binary_cross_entropy_with_logits(logits, keys, reduction="sum").item()
            piece.append(tuple((keys[0].nonzero()[:, 0] + LOWEST_PITCH).tolist()))
            if index + 1 < self.new_steps:
                logits, state = self.model.step(state, keys)
        return RollPrediction(json.dumps(piece), log_prob, piece, len(beginning))

    def details(self, record: Record) -> JsonObject:
        """Return the likeliest next keys."""
        next_keys = self.next_keys(self.beginning(record), NEXT_KEY_CANDIDATES)
        return {"next": [{"pitch": pitch, "probability": p} for pitch, p in next_keys]}

    def steps_tensor(self, steps: Sequence[RollStep]) -> Float[Tensor, "1 t k"]:
        """Return the keys of each step of one piece, on the device of the model."""
        return self.to_device(collate_pieces([steps]).targets)

    @torch.no_grad()
    def next_keys(self, steps: Sequence[RollStep], count: int = 10) -> list[tuple[int, float]]:
        """Return the likeliest pitches of the next step, each with its probability."""
        self.model.eval()
        states, _ = self.model.read(self.model.begin(1), self.steps_tensor([(), *steps]))
        best = self.model.logits(states[0, -1]).sigmoid().topk(min(count, KEY_COUNT))
        ranked = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [(key + LOWEST_PITCH, p) for key, p in ranked]

    def metrics(
        self,
        records: Sequence[Record],  # noqa: ARG002
        predictions: Sequence[Prediction],  # noqa: ARG002
    ) -> Metrics:
        """Return no metrics: compositions are not compared with pieces of the data."""
        return {}

    def likelihood_metrics(self, records: Sequence[Record]) -> Metrics:
        """Return nats per step: without the first step, as published, and with it."""
        examples = whole_pieces(records)
        if not examples:
            raise InputError("records are missing: there is nothing to score")
        given = self.negative_log_likelihood_of(examples, first_step=1)
        predicted = self.negative_log_likelihood_of(examples)
        return {
            "nll": frame_nll(given.total.item(), given.count),
            "nll_signature": FIRST_STEP_GIVEN_SIGNATURE,
            "nll_all": frame_nll(predicted.total.item(), predicted.count),
            "nll_all_signature": FIRST_STEP_PREDICTED_SIGNATURE,
            "steps": given.count,
            "pieces": len(examples),
        }

    def score(
        self, records: Sequence[Record], *, on_progress: ProgressCallback | None = None
    ) -> Metrics:
        """Return the metrics of likelihood, without predictions."""
        metrics = self.likelihood_metrics(records)
        if on_progress is not None:
            on_progress(len(records))
        return metrics

    def validation_metric(self, name: str, records: Sequence[Record]) -> float:
        return float(self.likelihood_metrics(records)[name])

    # --- inspection

    @torch.no_grad()
    def attention_weights(self, steps: Sequence[RollStep]) -> Float[Tensor, "t t"]:
        """Return the attention of each step to those before it and the silence before the first.

        It is the last attention of the model, averaged over its heads.
        """
        with observe(self.model.eval()) as recorded:
            self.model.read(self.model.begin(1), self.steps_tensor([(), *steps]))
        return list(recorded.joined().values())[-1][0].mean(0)

    def attention_names(self) -> tuple[str, ...]:
        return tuple(named_attentions(self.model))[-1:]

    def attention_map(self, record: Record, target: str | None = None) -> AttentionMap:  # noqa: ARG002
        return view.roll_map(self, self.beginning(record))

    def output_map(self, record: Record) -> AttentionMap:
        return view.roll_map(self, self.predict([record])[0].steps)

    def render(
        self,
        record: Record,
        surface: Surface,
        *,
        target: str | None = None,  # noqa: ARG002
        layer: int | None = None,  # noqa: ARG002
    ) -> str:
        return view.render_roll(self, self.beginning(record), surface)


def whole_pieces(records: Iterable[Record]) -> list[RollExample]:
    """Return all pieces with at least one step, uncut."""
    pieces = (parse_piece(r["text"], f"record {n}") for n, r in enumerate(records, 1))
    return [RollExample(index, steps) for index, steps in enumerate(pieces) if steps]


def collate_pieces(pieces: Sequence[Sequence[RollStep]]) -> RollBatch:
    """Return a batch with 0 or 1 for each key of each step."""
    max_steps = max(len(steps) for steps in pieces)
    targets = torch.zeros(len(pieces), max_steps, KEY_COUNT)
    active_keys = [
        (row, time, pitch - LOWEST_PITCH)
        for row, steps in enumerate(pieces)
        for time, step in enumerate(steps)
        for pitch in step
    ]
    if active_keys:
        targets[tuple(torch.tensor(active_keys).T)] = 1.0
    inputs = F.pad(targets, (0, 0, 1, 0))[:, :-1]
    lengths = torch.tensor([len(steps) for steps in pieces])
    return RollBatch(inputs, targets, torch.arange(max_steps) < lengths[:, None])
