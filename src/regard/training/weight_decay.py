"""Which parameters an optimizer with weight decay leaves out."""

from collections.abc import Collection, Iterator, Sequence

from torch import nn

from regard.layers.cells import Cell
from regard.layers.embedding import Embedding
from regard.layers.positions import LearnedPositions, RelativeBias
from regard.models.protocols import Model
from regard.tasks.base import ParameterGroup

NORMS = (nn.LayerNorm, nn.GroupNorm)


def without_decay(
    model: Model, groups: Sequence[ParameterGroup], no_decay: Collection[str]
) -> list[ParameterGroup]:
    """Split each group into the parameters that decay and those of the kinds `no_decay`."""
    excluded = {p for p, kind in parameter_kinds(model) if kind in no_decay}
    split_groups: list[ParameterGroup] = []
    for group in groups:
        for decays in (True, False):
            parameters = [p for p in group.parameters if (p not in excluded) == decays]
            if parameters:
                split_groups.append(ParameterGroup(parameters, group.rate, decays))
    return split_groups


def parameter_kinds(model: Model) -> Iterator[tuple[nn.Parameter, str]]:
    """Yield each parameter with its kind: biases, norms, embeddings, positions or weights.

    A class token and other vectors count as biases. A matrix that is an embedding and the output
    layer counts as an embedding.
    """
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            if isinstance(module, NORMS) or (isinstance(module, Cell) and name == "gain"):
                yield parameter, "norms"
            elif isinstance(module, LearnedPositions | RelativeBias):
                yield parameter, "positions"
            elif name == "bias" or parameter.ndim < 2:
                yield parameter, "biases"
            elif isinstance(module, Embedding | nn.Embedding):
                yield parameter, "embeddings"
            else:
                yield parameter, "weights"
