"""Record the attention weights of a model while it runs, or edit them."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace as replace_fields
from difflib import get_close_matches
from threading import get_ident
from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.core import Attention, AttentionHook
from regard.errors import InputError

Edit = Callable[[Tensor], Tensor]  # weights [*b q k] -> weights of the same shape


@runtime_checkable
class ModuleTree(Protocol):
    """An `nn.Module`, or anything else that names its submodules."""

    def modules(self) -> Iterator[nn.Module]: ...
    def named_modules(self) -> Iterator[tuple[str, nn.Module]]: ...


class AttentionWeights(dict[str, list[Tensor]]):
    """Weights by the name of an attention; one tensor [batch, (heads,) queries, slots] per call."""

    def joined(self) -> dict[str, Tensor]:
        """Join the calls of each attention, such as the steps of a decoder, along the queries."""
        return {name: join_calls(calls) for name, calls in self.items() if calls}


@contextmanager
def observe(
    model: ModuleTree, names: Iterable[str] | None = None, *, detach: bool = True
) -> Generator[AttentionWeights]:
    """Record the weights of every attention, or of those in `names`, inside a `with` block.

    Outputs are bit-identical with and without. The weights are recorded after edits and before
    dropout, and moved to the CPU. With `detach=False` they keep their device and their gradient,
    for a loss on the weights. Only calls in this thread are recorded. torch compiles a compiled
    model once more.

    >>> import regard
    >>> run = regard.load("runs/numbers")
    >>> with observe(run.model) as weights:
    ...     prediction = run("one two")
    >>> list(weights)
    ['attention']
    """
    attentions = named_attentions(model)
    if names is not None:
        attentions = {name: find_attention(attentions, name, "names") for name in names}
    recorded = AttentionWeights({name: [] for name in attentions})
    outer = {name: attention.hook for name, attention in attentions.items()}
    for name, attention in attentions.items():
        edit = None if (hook := outer[name]) is None else hook.edit
        attention.hooks[get_ident()] = AttentionHook(recorded[name], detach, edit)
    try:
        yield recorded
    finally:
        for name, attention in attentions.items():
            restore_hook(attention, hook := outer[name])
            if hook is not None:  # an enclosing `observe` records the same weights
                for weights in recorded[name]:
                    hook.record(weights)


@contextmanager
def intervene(model: ModuleTree, edits: Mapping[str, Edit]) -> Generator[None]:
    """Edit the weights of the named attentions inside a `with` block, in this thread only.

    >>> import regard
    >>> from regard.attention import zero
    >>> run = regard.load("runs/numbers")
    >>> with intervene(run.model, {"attention": zero()}):
    ...     prediction = run("one two")
    """
    attentions = named_attentions(model)
    attentions = {name: find_attention(attentions, name, "edits") for name in edits}
    outer = {name: attention.hook for name, attention in attentions.items()}
    for name, edit in edits.items():
        hook = outer[name] or AttentionHook()
        attentions[name].hooks[get_ident()] = replace_fields(hook, edit=edit)
    try:
        yield
    finally:
        for name, hook in outer.items():
            restore_hook(attentions[name], hook)


def is_observed(model: ModuleTree) -> bool:
    """Return whether this thread observes or edits an attention of the model."""
    return any(isinstance(m, Attention) and m.hook is not None for m in model.modules())


def restore_hook(attention: Attention, hook: AttentionHook | None) -> None:
    if hook is None:
        attention.hooks.pop(get_ident(), None)
    else:
        attention.hooks[get_ident()] = hook


def find_attention(attentions: Mapping[str, Attention], name: str, argument: str) -> Attention:
    if name not in attentions:
        suggestions = get_close_matches(name, attentions, 1)
        hint = (
            f"did you mean {suggestions[0]!r}?"
            if suggestions
            else f"choose from {', '.join(attentions)}"
        )
        raise InputError(f"{argument}: the model has no attention {name!r}; {hint}")
    return attentions[name]


def named_attentions(model: ModuleTree) -> dict[str, Attention]:
    """Return every attention by its path in the model, without a final `.attention`."""
    attentions: dict[str, Attention] = {}
    for path, module in model.named_modules():
        if isinstance(module, Attention):
            # torch.compile adds this name to the paths of a wrapped model
            parts = [part for part in path.split(".") if part != "_orig_mod"]
            if len(parts) > 1 and parts[-1] == "attention":
                parts.pop()
            attentions[".".join(parts) or "attention"] = module
    if not attentions:
        raise InputError(f"model {type(model).__name__} has no attention to observe")
    return attentions


def zero(heads: Sequence[int] | None = None) -> Edit:
    """Set the weights of these heads (default: all) to 0.

    >>> import torch
    >>> zero()(torch.tensor([[0.25, 0.75]]))
    tensor([[0., 0.]])
    """
    return scale(0.0, heads)


def scale(factor: float, heads: Sequence[int] | None = None) -> Edit:
    """Multiply the weights of these heads (default: all) by `factor`.

    >>> import torch
    >>> scale(0.5)(torch.tensor([[0.25, 0.75]]))
    tensor([[0.1250, 0.3750]])
    """
    return lambda weights: replace_heads(weights, weights * factor, heads)


def replace(replacement: Tensor, heads: Sequence[int] | None = None) -> Edit:
    """Replace the weights of these heads (default: all); `replacement` is broadcast to them.

    >>> import torch
    >>> replace(torch.tensor([[1.0, 0.0]]))(torch.tensor([[0.25, 0.75]]))
    tensor([[1., 0.]])
    """

    def edit(weights: Tensor) -> Tensor:
        try:
            return replace_heads(weights, replacement.to(weights).expand_as(weights), heads)
        except RuntimeError as error:
            new_shape, old_shape = tuple(replacement.shape), tuple(weights.shape)
            raise InputError(
                f"replacement of shape {new_shape} does not fit weights of shape {old_shape}"
            ) from error

    return edit


def replace_heads(weights: Tensor, replacement: Tensor, heads: Sequence[int] | None) -> Tensor:
    """Return `replacement` in these heads (axis -3) and `weights` in all others."""
    if heads is None:
        return replacement
    if weights.ndim < 4:
        raise InputError(f"heads {list(heads)} do not exist; this attention has no heads")
    count = weights.shape[-3]
    if not all(-count <= head < count for head in heads):
        raise InputError(f"heads {list(heads)} do not all exist; this attention has {count}")
    selected = {head % count for head in heads}
    is_selected = torch.tensor([n in selected for n in range(count)], device=weights.device)
    return torch.where(is_selected[:, None, None], replacement, weights)


def join_calls(calls: Sequence[Tensor]) -> Tensor:
    """Concatenate calls along the queries; shorter memories are padded with weight 0."""
    slots = max(call.shape[-1] for call in calls)
    return torch.cat([F.pad(call, (0, slots - call.shape[-1])) for call in calls], -2)
