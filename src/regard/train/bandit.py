"""A run that acts in worlds which it finds out on the way: bandits, or small tabular ones."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
import torch

from regard.batch.rounds import Rounds
from regard.config.settings import BanditSettings, Settings
from regard.corpora.corpus import Corpus, Record
from regard.corpora.worlds import BanditForm, Form, MdpForm, Worlds
from regard.metric.worlds import at_random, greedy, mean_return, optimal, play, thompson
from regard.models.catalogue import build as build_model
from regard.models.catalogue import settings_of
from regard.tasks.bandit import Act, Choice, Lesson, Weights
from regard.tasks.loss import Loss
from regard.train.run import Reply, Run, Told

TRAINED = 3  # the seed of worlds to train in begins with it; those of dev and test with less


class BanditRun(Run):
    """What a life brings that begins without knowing anything of its world."""

    kept: ClassVar = {}
    counted: ClassVar = "worlds"
    settings: BanditSettings
    task: Act

    def asked(self) -> Act:
        form, model = form_of(self.settings), self.settings.model
        wanted = model.model_dump(exclude={"kind"})
        sizes = {"source_size": Act.width(form), "target_size": form.actions + 1}
        if "steps" in settings_of(model.kind):
            sizes["steps"] = form.steps
        return Act(build_model(model.kind, {**wanted, **sizes}), form)

    @classmethod
    def learn(cls, settings: Settings, corpus: Corpus) -> dict[str, Any]:  # noqa: ARG003
        """Actions are numbers, whatever the world."""
        return {}

    def batches(self, corpus: Corpus) -> Rounds:  # noqa: ARG002 - worlds are drawn as they come
        train = self.settings.train

        def round_of(number: int) -> dict[str, torch.Tensor]:
            seed = [TRAINED, self.settings.data.seed, self.settings.seed, number]
            worlds = self.task.form.draw(np.random.default_rng(seed), train.worlds)
            return self.task.lesson(worlds, train.discount, train.trace, train.led)

        return Rounds(
            round_of,
            size=train.sentences_per_batch or 1,
            passes=train.passes,
            collate=lambda parts: Lesson(**parts),
        )

    def loss(self, batch: Lesson, done: int) -> Loss:
        train = self.settings.train
        left = 1 - done / train.steps if train.steps else 1.0
        weights = Weights(train.ratio, train.value, train.entropy * left)
        return self.task.loss(batch, weights)

    def worlds(self, records: Iterable[Record]) -> Worlds:
        if not (held := list(records)):
            raise ValueError("records are missing: there is nothing to score")
        return Worlds.of(self.task.form, held)

    def likelihood(self, records: Iterable[Record]) -> Loss:
        """What is missed: of what those get in the mean who know their world."""
        worlds = self.worlds(records)
        missed = worlds.known().sum() - self.task.returns(worlds).sum()
        return Loss(torch.tensor(missed), len(worlds))

    def measured(self, metric: str, records: Sequence[Record]) -> float:  # noqa: ARG002 - return
        return mean_return(self.task.returns(self.worlds(records))).value

    def score(self, records: Iterable[Record], told: Told | None = None) -> dict[str, float | str]:
        """The mean return and its standard error, beside what others get in the same worlds."""
        worlds, form = self.worlds(records), self.task.form
        value, error = mean_return(self.task.returns(worlds))
        if told is not None:
            told(len(worlds))
        found: dict[str, float | str] = {
            "return": value,
            "return_signature": self.signature(),
            "error": error,
            "random": mean_return(play(at_random, worlds)).value,
        }
        if form.states == 1:
            found["greedy"] = mean_return(play(greedy, worlds)).value
            found["thompson"] = mean_return(play(thompson, worlds)).value
            if (most := optimal(form.actions, form.steps)) is not None:
                found["optimal"] = most
        return {**found, "known": mean_return(worlds.known()).value, "worlds": len(worlds)}

    def signature(self) -> str:
        form = self.task.form
        states = f"|states:{form.states}|horizon:{form.horizon}" if form.states > 1 else ""
        of = f"{form.name}{states}|actions:{form.actions}|steps:{form.steps}"
        return f"return|{of}|discount:1|act:likeliest|v:1"

    def predict(self, texts: Sequence[str], place: str = "text {}") -> list[Choice]:
        """What is done after each of these lives."""
        return [self.task.choice(text, place.format(n)) for n, text in enumerate(texts, 1)]

    def __call__(self, text: str) -> Choice:
        return self.predict([text])[0]

    def reply(self, texts: Sequence[str], place: str = "text {}") -> list[Reply]:
        """The next action, and how likely each is, the likeliest first."""
        found = list[Reply]()
        for text, one in zip(texts, self.predict(texts, place), strict=True):
            shares = {str(n): share for n, share in enumerate(one.probabilities, 1)}
            ordered = sorted(shares.items(), key=lambda pair: -pair[1])
            said = ", ".join(f"{name} {share:.1%}" for name, share in ordered)
            facts = {"history": text, "action": one.action + 1, "probabilities": shares}
            found.append(Reply(said, {**facts, "value": one.value}))
        return found


def form_of(settings: BanditSettings) -> Form:
    data = settings.data
    if data.kind == "bandit":
        return BanditForm(data.arms, data.steps)
    return MdpForm(data.states, data.actions, data.horizon, data.episodes)
