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

from regard.attention.observe import observe
from regard.batching.batches import iterate_by_length
from regard.batching.example import Example
from regard.data.formats.piano_rolls import HIGHEST_PITCH, LOWEST_PITCH, RollStep, parse_piece
from regard.decoding.conditional_bernoulli import sample_keys
from regard.tasks.loss import Loss
from regard.tasks.translate import TOKENS_PER_BATCH

KEY_COUNT = HIGHEST_PITCH - LOWEST_PITCH + 1


@dataclass(frozen=True)
class MusicBatch:
    """Right-padded pieces. The model reads `given` and is to tell `wanted`, one step ahead."""

    inputs: Float[Tensor, "b t k"]
    targets: Float[Tensor, "b t k"]
    valid: Bool[Tensor, "b t"]


class MusicPrediction(NamedTuple):
    """A piece that was made, its beginning included, and how likely what was added is."""

    steps: list[RollStep]
    log_prob: float


class MusicTask:
    """A model of piano rolls."""

    fields = ("text",)

    def __init__(self, model: nn.Module):
        # any model with begin, read, step and logits of keys
        self.model: Any = model

    def examples(self, records: Iterable[Mapping[str, str]], max_steps: int) -> Iterator[Example]:
        """Pieces as steps; longer ones in parts, each of which begins anew."""
        for index, record in enumerate(records):
            steps = parse_piece(record["text"], f"record {index + 1}")
            for start in range(0, len(steps), max_steps):
                yield Example(index, steps[start : start + max_steps], ())

    def collate(self, examples: Sequence[Example]) -> MusicBatch:
        return collate_pieces([example.source for example in examples])

    def loss(self, batch: MusicBatch, first_step: int = 0) -> Loss:
        """Padding counts nothing, whatever the model makes of it: it comes after all real steps."""
        states, _ = self.model.read(self.model.begin(len(batch.inputs)), batch.inputs)
        valid = batch.valid[:, first_step:]
        logits, targets = (
            self.model.logits(states[:, first_step:][valid]),
            batch.targets[:, first_step:][valid],
        )
        total = F.binary_cross_entropy_with_logits(logits, targets, reduction="sum")
        return Loss(total, len(targets))

    @torch.no_grad()
    def negative_log_likelihood(self, examples: Sequence[Example], first_step: int = 0) -> Loss:
        self.model.eval()
        batches = iterate_by_length(
            examples, tokens_per_batch=TOKENS_PER_BATCH, collate=self.collate
        )
        losses = [self.loss(batch, first_step) for batch in batches]
        total = torch.stack([loss.total.double() for loss in losses]).sum()
        return Loss(total, sum(loss.count for loss in losses))

    @torch.no_grad()
    def predict(
        self,
        beginnings: Sequence[Sequence[RollStep]],
        steps: int,
        *,
        temperature: float = 1.0,
        seed: int = 0,
        voices: int | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> list[MusicPrediction]:
        """Each beginning and `steps` steps more; each key drawn by its own probability.

        With `voices`, of these draws only those in which so many keys sound (see `draw_keys`).
        What is drawn depends on the seed, the beginning and how often that came before, and not
        on its neighbours.
        """
        if not 0 < temperature < math.inf:
            raise ValueError(f"temperature must be positive, not {temperature}")
        self.model.eval()
        predictions, occurrences = list[MusicPrediction](), dict[str, int]()
        for beginning in beginnings:
            key = str([list(step) for step in beginning])
            occurrences[key] = occurrences.get(key, 0) + 1
            generator = torch.Generator().manual_seed(
                random.Random(f"{seed} {occurrences[key]} {key}").getrandbits(62)
            )
            predictions.append(self.compose_piece(beginning, steps, temperature, voices, generator))
            if on_progress is not None:
                on_progress(1)
        return predictions

    def compose_piece(
        self,
        beginning: Sequence[RollStep],
        steps: int,
        temperature: float,
        voices: int | None,
        generator: torch.Generator,
    ) -> MusicPrediction:
        piece, log_prob = [tuple(step) for step in beginning], 0.0
        inputs = collate_pieces([[(), *piece]]).targets
        states, state = self.model.read(self.model.begin(1), inputs)
        logits = self.model.logits(states[:, -1])
        for index in range(steps):
            keys = sample_keys(logits[0] / temperature, generator, voices)[None].to(logits.dtype)
            log_prob -= F.binary_cross_entropy_with_logits(logits, keys, reduction="sum").item()
            piece.append(tuple((keys[0].nonzero()[:, 0] + LOWEST_PITCH).tolist()))
            if index + 1 < steps:
                logits, state = self.model.step(state, keys)
        return MusicPrediction(piece, log_prob)

    @torch.no_grad()
    def next_keys(self, steps: Sequence[RollStep], count: int = 10) -> list[tuple[int, float]]:
        """The likeliest pitches of the next step, with the probability of each."""
        self.model.eval()
        states, _ = self.model.read(self.model.begin(1), collate_pieces([[(), *steps]]).targets)
        best = self.model.logits(states[0, -1]).sigmoid().topk(min(count, KEY_COUNT))
        ranked = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [(key + LOWEST_PITCH, p) for key, p in ranked]

    @torch.no_grad()
    def attention_weights(self, steps: Sequence[RollStep]) -> Float[Tensor, "t t"]:
        """What each step looked at, of those before it and the silence before the first one.

        It is the last attention of the model, in the mean of its heads.
        """
        with observe(self.model.eval()) as recorded:
            self.model.read(self.model.begin(1), collate_pieces([[(), *steps]]).targets)
        return list(recorded.joined().values())[-1][0].mean(0)


def collate_pieces(pieces: Sequence[Sequence[RollStep]]) -> MusicBatch:
    """Pieces as 0 and 1 for each key of each step."""
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
    return MusicBatch(inputs, targets, torch.arange(max_steps) < lengths[:, None])
