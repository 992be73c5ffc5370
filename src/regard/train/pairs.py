"""Runs that write a text when they have read another: two vocabularies, or one for both sides."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from torch import nn

from regard.batch.pair import Pair
from regard.config.decode import Decode
from regard.config.settings import Settings
from regard.corpora.corpus import Corpus, Record
from regard.decode.stepper import Stepper
from regard.models.catalogue import build as build_model
from regard.tasks.loss import Loss
from regard.tasks.translate import Search, Translation
from regard.text.tokeniser import Tokeniser
from regard.train.run import Run, Told, vocabulary
from regard.train.search import ranking_of, rules_of, search_of

SIDES = ("source", "target")


class PairRun(Run):
    """A source text into a target text."""

    kept: ClassVar = dict.fromkeys(SIDES, Tokeniser.load)
    forbidden: ClassVar[tuple[int, ...]] = ()  # ids that are never said, beside the usual ones
    settings: Any

    @abstractmethod
    def task_of(self, model: nn.Module) -> Any:
        """What is asked of a model."""

    def asked(self) -> Any:
        wanted = self.settings.model.model_dump(exclude={"kind"})
        sizes = {f"{side}_size": self.vocabularies[side].size for side in SIDES}
        return self.task_of(build_model(self.settings.model.kind, {**wanted, **sizes}))

    @classmethod
    def learn(cls, settings: Settings, corpus: Corpus) -> dict[str, Tokeniser]:
        if settings.text.joint:
            both = vocabulary(settings.text, corpus, *SIDES)
            return dict.fromkeys(SIDES, both)
        return {side: vocabulary(settings.text, corpus, side) for side in SIDES}

    def __call__(self, text: str) -> Translation:
        """The best output for one text."""
        return self.predict([text])[0][0]

    def predict(
        self,
        texts: Sequence[str],
        decode: Decode | None = None,
        told: Told | None = None,
        stepper: Stepper[Any, Any] | None = None,
    ) -> list[list[Translation]]:
        """The outputs for each text, best first; `stepper` says the tokens in the model's place."""
        how: Decode = decode or self.settings.decode
        rules = rules_of(how, int(min(how.max_length, self.reach)), self.forbidden)
        whole, again = search_of(how), ranking_of(how)
        search: Search = whole if stepper is None else lambda _, *rest: whole(stepper, *rest)
        return self.task.translate(texts, search, rules, again=again, told=told)

    def likelihood(self, records: Iterable[Record]) -> Loss:
        """-log p of the targets, of pairs that are not too long."""
        return self.task.likelihood(self.measurable(records))

    @abstractmethod
    def measurable(self, records: Iterable[Record]) -> list[Pair]:
        """The pairs whose likelihood can be told."""
