"""Trained heads of encoders in the form that other libraries have: one linear layer.

What such a layer cannot express is refused, with the setting to change.
"""

from typing import Literal, NamedTuple

from torch import Tensor, nn

from regard.errors import InputError
from regard.layers.output_heads import ClassifierHead
from regard.models.protocols import Model


class ExportableHead(NamedTuple):
    """logits = weight x + bias, of a sequence, of each token, or of starts and ends of a span.

    `labels` are the names of the classes. Texts are cut after `max_tokens` tokens with special
    ones.
    """

    outputs: Literal["sequence", "tokens", "spans"]
    weight: Tensor
    bias: Tensor
    labels: tuple[str, ...]
    max_tokens: int


def check_without_lora(encoder: Model) -> None:
    """Raise an error if the encoder has LoRA weights, which other formats do not hold."""
    if any("parametrizations" in name for name, _ in encoder.named_parameters()):
        raise InputError("weights with LoRA (start.lora_rank) cannot be exported")


def output_layer(head: ClassifierHead) -> nn.Linear:
    """Return the only layer of a head."""
    if head.hidden is not None:
        raise InputError(
            "head.hidden_dim cannot be exported: the heads of transformers have one layer; train "
            "without it"
        )
    return head.output
