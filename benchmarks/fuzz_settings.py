"""Change settings at random, and train one step: each training runs, or is refused in one line.

    python benchmarks/fuzz.py --files 0 --folders 0 --settings 1000 [--seed 0]

Every task with every kind of model starts from tiny data and a tiny model. One or two settings
get another value: a border of their type, a wrong type, an empty text, or another choice. What is
not refused makes one training step, a validation and two predictions. Anything but an `InputError`
or an `OSError` is a failure.
"""

import importlib.util
import random
import resource
import signal
import sys
import tempfile
import traceback
import types
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel

from regard.cli.app import is_out_of_memory
from regard.config.settings import Settings
from regard.errors import InputError
from regard.tasks.load import resolve_settings
from regard.training.fit import fit_settings
from regard.training.prepare import create_run, prepare_training, read_dev_records

MAX_SECONDS, MAX_BYTES = 20, 6 << 30
INTEGERS = (0, 1, 2, 3, 5, 7, 64, 1000, -1, 10**7, 10**12, 10**30)
FLOATS = (0.0, 1.0, 0.5, 0.999, 2.0, -0.5, 1e-30, 1e30)
TEXTS = ("", " ", "x", "\x00", "../..", "A(4, 4)")
ANYTHING = (None, "", 0, -1, 0.5, True, [], [0], {}, {"a": 1})
# Where another value only means other data, a long run, or files that are not there
UNTOUCHED = {"task", "train.steps", "train.epochs", "data.train", "data.dev", "data.test"}


class SettingsTrial(NamedTuple):
    """A changed setup, and what became of it: trained, refused, slow or a failure."""

    name: str
    changes: str
    outcome: str


class TooSlowError(Exception):
    """A trial takes longer than it may."""


def leaves(config: BaseModel, prefix: str = "") -> Iterator[tuple[str, Any, object]]:
    """Yield path, annotation and value of each setting that is no table."""
    for name, field in type(config).model_fields.items():
        value, path = getattr(config, name), f"{prefix}{name}"
        if isinstance(value, BaseModel):
            yield from leaves(value, f"{path}.")
        elif path not in UNTOUCHED:
            yield path, field.annotation, value


def candidates(annotation: Any, value: object) -> list[object]:
    """Return values near the borders of a type."""
    origin = get_origin(annotation)
    if origin is Literal:
        return [*get_args(annotation), ""]
    if origin in (Union, types.UnionType):
        return [item for part in get_args(annotation) for item in candidates(part, value)]
    if hasattr(annotation, "__metadata__"):
        return candidates(get_args(annotation)[0], value)
    if annotation is types.NoneType:
        return [None]
    if annotation is bool:
        return [True, False]
    if annotation is int:
        return list(INTEGERS)
    if annotation is float:
        return list(FLOATS)
    if annotation is str:
        return list(TEXTS)
    if origin is tuple:
        parts = [part for part in get_args(annotation) if part is not Ellipsis]
        items = [item for part in parts for item in candidates(part, value)]
        given = list(value) if isinstance(value, tuple) else []
        return [[], given[:1], given * 2, *([item] for item in items), *([i, i] for i in items)]
    return list(ANYTHING)


def changed_values(settings: Settings, chance: random.Random) -> tuple[dict[str, Any], str]:
    """Return the settings as plain tables with one or two other values, and these values."""
    values: dict[str, Any] = settings.model_dump()
    options, texts = list(leaves(settings)), list[str]()
    for path, annotation, value in chance.sample(options, chance.choice((1, 1, 2))):
        choices = candidates(annotation, value) if chance.random() < 0.9 else list(ANYTHING)
        new_value = chance.choice(choices)
        *tables, name = path.split(".")
        table = values
        for key in tables:
            table = table[key]
        table[name] = new_value
        if path == "train.examples_per_batch" and new_value is not None:
            values["train"]["tokens_per_batch"] = None
        if path == "train.tokens_per_batch" and new_value is not None:
            values["train"]["examples_per_batch"] = None
        texts.append(f"{path}={str(new_value)[:40]!r}")
    return values, ", ".join(texts)


def train_one_step(values: dict[str, Any]) -> None:
    """Build a training, make a step and a validation, and predict two records."""
    run, corpus = create_run(resolve_settings(values))
    dev_records = read_dev_records(run.task, corpus) or list(islice(corpus.read("train"), 4))
    training = prepare_training(run, corpus)
    training.step()
    run.task.negative_log_likelihood(dev_records[:4])
    if run.settings.train.metric != "loss":
        run.task.validation_metric(run.settings.train.metric, dev_records[:4])
    run.task.predict(dev_records[:2])


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Stop the block after some seconds."""

    def stop(*_: object) -> None:
        raise TooSlowError

    previous = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def try_settings(
    setups: dict[str, Settings], count: int, seed: int, seconds: int = MAX_SECONDS
) -> Iterator[SettingsTrial]:
    """Yield what becomes of `count` changed setups, in turn."""
    chance, names = random.Random(seed), sorted(setups)
    for number in range(count):
        name = names[number % len(names)]
        values, changes = changed_values(setups[name], chance)
        try:
            with time_limit(seconds):
                train_one_step(values)
            outcome = "trained"
        except (InputError, OSError) as error:
            outcome = "refused" if "\n" not in str(error) else f"several lines: {error!r}"
        except TooSlowError:
            outcome = "slow"
        except Exception as error:
            if is_out_of_memory(error):  # the command line shows one line for it
                yield SettingsTrial(name, changes, "refused")
                continue
            frame = traceback.extract_tb(error.__traceback__)[-1]
            location = f"{Path(frame.filename).name}:{frame.lineno}"
            outcome = f"{type(error).__name__}: {str(error)[:120]!r} ({location})"
        yield SettingsTrial(name, changes, outcome)


def tiny_setups(folder: Path) -> dict[str, Settings]:
    """Return the tiny settings of tests/laws for every task with every kind of model."""
    tests = Path(__file__).parents[1] / "tests"
    path = tests / "laws" / "conftest.py"
    sys.path.insert(0, str(tests))  # for tests/support
    spec = importlib.util.spec_from_file_location("laws", path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    laws = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(laws)
    setups: dict[str, Settings] = {}
    for tiny in laws.tiny_runs():
        data, _, settings = laws.examples()[tiny.example]
        model = {"kind": tiny.kind, **laws.MODELS[tiny.kind]}
        if tiny.kind == "elmo":
            settings = {**settings, "text": {"kind": "words"}}
        train = {"examples_per_batch": 4, **settings.get("train", {})}
        values = fit_settings(
            tiny.task, data, model, 2, folder / tiny.example, {**settings, "train": train}
        )
        setups[f"{tiny.example} {tiny.kind}"] = resolve_settings(values)
    return setups


def report_settings(count: int, seed: int) -> bool:
    """Print what became of changed settings, and return whether nothing has failed."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as work:
        for trial in try_settings(tiny_setups(Path(work)), count, seed):
            is_expected = trial.outcome in ("trained", "refused", "slow")
            outcomes[trial.outcome if is_expected else "failed"] += 1
            if trial.outcome not in ("trained", "refused"):
                print(f"{trial.name}: {trial.changes}: {trial.outcome}", flush=True)
    parts = ", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items()))
    print(f"settings: {parts}")
    return not outcomes["failed"]
