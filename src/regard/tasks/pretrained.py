"""Parts that a run takes from another run: settings, a vocabulary and the weights of an encoder."""

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, nn

from regard.config.encoder_head import StartConfig, TextVectorsConfig
from regard.config.settings import Settings
from regard.errors import InputError
from regard.models.protocols import Model
from regard.tasks.base import ParameterGroup, SettingsT
from regard.tasks.load import load_settings
from regard.tasks.run_folder import CONFIG_FILE, WEIGHTS_FILE, check_run_files, verify_run
from regard.tasks.run_weights import check_settings_limits, read_weights

TASKS_WITH_ENCODER = ("pretrain", "classify", "tag", "understand", "answer")
TOKENIZER_FILE = "text.json"
ENCODER_PREFIX = "encoder."


def pretrained_settings(folder: Path | str) -> Settings:
    """Return the settings of a run whose encoder reads text."""
    check_run_files(Path(folder), (CONFIG_FILE, WEIGHTS_FILE, TOKENIZER_FILE))
    verify_run(Path(folder))
    settings = load_settings(Path(folder) / CONFIG_FILE)
    check_settings_limits(settings, str(Path(folder) / CONFIG_FILE))
    if settings.task not in TASKS_WITH_ENCODER:
        raise InputError(f"{folder}: holds a run of task {settings.task!r}, which has no encoder")
    return settings


def start_config(settings: Settings) -> StartConfig:
    """Return the table [start], which the settings of every task with an encoder of text have."""
    start = getattr(settings, "start", None)
    if not isinstance(start, StartConfig):
        raise TypeError(f"{type(settings).__name__} has no [start]")
    return start


def with_pretrained_settings(settings: SettingsT) -> SettingsT:
    """Return settings with [model], [text] and [vectors] of the run that `start.run` names."""
    folder = start_config(settings).run
    if folder is None:
        return settings
    pretrained = pretrained_settings(folder)
    model = pretrained.model
    if model.kind == "bert":
        model = model.model_copy(update={"pretrain": "none"})
    update = {"model": model, "text": pretrained.text}
    if "vectors" not in settings.model_fields_set:
        update["vectors"] = getattr(pretrained, "vectors", TextVectorsConfig())
    return settings.model_copy(update=update)


def load_encoder_weights(encoder: Model, folder: Path) -> None:
    """Load the weights of the encoder of a run, without those of its head."""
    path = folder / WEIGHTS_FILE
    if pretrained_settings(folder).task == "pretrain":
        weights = read_weights(path)
    else:
        weights = read_encoder_weights(path)
    load_matching_weights(encoder, weights, path)


def read_encoder_weights(path: Path) -> dict[str, Tensor]:
    """Return the weights of the encoder in the file of a model with a head."""
    return {
        name.removeprefix(ENCODER_PREFIX): weight
        for name, weight in read_weights(path).items()
        if name.startswith(ENCODER_PREFIX)
    }


def load_matching_weights(encoder: Model, weights: Mapping[str, Tensor], path: Path) -> None:
    """Load weights of an encoder, which must all be present; they come from the file `path`."""
    encoder_state = encoder.state_dict()
    matched: dict[str, Tensor] = {}
    for name, value in encoder_state.items():
        # a matrix with LoRA keeps its weights under another name
        weight = weights.get(name.replace("parametrizations.weight.original", "weight"))
        if weight is not None and weight.shape == value.shape:
            matched[name] = weight
        elif "parametrizations.weight.0" not in name:
            raise InputError(f"{path}: has no {name} of shape {tuple(value.shape)}")
    encoder.load_state_dict({**encoder_state, **matched})


def layer_decay_groups(model: Model, encoder: Model, layer_decay: float) -> list[ParameterGroup]:
    """Return the trained parameters by layer: the head at full rate, each layer below slower.

    The rate of a layer is `layer_decay` times that of the layer above; embeddings are the lowest.
    """
    layers = getattr(getattr(encoder, "encoder", None), "layers", None)
    if layers is None:
        kind = type(encoder).__name__
        raise InputError(f"start.layer_decay is for a transformer's layers: {kind} has none")
    depth = {p: len(layers) - i for i, layer in enumerate(layers) for p in layer.parameters()}
    encoder_parameters = set(encoder.parameters())
    parameters_by_depth: dict[int, list[nn.Parameter]] = {}
    for parameter in model.parameters():
        if parameter.requires_grad:
            in_encoder = parameter in encoder_parameters
            distance = depth.get(parameter, len(layers) + 1) if in_encoder else 0
            parameters_by_depth.setdefault(distance, []).append(parameter)
    return [
        ParameterGroup(parameters, layer_decay**distance)
        for distance, parameters in sorted(parameters_by_depth.items())
    ]
