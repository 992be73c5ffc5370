"""Log-probabilities of the next token.

n: rows   v: vocabulary
"""

import torch
from jaxtyping import Float
from torch import Tensor

from regard.kernels import compiled


def log_probabilities(logits: Float[Tensor, "n v"]) -> Float[Tensor, "n v"]:
    """Return log softmax(logits); the logits are overwritten if they need no gradient."""
    if (
        torch.is_grad_enabled()
        or torch.compiler.is_compiling()
        or logits.ndim != 2
        or compiled.native is None
        or not compiled.can_use_native(logits)
    ):
        return logits.log_softmax(-1)
    compiled.native.log_softmax_rows(logits.data_ptr(), *logits.shape)
    return logits
