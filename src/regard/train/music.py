"""A run that makes music as piano rolls: 88 keys, step by step."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from regard.batch.batches import Batches
from regard.config.settings import MusicSettings, Settings
from regard.corpora.corpus import Corpus, Record
from regard.corpora.rolls import Step, steps_of
from regard.metric.music import GIVEN, TOLD, frame_nll
from regard.models.catalogue import build as build_model
from regard.tasks.loss import Loss
from regard.tasks.music import KEYS, Music, Piece, Rolls
from regard.train.examples import examples
from regard.train.run import Reply, Run, Told

WHOLE = 10**9  # steps: nothing is cut
NEXT = 8  # keys that could come next, in JSON


class RollRun(Run):
    """How likely the keys of each step are, and how a piece goes on."""

    kept: ClassVar = {}
    counted: ClassVar = "steps"
    settings: MusicSettings
    task: Music

    def asked(self) -> Music:
        wanted = self.settings.model.model_dump(exclude={"kind"})
        return Music(build_model(self.settings.model.kind, {**wanted, "size": KEYS}))

    @classmethod
    def learn(cls, settings: Settings, corpus: Corpus) -> dict[str, Any]:  # noqa: ARG003
        """There are 88 keys, whatever the data."""
        return {}

    def batches(self, corpus: Corpus) -> Batches:
        train = self.settings.train
        for split in set(corpus.splits) - {"train"}:  # seen to be right before any work is done
            for _ in corpus.read(split):
                pass

        def pairs(records: Iterable[Record]) -> Iterator[Any]:
            return self.task.pairs(records, self.longest)

        return Batches(
            examples(lambda: corpus.read("train"), pairs, ["text"], self.settings, packed=False),
            tokens=train.tokens_per_batch,
            sentences=train.sentences_per_batch,
            seed=self.settings.seed,
            collate=self.task.collate,
        )

    def loss(self, batch: Rolls, done: int) -> Loss:  # noqa: ARG002 - every step is alike
        return self.task.loss(batch)

    def likelihood(self, records: Iterable[Record]) -> Loss:
        """Of whole pieces, their first step included."""
        return self.task.likelihood(list(self.task.pairs(records, WHOLE)))

    def score(self, records: Iterable[Record], told: Told | None = None) -> dict[str, float | str]:
        """Nats of a step, its first one being given, as published; and with the first one."""
        pairs = list(self.task.pairs(records, WHOLE))
        if not pairs:
            raise ValueError("records are missing: there is nothing to score")
        loss, every = self.task.likelihood(pairs, told=1), self.task.likelihood(pairs)
        if told is not None:
            told(len(pairs))
        return {
            "nll": frame_nll(loss.total.item(), loss.tokens),
            "nll_signature": GIVEN,
            "nll_all": frame_nll(every.total.item(), every.tokens),
            "nll_all_signature": TOLD,
            "steps": loss.tokens,
            "pieces": len(pairs),
        }

    def predict(
        self,
        beginnings: Sequence[Sequence[Step]],
        voices: int | None = None,
        told: Told | None = None,
    ) -> list[Piece]:
        """Each beginning, and as many steps more as `decode.max_length` says."""
        decode = self.settings.decode
        return self.task.compose(
            beginnings,
            decode.max_length,
            temperature=decode.temperature,
            seed=decode.seed,
            voices=voices,
            told=told,
        )

    def __call__(self, beginning: Sequence[Step] = (), voices: int | None = None) -> Piece:
        return self.predict([beginning], voices)[0]

    def reply(self, texts: Sequence[str], place: str = "text {}") -> list[Reply]:
        """A piece as JSON after each beginning, which is JSON too, or an empty line."""
        given = [beginning_of(text, place.format(n)) for n, text in enumerate(texts, 1)]
        return [
            Reply(
                json.dumps(piece.steps),
                {"beginning": begun, "steps": piece.steps, "log_prob": piece.log_prob},
            )
            for begun, piece in zip(given, self.predict(given), strict=True)
        ]

    def further(self, text: str) -> dict[str, Any]:
        best = self.task.next_keys(beginning_of(text, "text"), NEXT)
        return {"next": [{"pitch": pitch, "probability": p} for pitch, p in best]}


def beginning_of(text: str, place: str) -> list[Step]:
    return steps_of(text, place) if text.strip() else []
