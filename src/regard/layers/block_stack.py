"""Stacks of blocks whose activations can be computed again instead of kept."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class BlockStack(nn.Module):
    """A module that runs blocks one after the other.

    With `recompute_activations`, a training keeps only the inputs of each block. The backward pass
    computes the rest again, with the same dropout: about a third more time, and memory for the
    activations of one block (Chen et al. 2016, "Training deep nets with sublinear memory cost").
    """

    def __init__(self) -> None:
        super().__init__()
        self.recompute_activations = False

    def gathered_modules(self) -> Iterator[nn.Module]:
        """Yield the modules whose weights a sharded training gathers only while they run.

        Nothing may read their weights outside of their `forward`. Inner modules come before outer
        ones.
        """
        for part in self.children():
            if isinstance(part, nn.ModuleList):
                yield from part

    def block_function(self, block: nn.Module) -> Callable[..., Any]:
        """Return the block, or in training a function that keeps only its inputs."""
        if self.recompute_activations and self.training and torch.is_grad_enabled():
            return partial(checkpoint, block, use_reentrant=False)
        return block
