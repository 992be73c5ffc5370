"""A model that predicts the first and the last token of an answer in its context.

b: windows   t: positions of a row   p: no answer, then the tokens of a context
"""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.layers.encoder_states import EncoderStates, SpanStates
from regard.layers.output_heads import ClassifierHead
from regard.models.protocols import Encoder
from regard.tasks.encoding import EncoderModel


class SpanLogits(NamedTuple):
    """Logits of the first and of the last token of an answer; padding is -inf."""

    starts: Float[Tensor, "b p"]
    ends: Float[Tensor, "b p"]


class SpanReader(EncoderModel[Encoder[EncoderStates | SpanStates]]):
    """An encoder with a head for the first and a head for the last token of an answer.

    The first position of a row (BERT's [CLS]) stands for no answer. With `separate_context` the
    encoder returns states of the context only; then no answer has one learned energy for all
    contexts (Levy et al. 2017, 3.2). If the best answer scores below `threshold`, there is none.
    """

    threshold: Tensor

    def __init__(
        self,
        encoder: Encoder[EncoderStates | SpanStates],
        *,
        separate_context: bool = False,
        hidden_dim: int | None = None,
        dropout: float = 0.0,
        frozen: bool = False,
    ):
        super().__init__(encoder, frozen=frozen)
        self.start, self.end = (
            ClassifierHead(encoder.width, 1, hidden_dim=hidden_dim, dropout=dropout)
            for _ in range(2)
        )
        self.none = nn.Parameter(torch.zeros(2)) if separate_context else None
        self.register_buffer("threshold", torch.zeros(()))

    def forward(self, inputs: Mapping[str, Tensor]) -> SpanLogits:
        encoder_inputs = {
            name: tensor for name, tensor in inputs.items() if name not in ("begins", "counts")
        }
        encoded = self.encoder.encode(**encoder_inputs)
        ends = encoded.ends if isinstance(encoded, SpanStates) else encoded.states
        sides = self.start(encoded.states)[..., 0], self.end(ends)[..., 0]
        if self.none is None:
            return SpanLogits(
                *(gather_context(side, inputs["begins"], inputs["counts"]) for side in sides)
            )
        energies = (side.masked_fill(~encoded.valid, -torch.inf) for side in sides)
        none_energies = self.none[:, None, None].expand(2, len(encoded.valid), 1)
        return SpanLogits(
            *(torch.cat(columns, 1) for columns in zip(none_energies, energies, strict=True))
        )


def gather_context(
    energy: Float[Tensor, "b t"], context_starts: Int[Tensor, " b"], counts: Int[Tensor, " b"]
) -> Float[Tensor, "b p"]:
    """Return the energy of the first position, followed by those of the context."""
    offset = torch.arange(max(1, int(counts.max())), device=energy.device)
    positions = (context_starts[:, None] + offset).clamp(max=energy.shape[1] - 1)
    context = energy.gather(1, positions).masked_fill(offset >= counts[:, None], -torch.inf)
    return torch.cat([energy[:, :1], context], 1)


def negative_log_prob(
    energy: Float[Tensor, "b p"], target: Int[Tensor, " b"], smoothing: float
) -> Float[Tensor, ""]:
    """Return the sum of -log p(target), smoothed over all valid positions."""
    log_probs = energy.log_softmax(-1)
    target_loss = -log_probs.gather(1, target[:, None]).sum()
    if not smoothing:
        return target_loss
    valid = energy > -torch.inf
    uniform_loss = -(log_probs.masked_fill(~valid, 0.0).sum(1) / valid.sum(1)).sum()
    return (1 - smoothing) * target_loss + smoothing * uniform_loss
