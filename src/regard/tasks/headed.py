"""What tasks that put a head on an encoder have in common."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.observe import observe
from regard.batching.batches import iterate_by_length
from regard.batching.example import Example
from regard.tasks.loss import Loss
from regard.tasks.translate import TOKENS_PER_BATCH


class EncoderWithHead(nn.Module):
    """A model with an encoder, which learns or rests."""

    def __init__(self, encoder: Any, *, frozen: bool = False):
        super().__init__()
        self.encoder, self.frozen = encoder, frozen
        if frozen:  # but how layers are mixed is for the task to learn
            for name, weight in encoder.named_parameters():
                weight.requires_grad_(name.startswith("mix."))

    def train(self, mode: bool = True) -> "EncoderWithHead":
        """A frozen encoder stays as it is in use: without dropout."""
        super().train(mode)
        if self.frozen:
            self.encoder.eval()
        return self


class EncoderTask(ABC):
    """A task whose model is an encoder with a head."""

    model: Any
    can_pack = False  # whether what it reads is ids and nothing else

    @abstractmethod
    def collate(self, examples: Sequence[Example]) -> Any:
        """Texts as the model wants them, and what is true of them."""

    @abstractmethod
    def loss(self, batch: Any, smoothing: float = 0.0) -> Loss:
        """Of a batch, with labels smoothed in training."""

    @torch.no_grad()
    def negative_log_likelihood(self, examples: Sequence[Example]) -> Loss:
        """-log p of what is true."""
        self.model.eval()
        losses = [self.loss(batch) for batch in self.iterate_by_length(examples)]
        total = torch.stack([loss.total.double() for loss in losses]).sum()
        return Loss(total, sum(loss.count for loss in losses))

    @torch.no_grad()
    def observed_weights(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Every weight that was paid while these were read, by the name of the attention."""
        with observe(self.model.eval()) as recorded:
            self.model(inputs)
        return recorded.joined()

    def iterate_by_length(self, examples: Sequence[Example]) -> Iterator[Any]:
        return (
            iterate_by_length(examples, tokens_per_batch=TOKENS_PER_BATCH, collate=self.collate)
            if examples
            else iter(())
        )
