"""Music as piano rolls: how likely the keys of each step are after those before, and what follows.

    loss = - sum over steps and keys of (x log p + (1 - x) log(1 - p))

Before its first step a piece is silent: the model reads silence, x_1 … x_{T-1}, and is to tell
x_1 … x_T. `told` is from where on steps count: 0, or 1 where the first one is given.
b: pieces   t: steps   k: keys
"""

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attend.tap import observe
from regard.batch.batches import in_order
from regard.batch.pair import Pair
from regard.corpora.rolls import HIGHEST, LOWEST, Step, steps_of
from regard.decode.voices import draw_keys
from regard.tasks.loss import Loss
from regard.tasks.translate import ROOM

KEYS = HIGHEST - LOWEST + 1


@dataclass(frozen=True)
class Rolls:
    """Right-padded pieces. The model reads `given` and is to tell `wanted`, one step ahead."""

    given: Float[Tensor, "b t k"]
    wanted: Float[Tensor, "b t k"]
    valid: Bool[Tensor, "b t"]


class Piece(NamedTuple):
    """A piece that was made, its beginning included, and how likely what was added is."""

    steps: list[Step]
    log_prob: float


class Music:
    """A model of piano rolls."""

    fields = ("text",)

    def __init__(self, model: nn.Module):
        # any model with begin, read, step and logits of keys
        self.model: Any = model

    def pairs(self, records: Iterable[Mapping[str, str]], longest: int) -> Iterator[Pair]:
        """Pieces as steps; longer ones in parts, each of which begins anew."""
        for number, record in enumerate(records):
            steps = steps_of(record["text"], f"record {number + 1}")
            for start in range(0, len(steps), longest):
                yield Pair(number, steps[start : start + longest], ())

    def collate(self, pairs: Sequence[Pair]) -> Rolls:
        return rolled([pair.source for pair in pairs])

    def loss(self, batch: Rolls, told: int = 0) -> Loss:
        """Padding counts nothing, whatever the model makes of it: it comes after all real steps."""
        states, _ = self.model.read(self.model.begin(len(batch.given)), batch.given)
        valid = batch.valid[:, told:]
        logits, wanted = self.model.logits(states[:, told:][valid]), batch.wanted[:, told:][valid]
        total = F.binary_cross_entropy_with_logits(logits, wanted, reduction="sum")
        return Loss(total, len(wanted))

    @torch.no_grad()
    def likelihood(self, pairs: Sequence[Pair], told: int = 0) -> Loss:
        self.model.eval()
        batches = in_order(pairs, tokens=ROOM, collate=self.collate)
        losses = [self.loss(batch, told) for batch in batches]
        total = torch.stack([loss.total.double() for loss in losses]).sum()
        return Loss(total, sum(loss.tokens for loss in losses))

    @torch.no_grad()
    def compose(
        self,
        beginnings: Sequence[Sequence[Step]],
        steps: int,
        *,
        temperature: float = 1.0,
        seed: int = 0,
        voices: int | None = None,
        told: Callable[[int], None] | None = None,
    ) -> list[Piece]:
        """Each beginning and `steps` steps more; each key drawn by its own probability.

        With `voices`, of these draws only those in which so many keys sound (see `draw_keys`).
        What is drawn depends on the seed, the beginning and how often that came before, and not
        on its neighbours.
        """
        if not 0 < temperature < math.inf:
            raise ValueError(f"temperature must be positive, not {temperature}")
        self.model.eval()
        found, times = list[Piece](), dict[str, int]()
        for beginning in beginnings:
            name = str([list(step) for step in beginning])
            times[name] = times.get(name, 0) + 1
            draw = torch.Generator().manual_seed(
                random.Random(f"{seed} {times[name]} {name}").getrandbits(62)
            )
            found.append(self.composed(beginning, steps, temperature, voices, draw))
            if told is not None:
                told(1)
        return found

    def composed(
        self,
        beginning: Sequence[Step],
        steps: int,
        temperature: float,
        voices: int | None,
        draw: torch.Generator,
    ) -> Piece:
        made, log_prob = [tuple(step) for step in beginning], 0.0
        given = rolled([[(), *made]]).wanted
        states, state = self.model.read(self.model.begin(1), given)
        logits = self.model.logits(states[:, -1])
        for number in range(steps):
            keys = draw_keys(logits[0] / temperature, draw, voices)[None].to(logits.dtype)
            log_prob -= F.binary_cross_entropy_with_logits(logits, keys, reduction="sum").item()
            made.append(tuple((keys[0].nonzero()[:, 0] + LOWEST).tolist()))
            if number + 1 < steps:
                logits, state = self.model.step(state, keys)
        return Piece(made, log_prob)

    @torch.no_grad()
    def next_keys(self, steps: Sequence[Step], count: int = 10) -> list[tuple[int, float]]:
        """The likeliest pitches of the next step, with the probability of each."""
        self.model.eval()
        states, _ = self.model.read(self.model.begin(1), rolled([[(), *steps]]).wanted)
        best = self.model.logits(states[0, -1]).sigmoid().topk(min(count, KEYS))
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [(key + LOWEST, p) for key, p in pairs]

    @torch.no_grad()
    def looked(self, steps: Sequence[Step]) -> Float[Tensor, "t t"]:
        """What each step looked at, of those before it and the silence before the first one.

        It is the last attention of the model, in the mean of its heads.
        """
        with observe(self.model.eval()) as seen:
            self.model.read(self.model.begin(1), rolled([[(), *steps]]).wanted)
        return list(seen.whole().values())[-1][0].mean(0)


def rolled(pieces: Sequence[Sequence[Step]]) -> Rolls:
    """Pieces as 0 and 1 for each key of each step."""
    longest = max(len(steps) for steps in pieces)
    wanted = torch.zeros(len(pieces), longest, KEYS)
    places = [
        (row, time, pitch - LOWEST)
        for row, steps in enumerate(pieces)
        for time, step in enumerate(steps)
        for pitch in step
    ]
    if places:
        wanted[tuple(torch.tensor(places).T)] = 1.0
    given = F.pad(wanted, (0, 0, 1, 0))[:, :-1]
    lengths = torch.tensor([len(steps) for steps in pieces])
    return Rolls(given, wanted, torch.arange(longest) < lengths[:, None])
