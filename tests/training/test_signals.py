"""Signals stop a training after its step, and the training that resumes it ends the same."""

import signal
import threading
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.cli.app import main
from regard.config.settings import Settings
from regard.tasks.load import resolve_settings
from regard.training.loop import Training
from regard.training.progress import train_with_progress
from regard.training.signals import STOP_SIGNALS, StopRequested, catch_stop_signals
from regard.training.trainer import Trainer
from regard.view.progress import progress_bar

TINY: dict[str, Any] = {
    "data": {"kind": "dates", "size": 40, "held_out": 4, "languages": ["en"]},
    "model": {"kind": "rnnsearch", "dim": 4, "hidden_dim": 4, "dropout": 0.1},
    "train": {"steps": 6, "examples_per_batch": 4, "validate_every": 2, "save_every": 5}
    | {"keep_finished": True},
    "decode": {"kind": "greedy", "max_length": 4},
}
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


@pytest.fixture(autouse=True)
def default_handlers():
    """Signals may be ignored where the tests run in the background."""
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    for number in STOP_SIGNALS:
        default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, default)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="module")
def settings() -> Settings:
    return resolve_settings(TINY)


@pytest.fixture(scope="module")
def expected(settings: Settings, tmp_path_factory) -> dict[str, bytes]:
    """Return the files of a training that was not stopped."""
    folder = tmp_path_factory.mktemp("whole")
    list(Trainer(settings, folder))
    return contents(folder)


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and "log." not in path.name)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def train(settings: Settings, folder: Path) -> signal.Signals | None:
    with progress_bar("training", None, enabled=False) as bar:
        return train_with_progress(Trainer(settings, folder, bar.log), bar)


def handlers() -> list[Any]:
    return [signal.getsignal(number) for number in STOP_SIGNALS]


@pytest.mark.parametrize("number", STOP_SIGNALS)
@pytest.mark.parametrize("step", [1, 3])  # after which no validation is due, and after which one is
def test_a_signal_during_a_step(monkeypatch, tmp_path, settings, expected, number, step):
    original, before = Training.step, handlers()

    def stopped(training: Training[Any]):
        if training.steps_done == step:
            signal.raise_signal(number)
        return original(training)

    monkeypatch.setattr(Training, "step", stopped)
    assert train(settings, tmp_path) is number
    monkeypatch.undo()
    assert handlers() == before
    assert (tmp_path / f"checkpoints/step-{step + 1:08}").is_dir()
    assert not (tmp_path / ".lock").exists()
    assert train(settings, tmp_path) is None
    assert {**contents(tmp_path), "loss.png": b""} == {**expected, "loss.png": b""}


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_signal_during_a_validation_ends_it_at_once(
    monkeypatch, tmp_path, settings, expected, number
):
    original = Trainer.compute_loss_and_metric

    def stopped(trainer: Trainer):
        if trainer.training.steps_done == 4:
            signal.raise_signal(number)
            pytest.fail("the validation went on")
        return original(trainer)

    monkeypatch.setattr(Trainer, "compute_loss_and_metric", stopped)
    assert train(settings, tmp_path) is number
    monkeypatch.undo()
    assert train(settings, tmp_path) is None
    assert {**contents(tmp_path), "loss.png": b""} == {**expected, "loss.png": b""}


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_exit_codes_of_the_command(monkeypatch, tmp_path, settings, capsys, number):
    from regard.config.dump import dumps

    (tmp_path / "tiny.toml").write_text(dumps(settings))
    original = Training.step

    def stopped(training: Training[Any]):
        signal.raise_signal(number)
        return original(training)

    monkeypatch.setattr(Training, "step", stopped)
    with pytest.raises(SystemExit) as end:
        main(["train", str(tmp_path / "tiny.toml"), "--run", str(tmp_path / "run")])
    assert end.value.code == CODES[number]
    assert "Stopped after step 1; give the same command to resume." in capsys.readouterr().out


def test_fit_passes_a_signal_on_after_saving(monkeypatch, tmp_path):
    received, original = [], Training.step
    signal.signal(signal.SIGTERM, lambda number, _: received.append(number))

    def stopped(training: Training[Any]):
        signal.raise_signal(signal.SIGTERM)
        assert received == []
        return original(training)

    monkeypatch.setattr(Training, "step", stopped)
    values = {name: TINY[name] for name in ("train", "decode")}
    regard.fit(
        "translate", TINY["data"], TINY["model"], folder=tmp_path, settings=values, progress=False
    )
    assert received == [signal.SIGTERM]
    assert (tmp_path / "checkpoints/step-00000001").is_dir()


def test_an_interrupted_step_is_not_saved(monkeypatch, tmp_path, settings, expected):
    """A program that handles Ctrl-C itself cannot save half a step."""
    trainer = Trainer(settings, tmp_path)
    steps = iter(trainer)
    next(steps)

    def interrupted(*_: object):
        raise KeyboardInterrupt

    monkeypatch.setattr(trainer.training.optimizer, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(steps)
    trainer.close()
    assert not (tmp_path / "checkpoints").exists()
    list(Trainer(settings, tmp_path))
    assert contents(tmp_path) == expected


def test_training_in_another_thread(tmp_path, settings, expected):
    before, results = handlers(), []
    thread = threading.Thread(target=lambda: results.append(train(settings, tmp_path)))
    thread.start()
    thread.join()
    assert results == [None]
    assert handlers() == before
    assert {**contents(tmp_path), "loss.png": b""} == {**expected, "loss.png": b""}


def test_ignored_signals_stay_ignored_and_a_second_ctrl_c_is_an_interrupt():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    before = handlers()
    with catch_stop_signals(lambda: False) as request:
        signal.raise_signal(signal.SIGHUP)
        assert not request.is_set()
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert request.signal is signal.SIGTERM
    with catch_stop_signals(lambda: True), pytest.raises(StopRequested):
        signal.raise_signal(signal.SIGTERM)
    assert handlers() == before
