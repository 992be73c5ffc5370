"""Windows limit the slots of a query, and multiply the weights inside by a gain."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.memory import Memory
from regard.attention.validation import check_positive
from regard.errors import InputError
from regard.kernels.linear import Linear


class PredictiveWindow(nn.Module):
    """p = S sigmoid(v . tanh(W q)),  gain(s) = exp(-(s - p)^2 / (2 sigma^2)),  |s - p| <= D

    Luong et al. 2015, eq. 9-10, "local-p": sigma = D/2, S is the number of real slots, s counts
    from 0, p is real-valued. The gain multiplies the softmax over the window. The result is not
    normalized again: a row sums to at most 1.

    >>> import torch
    >>> from regard.attention import Attention, General
    >>> attention = Attention(General(4, 6), window=PredictiveWindow(query_dim=4, radius=2))
    >>> attention(torch.randn(1, 1, 4), attention.remember(torch.randn(1, 9, 6))).shape
    torch.Size([1, 1, 6])
    """

    def __init__(
        self,
        query_dim: int,
        radius: int | float = 10,
        sigma: int | float | None = None,
        hidden_dim: int | None = None,
    ):
        super().__init__()
        if radius < 1:  # a smaller window could fall between two slots
            raise InputError(f"radius must be at least 1, not {radius}")
        self.radius = radius
        self.sigma = radius / 2 if sigma is None else sigma
        check_positive("sigma", self.sigma)
        self.center = nn.Sequential(
            Linear(query_dim, hidden_dim or query_dim, bias=False),
            nn.Tanh(),
            Linear(hidden_dim or query_dim, 1, bias=False),
            nn.Sigmoid(),
        )

    def forward(
        self, query: Float[Tensor, "*b q dq"], memory: Memory
    ) -> tuple[Bool[Tensor, "*b q k"], Float[Tensor, "*b q k"]]:
        length = memory.lengths()
        if isinstance(length, Tensor):
            length = length[..., None, None]
        slot = torch.arange(memory.slots, device=query.device)
        distance = slot - self.center(query) * length
        gain = torch.exp(-distance.square() / (2 * self.sigma**2))
        return distance.abs() <= self.radius, gain
