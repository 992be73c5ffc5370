"""A run that makes music as piano rolls: 88 keys, step by step."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from regard.batching.batches import Batches
from regard.config.settings import MusicSettings, Settings
from regard.data.corpus import Corpus, Record
from regard.data.formats.piano_rolls import RollStep, parse_piece
from regard.metrics.music import (
    FIRST_STEP_GIVEN_SIGNATURE,
    FIRST_STEP_PREDICTED_SIGNATURE,
    frame_nll,
)
from regard.models.catalogue import build_model as build_model
from regard.tasks.loss import Loss
from regard.tasks.music import KEY_COUNT, MusicBatch, MusicPrediction, MusicTask
from regard.train.run import Prediction, ProgressCallback, Run
from regard.training.examples import build_examples

UNLIMITED_STEPS = 10**9  # steps: nothing is cut
NEXT_KEY_CANDIDATES = 8  # keys that could come next, in JSON


class PianoRollRun(Run):
    """How likely the keys of each step are, and how a piece goes on."""

    vocabulary_loaders: ClassVar = {}
    unit: ClassVar = "steps"
    settings: MusicSettings
    task: MusicTask

    def build_task(self) -> MusicTask:
        options = self.settings.model.model_dump(exclude={"kind"})
        return MusicTask(build_model(self.settings.model.kind, {**options, "size": KEY_COUNT}))

    @classmethod
    def build_vocabularies(cls, settings: Settings, corpus: Corpus) -> dict[str, Any]:  # noqa: ARG003
        """There are 88 keys, whatever the data."""
        return {}

    def batches(self, corpus: Corpus) -> Batches:
        train = self.settings.train
        for split in set(corpus.splits) - {"train"}:  # seen to be right before any work is done
            for _ in corpus.read(split):
                pass

        def to_examples(records: Iterable[Record]) -> Iterator[Any]:
            return self.task.examples(records, self.max_tokens)

        return Batches(
            build_examples(
                lambda: corpus.read("train"), to_examples, ["text"], self.settings, packed=False
            ),
            tokens_per_batch=train.tokens_per_batch,
            examples_per_batch=train.examples_per_batch,
            seed=self.settings.seed,
            collate=self.task.collate,
        )

    def loss(self, batch: MusicBatch, steps_done: int) -> Loss:  # noqa: ARG002 - every step is alike
        return self.task.loss(batch)

    def negative_log_likelihood(self, records: Iterable[Record]) -> Loss:
        """Of whole pieces, their first step included."""
        return self.task.negative_log_likelihood(list(self.task.examples(records, UNLIMITED_STEPS)))

    def score(
        self, records: Iterable[Record], on_progress: ProgressCallback | None = None
    ) -> dict[str, float | str]:
        """Nats of a step, its first one being given, as published; and with the first one."""
        examples = list(self.task.examples(records, UNLIMITED_STEPS))
        if not examples:
            raise ValueError("records are missing: there is nothing to score")
        loss, loss_with_first_step = (
            self.task.negative_log_likelihood(examples, first_step=1),
            self.task.negative_log_likelihood(examples),
        )
        if on_progress is not None:
            on_progress(len(examples))
        return {
            "nll": frame_nll(loss.total.item(), loss.count),
            "nll_signature": FIRST_STEP_GIVEN_SIGNATURE,
            "nll_all": frame_nll(loss_with_first_step.total.item(), loss_with_first_step.count),
            "nll_all_signature": FIRST_STEP_PREDICTED_SIGNATURE,
            "steps": loss.count,
            "pieces": len(examples),
        }

    def predict(
        self,
        beginnings: Sequence[Sequence[RollStep]],
        voices: int | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> list[MusicPrediction]:
        """Each beginning, and as many steps more as `decode.max_length` says."""
        decode = self.settings.decode
        return self.task.predict(
            beginnings,
            decode.max_length,
            temperature=decode.temperature,
            seed=decode.seed,
            voices=voices,
            on_progress=on_progress,
        )

    def __call__(
        self, beginning: Sequence[RollStep] = (), voices: int | None = None
    ) -> MusicPrediction:
        return self.predict([beginning], voices)[0]

    def predict_lines(
        self, lines: Sequence[str], location_format: str = "text {}"
    ) -> list[Prediction]:
        """A piece as JSON after each beginning, which is JSON too, or an empty line."""
        beginnings = [
            parse_beginning(text, location_format.format(n)) for n, text in enumerate(lines, 1)
        ]
        return [
            Prediction(
                json.dumps(piece.steps),
                {"beginning": beginning, "steps": piece.steps, "log_prob": piece.log_prob},
            )
            for beginning, piece in zip(beginnings, self.predict(beginnings), strict=True)
        ]

    def details(self, text: str) -> dict[str, Any]:
        next_keys = self.task.next_keys(parse_beginning(text, "text"), NEXT_KEY_CANDIDATES)
        return {"next": [{"pitch": pitch, "probability": p} for pitch, p in next_keys]}


def parse_beginning(text: str, location: str) -> list[RollStep]:
    return parse_piece(text, location) if text.strip() else []
