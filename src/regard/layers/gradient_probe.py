"""Measure how far a gradient reaches back in time: vanishing and exploding gradients."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.validation import check_finite
from regard.errors import InputError
from regard.layers.cells import RecurrentState


def gradient_by_distance(
    step: Callable[[Tensor, RecurrentState], RecurrentState],
    inputs: Float[Tensor, "b t d"],
    state: RecurrentState,
    loss: Callable[[Tensor], Tensor] = torch.sum,
) -> Float[Tensor, " distances"]:
    """|dJ_t / dh_k| for t - k = 0, 1, ... T  (Bengio et al. 1994; Pascanu et al. 2013, eq. 3-5).

    `step` is the recurrent model: (x_t, state) -> state, with h first in the state. J_t = loss(h_t)
    is taken after the last input; h_0 is the state before the first. The norm is over the last axis
    of h, averaged over all others (sequences, layers). Other tensors of the state, such as the cell
    of an LSTM, are held fixed: the gradient is that of h_k alone.
    """
    if inputs.ndim != 3 or not inputs.numel():
        raise InputError(f"inputs must be [batch, steps, input_dim], not {list(inputs.shape)}")
    check_finite("inputs", inputs)
    with torch.enable_grad():
        state = (state[0].detach().requires_grad_(), *(part.detach() for part in state[1:]))
        hidden = [state[0]]
        for x in inputs.detach().unbind(1):
            state = step(x, state)
            if not state[0].requires_grad:  # the state depends on x alone
                state = (state[0].detach().requires_grad_(), *state[1:])
            hidden.append(state[0])
        final = loss(state[0])
    if final.ndim:
        raise InputError(f"loss must return a scalar, not a tensor of shape {list(final.shape)}")
    gradients = torch.autograd.grad(final, hidden[::-1], materialize_grads=True)
    return torch.stack([gradient.norm(dim=-1).mean() for gradient in gradients])
