"""What tasks that put a head on an encoder have in common."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from regard.attend.tap import observe
from regard.batch.batches import in_order
from regard.batch.pair import Pair
from regard.tasks.loss import Loss
from regard.tasks.translate import ROOM


class OnEncoder(nn.Module):
    """A model with an encoder, which learns or rests."""

    def __init__(self, encoder: Any, *, frozen: bool = False):
        super().__init__()
        self.encoder, self.frozen = encoder, frozen
        if frozen:  # but how layers are mixed is for the task to learn
            for name, weight in encoder.named_parameters():
                weight.requires_grad_(name.startswith("mix."))

    def train(self, mode: bool = True) -> "OnEncoder":
        """A frozen encoder stays as it is in use: without dropout."""
        super().train(mode)
        if self.frozen:
            self.encoder.eval()
        return self


class Headed(ABC):
    """A task whose model is an encoder with a head."""

    model: Any
    packed = False  # whether what it reads is ids and nothing else

    @abstractmethod
    def collate(self, pairs: Sequence[Pair]) -> Any:
        """Texts as the model wants them, and what is true of them."""

    @abstractmethod
    def loss(self, batch: Any, smoothing: float = 0.0) -> Loss:
        """Of a batch, with labels smoothed in training."""

    @torch.no_grad()
    def likelihood(self, pairs: Sequence[Pair]) -> Loss:
        """-log p of what is true."""
        self.model.eval()
        losses = [self.loss(batch) for batch in self.in_order(pairs)]
        total = torch.stack([loss.total.double() for loss in losses]).sum()
        return Loss(total, sum(loss.tokens for loss in losses))

    @torch.no_grad()
    def seen(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Every weight that was paid while these were read, by the name of the attention."""
        with observe(self.model.eval()) as seen:
            self.model(inputs)
        return seen.whole()

    def in_order(self, pairs: Sequence[Pair]) -> Iterator[Any]:
        return in_order(pairs, tokens=ROOM, collate=self.collate) if pairs else iter(())
