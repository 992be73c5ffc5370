"""Choose the engine that makes the predictions of a task."""

from importlib.util import find_spec
from pathlib import Path
from typing import Literal, get_args

import torch

from regard.engines.ctranslate2_cache import cached_model
from regard.engines.ctranslate2_search import CTranslate2Layout
from regard.errors import InputError
from regard.files import digest_file
from regard.kernels.few_rows import has_dot_instructions
from regard.tasks.base import AnyTask
from regard.tasks.text_engine import EngineUser

EngineName = Literal["auto", "built-in", "ctranslate2"]
MIN_AUTO_TEXTS = 2  # for a single text, CTranslate2 is not faster


def check_engine_name(name: str) -> EngineName:
    for known in get_args(EngineName):
        if name == known:
            return known
    raise InputError(
        f"engine: unknown name {name!r}; choose from {', '.join(get_args(EngineName))}"
    )


def use_engine(
    task: AnyTask, name: EngineName, weights_path: Path | None, *, identity: str, int8: bool
) -> None:
    """Let an engine make the predictions of a task.

    `identity` are the settings of the model. "auto" is CTranslate2 where it can be used and is
    faster; if it was asked for by name and cannot be used, an error says why.
    """
    if isinstance(task, EngineUser):
        task.set_engine(None)
    is_auto = name == "auto"
    if name == "built-in" or (is_auto and is_built_in_faster(int8=int8)):
        return
    try:
        layout = open_engine(
            task, weights_path, identity, int8=int8, min_texts=MIN_AUTO_TEXTS if is_auto else 1
        )
    except InputError as error:
        if is_auto:
            return
        raise InputError(
            f"engine: CTranslate2 cannot make these predictions; {error} (use --engine built-in)"
        ) from None
    if isinstance(task, EngineUser):
        task.set_engine(layout)


def is_built_in_faster(*, int8: bool) -> bool:
    """Return whether regard's own search is the faster one for any number of texts.

    docs/speed.md has the figures: with AVX-512 it is, apart from batches in 8 bits.
    """
    return has_dot_instructions() and not int8


def open_engine(
    task: AnyTask, weights_path: Path | None, identity: str, *, int8: bool, min_texts: int
) -> CTranslate2Layout:
    """Return the engine for a task, with its model in the cache; InputError says why not."""
    if not isinstance(task, EngineUser):
        raise InputError(f"the task {task.name} does not write text")
    if find_spec("ctranslate2") is None:
        raise InputError("it is not installed: pip install 'regard[ct2]'")
    if task.device.type != "cpu":
        raise InputError(f"it needs the CPU, and the run is on {task.device}")
    if weights_path is None:
        raise InputError("the run has no folder; save and load it")
    parts = task.engine_model()
    task.engine_search(task.decoding)
    model_class = "Translator" if len(parts.vocabularies) > 1 else "Generator"
    folder = cached_model(parts, (digest_file(weights_path).sha256, identity))
    threads = torch.get_num_threads()
    return CTranslate2Layout(model_class, folder, int8=int8, threads=threads, min_texts=min_texts)
