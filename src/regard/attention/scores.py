"""Scores: energy = score(query, score.prepare(states)), how well each query matches each key.

`prepare` runs once per memory, not once per query.

b: any leading axes (batch, heads)   q: queries   k: memory slots   d*: widths

With `heads`, a score has separate parameters for each head (axis -3); else heads share them.
"""

import math
from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.additive import tanh_energy
from regard.attention.matmul import matmul_shared_heads
from regard.attention.validation import check_positive, check_width
from regard.errors import InputError
from regard.kernels.linear import Linear


class Score(nn.Module, ABC):
    """e = score(q, k): the energy of each slot for each query; a subclass is one equation.

    `prepare` projects the states of a memory once. `forward` runs for every query.

    >>> import torch
    >>> class NegativeDistance(Score):
    ...     def forward(self, query, keys):
    ...         return -torch.cdist(query, keys)
    >>> NegativeDistance()(torch.zeros(1, 2), torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[-5., -0.]])
    """

    query_dim: int | None = None  # width of a query; None: the width of the keys
    memory_dim: int | None = None  # width of a remembered state; None: any width

    def prepare(self, states: Float[Tensor, "*b k ds"]) -> Float[Tensor, "*b k dk"]:
        return states

    @abstractmethod
    def forward(
        self, query: Float[Tensor, "*b q dq"], keys: Float[Tensor, "*#b k dk"]
    ) -> Float[Tensor, "*b q k"]: ...

    def check(self, query: Tensor, keys: Tensor) -> None:
        check_width("query", query, self.query_dim or keys.shape[-1])


class Dot(Score):
    """e = q . k  (Luong et al. 2015, sec. 3.1).

    A subclass may transform keys (`prepare`) and queries (`prepare_query`). All subclasses run on
    the fused kernel.

    >>> import torch
    >>> Dot()(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0], [1.0, 0.0]]))
    tensor([[11.,  1.]])
    """

    is_scaled = False

    def scale(self, keys: Tensor) -> float:
        return 1 / math.sqrt(keys.shape[-1]) if self.is_scaled else 1.0

    def prepare_query(self, query: Float[Tensor, "*b q dq"]) -> Float[Tensor, "*b q dk"]:
        return query

    def forward(
        self, query: Float[Tensor, "*b q dq"], keys: Float[Tensor, "*#b k dk"]
    ) -> Float[Tensor, "*b q k"]:
        return matmul_shared_heads(self.prepare_query(query) * self.scale(keys), keys.mT)


class ScaledDot(Dot):
    """e = q . k / sqrt(d)  (Vaswani et al. 2017, eq. 1).

    >>> import torch
    >>> ScaledDot()(torch.ones(1, 4), torch.ones(1, 4))
    tensor([[2.]])
    """

    is_scaled = True


class General(Dot):
    """e = q . W h  (Luong et al. 2015, sec. 3.1, "general").

    >>> import torch
    >>> score = General(query_dim=2, memory_dim=3)
    >>> score(torch.randn(1, 2), score.prepare(torch.randn(5, 3))).shape
    torch.Size([1, 5])
    """

    def __init__(self, query_dim: int, memory_dim: int, heads: int | None = None):
        super().__init__()
        self.query_dim, self.memory_dim = query_dim, memory_dim
        self.of_key = build_linear(memory_dim, query_dim, bias=False, heads=heads)

    def prepare(self, states: Float[Tensor, "*b k ds"]) -> Float[Tensor, "*b k dk"]:
        return self.of_key(states)


class Trilinear(Dot):
    """e = w . [q; h; q * h]  (Seo et al. 2017, sec. 2.4), for a query as wide as the states.

    The sum of three products is one product: [q * w_qh; w_q . q; 1] . [h; 1; w_h . h]. The score
    starts near the dot product (w_qh = 1), so that similar vectors attract each other from the
    first step.

    >>> import torch
    >>> score = Trilinear(dim=3)
    >>> score(torch.randn(2, 3), score.prepare(torch.randn(5, 3))).shape
    torch.Size([2, 5])
    """

    def __init__(self, dim: int):
        super().__init__()
        check_positive("dim", dim)
        self.query_dim = self.memory_dim = dim
        bound = 1 / math.sqrt(3 * dim)
        self.weight = nn.Parameter(torch.empty(3, dim).uniform_(-bound, bound))  # of q, h, q * h
        nn.init.ones_(self.weight[2])

    def prepare(self, states: Float[Tensor, "*b k ds"]) -> Float[Tensor, "*b k dk"]:
        ones = states.new_ones(*states.shape[:-1], 1)
        return torch.cat([states, ones, states @ self.weight[1, :, None]], -1)

    def prepare_query(self, query: Float[Tensor, "*b q dq"]) -> Float[Tensor, "*b q dk"]:
        ones = query.new_ones(*query.shape[:-1], 1)
        return torch.cat([query * self.weight[2], query @ self.weight[0, :, None], ones], -1)


class Additive(Score):
    """e = v . tanh(W q + U h)  (Bahdanau et al. 2015, A.1.2).

    It is the same function as v . tanh(W [q; h]), Luong et al. 2015's "concat". Neither has a bias;
    See et al. 2017, eq. 1 has one. With `query_dim` None there is no W: the caller passes W q, for
    example if it can compute a part of W q in advance.

    >>> import torch
    >>> score = Additive(query_dim=2, memory_dim=3, hidden_dim=4)
    >>> score(torch.randn(1, 2), score.prepare(torch.randn(5, 3))).shape
    torch.Size([1, 5])
    """

    def __init__(
        self,
        query_dim: int | None,
        memory_dim: int,
        hidden_dim: int,
        bias: bool = False,
        heads: int | None = None,
    ):
        super().__init__()
        check_positive("hidden_dim", hidden_dim)
        self.query_dim, self.memory_dim = query_dim, memory_dim
        query_projection = (
            nn.Identity() if query_dim is None else build_linear(query_dim, hidden_dim, bias, heads)
        )
        self.of_query = query_projection
        self.of_key = build_linear(memory_dim, hidden_dim, bias=False, heads=heads)
        bound = 1 / math.sqrt(hidden_dim)
        shape = (hidden_dim,) if heads is None else (heads, hidden_dim)
        self.energy = nn.Parameter(torch.empty(shape).uniform_(-bound, bound))

    def prepare(self, states: Float[Tensor, "*b k ds"]) -> Float[Tensor, "*b k dk"]:
        return self.of_key(states)

    def forward(
        self, query: Float[Tensor, "*b q dq"], keys: Float[Tensor, "*#b k dk"]
    ) -> Float[Tensor, "*b q k"]:
        return tanh_energy(self.of_query(query), keys, self.energy)


class LocationScore(Score):
    """e_s = (W q)_s  (Luong et al. 2015, eq. 8): position only, for at most `slots` slots.

    >>> import torch
    >>> score = LocationScore(query_dim=2, slots=10)
    >>> score(torch.randn(1, 2), torch.randn(5, 3)).shape        # only the number of slots counts
    torch.Size([1, 5])
    """

    def __init__(self, query_dim: int, slots: int, heads: int | None = None):
        super().__init__()
        check_positive("slots", slots)
        self.query_dim, self.slots = query_dim, slots
        self.of_query = build_linear(query_dim, slots, bias=False, heads=heads)

    def forward(
        self, query: Float[Tensor, "*b q dq"], keys: Float[Tensor, "*#b k dk"]
    ) -> Float[Tensor, "*b q k"]:
        return self.of_query(query)[..., : keys.shape[-2]]

    def check(self, query: Tensor, keys: Tensor) -> None:
        super().check(query, keys)
        if keys.shape[-2] > self.slots:
            slots = keys.shape[-2]
            raise InputError(
                f"memory has {slots} slots, but the location score has at most {self.slots}"
            )


class Cosine(Dot):
    """e = beta cos(q, m)  (Graves et al. 2014, eq. 5-6); beta: softplus of the query's last column.

    So a query is one column wider than the memory. A zero vector has cosine 0 with any vector.

    >>> import torch
    >>> score, query = Cosine(), torch.tensor([[2.0, 0.0, 100.0]])  # beta = 100
    >>> score(query, score.prepare(torch.tensor([[5.0, 0.0], [0.0, 5.0]])))
    tensor([[100.,   0.]])
    """

    def __init__(self, eps: float = 1e-12):
        super().__init__()
        self.eps = eps

    def prepare(self, states: Float[Tensor, "*b k ds"]) -> Float[Tensor, "*b k dk"]:
        return self.unit(states)

    def prepare_query(self, query: Float[Tensor, "*b q dq"]) -> Float[Tensor, "*b q dk"]:
        return F.softplus(query[..., -1:]) * self.unit(query[..., :-1])

    def unit(self, x: Float[Tensor, "*b k d"]) -> Float[Tensor, "*b k d"]:
        # the function of F.normalize, in two thirds of its time
        return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp(min=self.eps)

    def check(self, query: Tensor, keys: Tensor) -> None:
        check_width("query", query, keys.shape[-1] + 1)


class Salience(Dot):
    """e = u . tanh(W h + b)  (Yang et al. 2016, eq. 5-6); `AttentionPooling` learns u.

    >>> import torch
    >>> score = Salience(memory_dim=3, hidden_dim=4)
    >>> score(torch.randn(1, 4), score.prepare(torch.randn(5, 3))).shape
    torch.Size([1, 5])
    """

    def __init__(self, memory_dim: int, hidden_dim: int, heads: int | None = None):
        super().__init__()
        self.query_dim, self.memory_dim = hidden_dim, memory_dim
        self.of_key = build_linear(memory_dim, hidden_dim, bias=True, heads=heads)

    def prepare(self, states: Float[Tensor, "*b k ds"]) -> Float[Tensor, "*b k dk"]:
        return self.of_key(states).tanh()


def build_linear(in_dim: int, out_dim: int, bias: bool, heads: int | None) -> nn.Module:
    return (
        Linear(in_dim, out_dim, bias)
        if heads is None
        else PerHeadLinear(heads, in_dim, out_dim, bias)
    )


class PerHeadLinear(nn.Module):
    """y = x W_head + b_head: a separate linear map for each head."""

    def __init__(self, heads: int, in_dim: int, out_dim: int, bias: bool):
        super().__init__()
        check_positive("heads", heads)
        bound = 1 / math.sqrt(in_dim)
        self.weight = nn.Parameter(torch.empty(heads, in_dim, out_dim).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(heads, 1, out_dim)) if bias else None

    def forward(self, x: Float[Tensor, "*b h t wide"]) -> Float[Tensor, "*b h t out"]:
        projected = x @ self.weight
        return projected if self.bias is None else projected + self.bias
