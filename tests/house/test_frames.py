"""The way from a command to the attention kernel is short, and docs/architecture.md lists it."""

import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch.nn.functional as F

import regard
from regard.cli.app import main
from regard.kernels import steps
from regard.layers.few_row_steps import FewRowSteps

PACKAGE = Path(regard.__file__).parent
ARCHITECTURE = Path(__file__).parents[2] / "docs" / "architecture.md"
MAX_PREDICT_FRAMES, MAX_TRAIN_FRAMES = 12, 15
CONFIG = """
task = "translate"
data = { kind = "dates", size = 20, held_out = 5 }
model = { kind = "transformer", dim = 8, heads = 2, layers = 1 }
train = { steps = 1 }
decode = { kind = "beam", width = 2, max_length = 3 }
"""
Stack = tuple[str, ...]


def own_frames() -> Stack:
    """Return the functions of the package that are being called, as `package.module.function`."""
    return tuple(
        ".".join([*Path(frame.filename).relative_to(PACKAGE).with_suffix("").parts, frame.name])
        for frame in traceback.extract_stack()
        if Path(frame.filename).is_relative_to(PACKAGE)
    )


def run_command(*words: str) -> None:
    """Run `regard` in this process."""
    with pytest.raises(SystemExit) as end:
        main(list(words))
    assert not end.value.code


@pytest.fixture(scope="module")
def stacks(tmp_path_factory) -> dict[str, set[Stack]]:
    """Return all stacks above the kernels of attention, by command: torch's, and that of a step."""
    folder, recorded = tmp_path_factory.mktemp("frames"), set[Stack]()

    def recording(kernel: Callable[..., Any]) -> Callable[..., Any]:
        def record(*arguments, **options):
            recorded.add(own_frames())
            return kernel(*arguments, **options)

        return record

    (folder / "config.toml").write_text(CONFIG)
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in (
            (F, "scaled_dot_product_attention"),
            (steps, "can_attend"),
            (FewRowSteps, "step"),
        ):
            patch.setattr(owner, name, recording(getattr(owner, name)))
        run_command("train", str(folder / "config.toml"), "--run", str(folder / "run"))
        train = {stack for stack in recorded if "training.loop.backward" in stack}
        recorded.clear()
        run_command("predict", str(folder / "run"), "3 May 1999")
        return {"train": train, "predict": set(recorded)}


def test_prediction_is_short(stacks):
    frames = {frame for stack in stacks["predict"] for frame in stack}
    entries = {frame for frame in frames if frame.startswith("models.")}
    assert entries == {"models.transformer.remember", "models.transformer.step"}
    by_torch = "kernels.steps.attend_by_torch"  # without the kernels in C++
    lengths = {len([f for f in stack if f != by_torch]) for stack in stacks["predict"]}
    assert max(lengths) == MAX_PREDICT_FRAMES


def test_a_training_step_is_short(stacks):
    frames = {frame for stack in stacks["train"] for frame in stack}
    entries = {frame for frame in frames if frame.startswith("models.")}
    assert entries == {"models.transformer.remember", "models.transformer.teacher_forced"}
    assert max(len(stack) for stack in stacks["train"]) <= MAX_TRAIN_FRAMES


@pytest.mark.parametrize("command", ["predict", "train"])
def test_the_architecture_lists_every_frame(stacks, command):
    """Each module and each function of a stack stands in the walk of its section."""
    title = {"predict": "## The way of a prediction", "train": "## The way of a training step"}
    text = ARCHITECTURE.read_text().partition(title[command])[2].partition("\n## ")[0]
    words = set(re.findall(r"\w+", text))
    frames = {frame for stack in stacks[command] for frame in stack}
    missing = {frame for frame in frames if frame.rpartition(".")[2] not in words}
    assert missing == set()
