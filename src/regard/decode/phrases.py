"""Outputs that must contain given phrases: how far each hypothesis has come, and who may stay.

After Post & Vilar 2018 (dynamic beam allocation): the beam is shared out among banks, one for each
number of phrase tokens that are in place, so that hypotheses which took up a phrase early are not
crowded out by likelier ones that have not.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import islice, zip_longest
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.decode.front import Found, Front
from regard.decode.rules import LEAST, Bound
from regard.decode.top import best
from regard.text.special import END


class Progress(NamedTuple):
    """What a hypothesis has yet to say, and the beginning of it that it ends with."""

    unmet: frozenset[tuple[int, ...]]
    tail: tuple[int, ...] = ()  # the longest end of the output that begins an unmet phrase

    @property
    def total(self) -> int:
        return sum(map(len, self.unmet))

    @property
    def remaining(self) -> int:
        """So many tokens are sure to be enough: finish the phrase begun, then say the others."""
        return self.total - len(self.tail)

    @property
    def wanted(self) -> set[int]:
        """Tokens that bring a phrase forward; one that has been begun is gone on with."""
        begun = len(self.tail)
        return {phrase[begun] for phrase in self.unmet if phrase[:begun] == self.tail}

    def after(self, next_id: int) -> "Progress":
        """What is left when this has been said. Phrases may overlap."""
        said = (*self.tail, next_id)
        unmet = frozenset(phrase for phrase in self.unmet if said[-len(phrase) :] != phrase)
        for start in range(len(said)):
            if any(phrase[: len(said) - start] == said[start:] for phrase in unmet):
                return Progress(unmet, said[start:])
        return Progress(unmet)


class Candidate(NamedTuple):
    """One way to go on. In order: the likelier, then the earlier beam, then the lower id."""

    cost: float  # the log-probability so far, its sign turned
    parent: int  # the beam that it extends
    id: int
    remaining: int  # phrase tokens left to say then


EMPTY = Candidate(math.inf, 0, 0, 0)


class Keeper:
    """Watches over the phrases of every input of a beam search."""

    def __init__(self, bound: Bound, width: int):
        self.bound, self.width = bound, width
        self.limits = bound.limits.tolist()
        self.progress = [[one] for one in map(begin, bound.phrases, bound.prefixes)]
        self.asked: dict[int, list[Candidate]] = {}  # by place in the front
        for number, ([one], limit) in enumerate(zip(self.progress, self.limits, strict=True)):
            after_prefix = len(bound.prefixes[number])
            if after_prefix + one.remaining > limit:
                raise ValueError(
                    f"input {number}: its phrases need {one.remaining} ids after a prefix of "
                    f"{after_prefix}, more than max_length {limit}: raise it"
                )

    def ask(self, log_probs: Float[Tensor, "n v"], front: Front) -> None:
        """Note the candidates that bring phrases forward, before other rules forbid any."""
        self.asked = {}
        numbers, beams = front.inputs.tolist(), front.scores.shape[1]
        wishes = [
            (place, parent, next_id, one.after(next_id).remaining)
            for place, number in enumerate(numbers)
            if self.busy(number, front.position)
            for parent, one in enumerate(self.progress[number])
            for next_id in one.wanted
        ]
        if not wishes:
            return
        places, parents, ids, _ = torch.tensor(wishes).unbind(1)
        told = log_probs[places * beams + parents, ids].clamp(min=LEAST)
        costs = (-told - front.scores[places, parents]).tolist()
        for (place, *which), cost in zip(wishes, costs, strict=True):
            self.asked.setdefault(place, []).append(Candidate(cost, *which))

    def busy(self, number: int, position: int) -> bool:
        """Whether this input has something left to keep, its prefix being over."""
        over = position >= len(self.bound.prefixes[number])
        return over and any(one.unmet for one in self.progress[number])

    def choose(self, log_probs: Float[Tensor, "n v"], front: Front, found: Found) -> Found:
        """Candidates as found, but for busy inputs: first those that end, then those that go on."""
        if not self.asked:
            return found
        places, beams = torch.tensor(list(self.asked)), front.scores.shape[1]
        rows = (places[:, None] * beams + torch.arange(beams)).flatten()
        values, _, ids = best(log_probs[rows], front.scores[places].view(-1, 1), self.width + 1)
        shape = (len(places), beams, -1)
        costs, ids = (-values).view(shape).tolist(), ids.view(shape).tolist()
        room = 2 * self.width
        chosen = []
        for place, *told in zip(self.asked, costs, ids, strict=True):
            some = self.chosen(place, front, *told)
            chosen.append(some + [EMPTY] * (room - len(some)))
        costs, parents, ids, _ = torch.tensor(chosen, dtype=torch.float64).unbind(2)
        found = widened(found, room)
        found.values[places] = -costs
        found.parents[places], found.ids[places] = parents.long(), ids.long()
        return found

    def chosen(
        self, place: int, front: Front, costs: list[list[float]], ids: list[list[int]]
    ) -> list[Candidate]:
        """Of one input: the ends and the others that get a place each."""
        number = int(front.inputs[place])
        room = self.limits[number] - front.position - 1
        fitting = [one for one in self.asked[place] if one.cost < torch.inf]
        asked = {(one.parent, one.id) for one in fitting}
        for parent, told in enumerate(zip(costs, ids, strict=True)):
            moves, otherwise = moves_of(self.progress[number][parent])
            for cost, next_id in zip(*told, strict=True):
                remaining = moves.get(next_id, otherwise)
                # whoever fits has a wanted token that fits too: every output gets its phrases
                fits = remaining == 0 if next_id == END else remaining <= room
                if fits and cost < torch.inf and (parent, next_id) not in asked:
                    fitting.append(Candidate(cost, parent, next_id, remaining))
        fitting.sort()
        ends = [one for one in shared_out(fitting, self.width) if one.id == END]
        return ends + shared_out([one for one in fitting if one.id != END], self.width)

    def follow(self, front: Front, parents: Int[Tensor, "a b"]) -> None:
        """What the hypotheses of the new front have kept."""
        said = front.history[..., -1].tolist()
        for number, beams, ids in zip(front.inputs.tolist(), parents.tolist(), said, strict=True):
            before = self.progress[number]
            if front.position > len(self.bound.prefixes[number]):
                pairs = zip(beams, ids, strict=True)
                self.progress[number] = [before[beam].after(said_id) for beam, said_id in pairs]
            else:  # the progress was begun after the prefix
                self.progress[number] = [before[beam] for beam in beams]


def begin(phrases: Iterable[Sequence[int]], prefix: Sequence[int]) -> Progress:
    """Where an output stands after its forced prefix. A phrase given twice need occur once."""
    progress = Progress(frozenset(map(tuple, phrases)))
    for said_id in prefix:
        progress = progress.after(said_id)
    return progress


def moves_of(one: Progress) -> tuple[dict[int, int], int]:
    """What would remain to be said after each id that matters, and after any other."""
    matter = {next_id for phrase in one.unmet for next_id in phrase}
    return {next_id: one.after(next_id).remaining for next_id in matter}, one.total


def widened(found: Found, wanted: int) -> Found:
    """Room for this many candidates, which a small vocabulary may not give."""
    room = max(wanted - found.values.shape[1], 0)
    return Found(
        F.pad(found.values, (0, room), value=-torch.inf),
        F.pad(found.parents, (0, room)),
        F.pad(found.ids, (0, room)),
    )


def shared_out(candidates: Iterable[Candidate], width: int) -> list[Candidate]:
    """At most `width` of the sorted candidates, in turn from each bank, the fullest bank first."""
    banks: dict[int, list[Candidate]] = {}
    for one in candidates:
        banks.setdefault(one.remaining, []).append(one)
    rounds = zip_longest(*(banks[remaining] for remaining in sorted(banks)))
    turns = (one for turn in rounds for one in turn if one is not None)
    return sorted(islice(turns, width))
