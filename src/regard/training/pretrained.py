"""What a run takes over from another one: its encoder and its vocabulary."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import nn

from regard.config.load import load as load_settings
from regard.config.settings import Settings
from regard.train.run import CONFIG_FILE, WEIGHTS_FILE, check_run_files

TASKS_WITH_ENCODER = ("pretrain", "classify", "tag", "understand", "answer")
ENCODER_PREFIX = "encoder."


def pretrained_settings(folder: Path | str) -> Settings:
    """The settings of a run whose encoder others can start from."""
    check_run_files(Path(folder), (CONFIG_FILE, WEIGHTS_FILE, "text.json"))
    base = load_settings(Path(folder) / CONFIG_FILE)
    if base.task not in TASKS_WITH_ENCODER:
        raise ValueError(f"{folder}: holds a run of task {base.task!r}, which has no encoder")
    return base


def with_pretrained_settings(settings: Any) -> Any:
    """With the model and the vocabulary of the run that it starts from."""
    if settings.start.run is None:
        return settings
    base = pretrained_settings(settings.start.run)
    model = base.model
    if model.kind == "bert":
        model = model.model_copy(update={"pretrain": "none"})
    return settings.model_copy(update={"model": model, "text": base.text})


def load_encoder_weights(encoder: nn.Module, folder: Path) -> None:
    """The weights of the encoder of that run; its heads are left behind."""
    weights = safetensors.torch.load_file(folder / WEIGHTS_FILE)
    if pretrained_settings(folder).task != "pretrain":
        weights = {
            n[len(ENCODER_PREFIX) :]: w for n, w in weights.items() if n.startswith(ENCODER_PREFIX)
        }
    load_matching_weights(encoder, weights, folder / WEIGHTS_FILE)


def load_matching_weights(
    encoder: nn.Module, weights: Mapping[str, torch.Tensor], weights_path: Path
) -> None:
    """These weights for an encoder, which must have them all; `place` is where they are from."""
    encoder_state = encoder.state_dict()
    matched: dict[str, torch.Tensor] = {}
    for name, value in encoder_state.items():
        # what LoRA is added to keeps its weights under another name
        weight = weights.get(name.replace("parametrizations.weight.original", "weight"))
        if weight is not None and weight.shape == value.shape:
            matched[name] = weight
        elif "parametrizations.weight.0" not in name:
            raise ValueError(f"{weights_path}: has no {name} of shape {tuple(value.shape)}")
    encoder.load_state_dict({**encoder_state, **matched})


def layer_decay_groups(model: Any, settings: Any) -> list[dict[str, Any]]:
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
    encoder_parameters = set(encoder.parameters())
    parameters_by_distance: dict[int, list[nn.Parameter]] = {}
    for parameter in model.parameters():
        if parameter.requires_grad:
            distance_from_top = (
                depth.get(parameter, len(layers) + 1) if parameter in encoder_parameters else 0
            )
            parameters_by_distance.setdefault(distance_from_top, []).append(parameter)
    return [
        {"params": parameters_by_distance[n], "rate": decay**n}
        for n in sorted(parameters_by_distance)
    ]
