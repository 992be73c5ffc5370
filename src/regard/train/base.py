"""What a run takes over from another one: its encoder and its vocabulary."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import nn

from regard.config.load import load as load_settings
from regard.config.settings import Settings
from regard.train.run import CONFIG, WEIGHTS, check_files

WITH_ENCODER = ("pretrain", "classify", "tag", "understand", "answer")
INNER = "encoder."


def base_of(folder: Path | str) -> Settings:
    """The settings of a run whose encoder others can start from."""
    check_files(Path(folder), (CONFIG, WEIGHTS, "text.json"))
    base = load_settings(Path(folder) / CONFIG)
    if base.task not in WITH_ENCODER:
        raise ValueError(f"{folder}: holds a run of task {base.task!r}, which has no encoder")
    return base


def inherited(settings: Any) -> Any:
    """With the model and the vocabulary of the run that it starts from."""
    if settings.start.run is None:
        return settings
    base = base_of(settings.start.run)
    model = base.model
    if model.kind == "bert":
        model = model.model_copy(update={"pretrain": "none"})
    return settings.model_copy(update={"model": model, "text": base.text})


def encoder_weights(encoder: nn.Module, folder: Path) -> None:
    """The weights of the encoder of that run; its heads are left behind."""
    weights = safetensors.torch.load_file(folder / WEIGHTS)
    if base_of(folder).task != "pretrain":
        weights = {n[len(INNER) :]: w for n, w in weights.items() if n.startswith(INNER)}
    taken_over(encoder, weights, folder / WEIGHTS)


def taken_over(encoder: nn.Module, weights: Mapping[str, torch.Tensor], place: Path) -> None:
    """These weights for an encoder, which must have them all; `place` is where they are from."""
    own = encoder.state_dict()
    taken: dict[str, torch.Tensor] = {}
    for name, value in own.items():
        # what LoRA is added to keeps its weights under another name
        found = weights.get(name.replace("parametrizations.weight.original", "weight"))
        if found is not None and found.shape == value.shape:
            taken[name] = found
        elif "parametrizations.weight.0" not in name:
            raise ValueError(f"{place}: has no {name} of shape {tuple(value.shape)}")
    encoder.load_state_dict({**own, **taken})


def layered(model: Any, settings: Any) -> list[dict[str, Any]]:
    """What is trained, by layers from the top down, each slower than the one above.

    Nothing, if the settings do not say so.
    """
    decay, encoder = settings.start.layer_decay, model.encoder
    if decay == 1.0:
        return []
    layers = getattr(getattr(encoder, "encoder", None), "layers", None)
    if layers is None:
        kind = settings.model.kind
        raise ValueError(f"start.layer_decay is for a transformer's layers: {kind} has none")
    depth = {p: len(layers) - i for i, layer in enumerate(layers) for p in layer.parameters()}
    inside = set(encoder.parameters())
    found: dict[int, list[nn.Parameter]] = {}
    for parameter in model.parameters():
        if parameter.requires_grad:
            below = depth.get(parameter, len(layers) + 1) if parameter in inside else 0
            found.setdefault(below, []).append(parameter)
    return [{"params": found[n], "rate": decay**n} for n in sorted(found)]
