"""Train, run, explain and serve attention models.

>>> import regard
>>> run = regard.load("runs/demo")             # doctest: +SKIP
>>> run("Tuesday, May 3rd, 1994").text         # doctest: +SKIP
'1994-05-03'

Names are imported when they are first used: `import regard` loads neither torch nor numpy.
"""

import os

TYPE_CHECKING = False  # the name that type checkers know; importing typing would cost time

if TYPE_CHECKING:
    from regard.attention.core import Attention
    from regard.attention.multihead import MultiHead
    from regard.attention.observe import intervene, observe
    from regard.convert.run import export_run, import_run
    from regard.errors import InputError
    from regard.run import Run
    from regard.tasks.base import Prediction, Task
    from regard.tasks.engine_choice import EngineName
    from regard.tasks.load import load_settings, resolve_settings
    from regard.training.fit import fit
    from regard.training.trainer import Trainer
    from regard.view.attention_map import AttentionMap

__version__ = "0.1.0"

__all__ = [
    "Attention",
    "AttentionMap",
    "InputError",
    "MultiHead",
    "Prediction",
    "Run",
    "Task",
    "Trainer",
    "export_run",
    "fit",
    "import_run",
    "intervene",
    "load",
    "load_settings",
    "observe",
    "resolve_settings",
]

MODULES = {
    "Attention": "regard.attention.core",
    "AttentionMap": "regard.view.attention_map",
    "InputError": "regard.errors",
    "MultiHead": "regard.attention.multihead",
    "Prediction": "regard.tasks.base",
    "Run": "regard.run",
    "Task": "regard.tasks.base",
    "Trainer": "regard.training.trainer",
    "export_run": "regard.convert.run",
    "fit": "regard.training.fit",
    "import_run": "regard.convert.run",
    "intervene": "regard.attention.observe",
    "load_settings": "regard.tasks.load",
    "observe": "regard.attention.observe",
    "resolve_settings": "regard.tasks.load",
}


def load(
    folder: str | os.PathLike[str],
    *,
    verify: bool = True,
    replicas: int | None = None,
    engine: "EngineName" = "built-in",
    device: str = "auto",
) -> "Run":
    """Load the run in a folder, or one of its checkpoints (`RUN/checkpoints/step-N`).

    All files are compared with their checksums; `verify=False` compares the sizes only. `replicas`
    is the number of batches that are decoded at once (default: one for each thread of torch).
    `engine` is built-in, ctranslate2 or auto; see `Run.use_engine`. `device` is cpu, cuda, mps or
    auto; see `Run.use_device`.

    >>> import regard
    >>> regard.load("runs/numbers").settings.task
    'translate'
    """
    from regard.run import Run

    return Run.load(
        os.fspath(folder), verify=verify, replicas=replicas, engine=engine, device=device
    )


def __getattr__(name: str):
    """Import a public name when it is first used."""
    if name not in MODULES:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
