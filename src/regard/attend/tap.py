"""Look at every attention of a model while it runs, or change it."""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attend.attention import Attention

Edit = Callable[[Tensor], Tensor]  # weights [*b q k] -> weights of the same shape


class Seen(dict[str, list[Tensor]]):
    """Weights by attention name, one tensor a call: [batch, (heads,) queries, slots]."""

    def whole(self) -> dict[str, Tensor]:
        """One tensor a name: the calls of a decoder, one a step, joined along the queries."""
        return {name: joined(calls) for name, calls in self.items() if calls}


@contextmanager
def observe(
    model: nn.Module, names: Iterable[str] | None = None, *, detach: bool = True
) -> Generator[Seen]:
    """`with observe(model) as seen: model(batch)` records the weights of every attention.

    Or only of those with these `names`. Outputs are bit-identical with and without. The weights are
    those read, before dropout; `detach=False` leaves them their gradient, for a loss on them. A
    `torch.compile`d model is compiled once more to be looked at.
    """
    attentions = named_attentions(model)
    if names is not None:
        attentions = {name: find(attentions, name, "names") for name in names}
    seen = Seen({name: [] for name in attentions})
    before = {name: (attention.tap, attention.detach) for name, attention in attentions.items()}
    for name, attention in attentions.items():
        attention.tap, attention.detach = seen[name], detach
    try:
        yield seen
    finally:
        for name, attention in attentions.items():
            attention.tap, attention.detach = before[name]
            for weights in seen[name]:
                attention.show(weights)


@contextmanager
def intervene(model: nn.Module, edits: Mapping[str, Edit]) -> Generator[None]:
    """`with intervene(model, {"layers.0.own": zero(heads=[3])}): model(batch)` edits weights."""
    attentions = named_attentions(model)
    attentions = {name: find(attentions, name, "edits") for name in edits}
    before = {name: attentions[name].edit for name in edits}
    for name, edit in edits.items():
        attentions[name].edit = edit
    try:
        yield
    finally:
        for name, edit in before.items():
            attentions[name].edit = edit


def find(attentions: Mapping[str, Attention], name: str, argument: str) -> Attention:
    if name not in attentions:
        near = get_close_matches(name, attentions, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(attentions)}"
        raise ValueError(f"{argument}: the model has no attention {name!r}; {hint}")
    return attentions[name]


def named_attentions(model: nn.Module) -> dict[str, Attention]:
    """Every attention by its path in the model, without the `.attention` by which heads hold it."""
    found: dict[str, Attention] = {}
    for path, module in model.named_modules():
        if isinstance(module, Attention):
            # torch.compile wraps a model under this name
            parts = [part for part in path.split(".") if part != "_orig_mod"]
            if len(parts) > 1 and parts[-1] == "attention":
                parts.pop()
            found[".".join(parts) or "attention"] = module
    if not found:
        raise ValueError(f"model {type(model).__name__} has no attention to look at")
    return found


def zero(heads: Sequence[int] | None = None) -> Edit:
    """Read nothing, in these heads (all, if none is named)."""
    return scale(0.0, heads)


def scale(factor: float, heads: Sequence[int] | None = None) -> Edit:
    """Read `factor` times as much, in these heads."""
    return lambda weights: in_heads(weights, weights * factor, heads)


def replace(by: Tensor, heads: Sequence[int] | None = None) -> Edit:
    """Read with these weights, in these heads; `by` is broadcast to the weights it stands for."""

    def edit(weights: Tensor) -> Tensor:
        try:
            return in_heads(weights, by.to(weights).expand_as(weights), heads)
        except RuntimeError as error:
            one, other = tuple(by.shape), tuple(weights.shape)
            raise ValueError(f"weights of shape {other} cannot be replaced by {one}") from error

    return edit


def in_heads(weights: Tensor, other: Tensor, heads: Sequence[int] | None) -> Tensor:
    """`other` in these heads (axis -3), `weights` in the rest."""
    if heads is None:
        return other
    if weights.ndim < 4:
        raise ValueError(f"heads {list(heads)} were named, but this attention has no heads")
    count = weights.shape[-3]
    if not all(-count <= head < count for head in heads):
        raise ValueError(f"heads {list(heads)} do not all exist: this attention has {count}")
    chosen = torch.zeros(count, dtype=torch.bool, device=weights.device)
    chosen[list(heads)] = True
    return torch.where(chosen[:, None, None], other, weights)


def joined(calls: Sequence[Tensor]) -> Tensor:
    """Calls one after another along the queries; a shorter memory is filled up with weight 0."""
    slots = max(call.shape[-1] for call in calls)
    return torch.cat([F.pad(call, (0, slots - call.shape[-1])) for call in calls], -2)
