"""The weights of a run, checked against its settings before memory is allocated for a model.

A folder of unknown origin may ask for any model. So numbers in its settings are limited, the
model is first built without memory, and its shapes are compared with those of the file.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import safetensors
import safetensors.torch
import torch
from pydantic import BaseModel
from torch import Tensor
from torch.overrides import TorchFunctionMode

from regard.config.settings import Settings
from regard.errors import InputError
from regard.models.protocols import Model
from regard.parsing import one_line

UNLIMITED = "REGARD_UNLIMITED"  # the environment variable that lifts the limits
MAX_LAYERS, MAX_HEADS, MAX_WIDTH, MAX_LENGTH = 1_000, 1_024, 1 << 16, 1 << 20
MAX_BUFFER_BYTES = 1 << 30  # of tables that are computed, not read from the file
# By the last word of the name of a setting of a table
LIMITS = {
    "layers": MAX_LAYERS,
    "hops": MAX_LAYERS,
    "heads": MAX_HEADS,
    "dim": MAX_WIDTH,
}
FLOAT_TYPES = ("F64", "F32", "F16", "BF16")
STORED_TYPES = {
    torch.float64: FLOAT_TYPES,
    torch.float32: FLOAT_TYPES,
    torch.float16: FLOAT_TYPES,
    torch.bfloat16: FLOAT_TYPES,
    torch.int64: ("I64",),
    torch.int32: ("I32",),
    torch.uint8: ("U8",),
    torch.bool: ("BOOL",),
}
Shape = tuple[int, ...]


class SkipInitialization(TorchFunctionMode):
    """Skips random initialization of weights that are not used, or are read from a file.

    It takes longer than reading them. On the meta device, it would import 800 modules in vain.
    """

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        del types
        kwargs, name = kwargs or {}, getattr(func, "__name__", "")
        if name in ("normal_", "uniform_"):
            return args[0] if args else kwargs["tensor"]
        if name == "linalg_qr":  # of random numbers, for orthogonal weights
            return args[0], args[0]
        return func(*args, **kwargs)


def check_limits(values: Mapping[str, object], location: str) -> None:
    """Refuse numbers of layers, heads, widths and lengths that no known model has.

    REGARD_UNLIMITED=1 lifts the limits.
    """
    if os.environ.get(UNLIMITED):
        return
    for name, value in values.items():
        if isinstance(value, Mapping):
            check_limits(value, f"{location}: {name}")
        limit = LIMITS.get(name.rpartition("_")[2], MAX_LENGTH)
        numbers = value if isinstance(value, list | tuple) else (value,)
        for number in numbers:
            if type(number) is int and number > limit:
                raise InputError(
                    f"{location}: {name} = {number} is more than {limit:,}; if this is "
                    f"intended, set {UNLIMITED}=1"
                )


def check_settings_limits(settings: Settings, location: str) -> None:
    """Check the numbers of the tables that decide the size of a model."""
    for name in ("model", "head", "start", "image", "decode"):
        table = getattr(settings, name, None)
        if isinstance(table, BaseModel):
            check_limits(table.model_dump(), f"{location}: {name}")


def check_weights(build_model: Callable[[], Model], path: Path) -> None:
    """Compare names, shapes and types in the header of a file with those of the model.

    `build_model` is called on the meta device, so that no memory is allocated.
    """
    model = build_without_memory(build_model, str(path))
    check_buffers(model, path)
    expected = model.state_dict()
    stored = read_header(path)
    for name in [*expected, *stored]:
        if name not in stored or name not in expected:
            problem = "is missing" if name not in stored else "is unknown"
            raise InputError(f"{path}: does not fit the settings ({name} {problem})")
        shape, kind = stored[name]
        if shape != tuple(expected[name].shape):
            problem = f"{name} is {list(shape)}, not {list(expected[name].shape)}"
            raise InputError(f"{path}: does not fit the settings ({problem})")
        if kind not in STORED_TYPES.get(expected[name].dtype, (kind,)):
            raise InputError(f"{path}: {name} is stored as {kind}; give weights in float32")


def build_without_memory(build_model: Callable[[], Model], location: str) -> Model:
    """Return a model on the meta device: it has shapes, but no values."""
    try:
        with torch.random.fork_rng(devices=[]), torch.device("meta"), SkipInitialization():
            return build_model()
    except InputError:
        raise
    except (RuntimeError, TypeError, OverflowError) as error:  # sizes that torch cannot count
        raise InputError(f"{location}: no model has these settings ({one_line(error)})") from None


def check_buffers(model: Model, path: Path) -> None:
    """Refuse tables, such as those of positions, that need much memory without being in a file."""
    in_file = set(model.state_dict())
    size = sum(
        buffer.numel() * buffer.element_size()
        for name, buffer in model.named_buffers()
        if name not in in_file
    )
    if size > MAX_BUFFER_BYTES and not os.environ.get(UNLIMITED):
        raise InputError(
            f"{path}: tables of the model need {size >> 20:,} MB; if you trust it, set "
            f"{UNLIMITED}=1"
        )


def read_header(path: Path) -> dict[str, tuple[Shape, str]]:
    """Return shape and type of each tensor in a file; the tensors are not read."""
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            return {
                name: (tuple(part.get_shape()), str(part.get_dtype()))
                for name, part in slices.items()
            }
    except safetensors.SafetensorError as error:
        raise InputError(f"{path}: is damaged ({one_line(error)})") from None


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a file; refuse values that are not numbers."""
    try:
        weights = safetensors.torch.load_file(path)
    except safetensors.SafetensorError as error:
        raise InputError(f"{path}: is damaged ({one_line(error)})") from None
    check_numbers(weights, path)
    return weights


def check_numbers(weights: Mapping[str, Tensor], path: Path) -> None:
    """Refuse weights with NaN, of a training that diverged or a damaged file."""
    for name, weight in weights.items():
        if weight.is_floating_point() and bool(weight.isnan().any()):
            raise InputError(f"{path}: {name} contains NaN; the model cannot be used")
