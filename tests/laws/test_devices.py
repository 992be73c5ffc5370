"""Every task and every model compute on another device what they compute on the CPU.

No GPU is needed: `support/simulated_device.py` has a device with the rules of one.
"""

from typing import Any

import numpy as np
import pytest
import torch
from support.examples import records_of
from support.simulated_device import NAME, simulated_device
from torch import Tensor

from regard.layers import precision
from regard.run import Run
from regard.tasks.building import batch_options
from regard.tasks.protocols import TextEmbedder
from regard.training.prepare import create_run
from regard.view.terminal import Surface

DEVICES = pytest.mark.parametrize(
    "float64",
    [pytest.param(True, id="cuda", marks=pytest.mark.full), pytest.param(False, id="mps")],
)


def loss_and_gradients(run: Run, batch: Any) -> tuple[float, dict[str, Tensor]]:
    """Return the loss of a batch without dropout, and its gradient by parameter, on the CPU."""
    run.model.eval().zero_grad()
    torch.manual_seed(0)
    loss = run.task.loss(run.task.to_device(batch), 0)
    loss.total.backward()
    parameters = run.model.named_parameters()
    grads = {name: p.grad.cpu().clone() for name, p in parameters if p.grad is not None}
    return loss.total.item() / loss.count, grads


def test_loss_and_gradients(tiny_part, tiny_settings, unchecked):
    run, corpus = create_run(tiny_settings(tiny_part, {}))
    batch = next(run.task.batches(corpus, batch_options(run.settings)))
    expected_loss, expected = loss_and_gradients(run, batch)
    assert expected
    with simulated_device() as device:
        run.model.to(device)
        loss, grads = loss_and_gradients(run, batch)
        assert {parameter.device for parameter in run.model.parameters()} == {device}
    assert loss == pytest.approx(expected_loss, rel=1e-4)
    assert grads.keys() == expected.keys()
    for name, grad in grads.items():
        torch.testing.assert_close(grad, expected[name], rtol=1e-3, atol=1e-4, msg=name)


def answers(run: Run) -> dict[str, Any]:
    """Return what a run says of some records: predictions, scores, attention and text."""
    task, records = run.task, records_of(run)
    results: dict[str, Any] = {
        "predictions": [prediction.as_dict() for prediction in run.predict(records)],
        "scores": run.score("train" if run.settings.task == "pretrain" else records),
        "details": task.details(records[0]),
    }
    if task.has_attention():
        results["attention"] = [layer.weights for layer in run.attention(records[0]).layers]
        results["output"] = [layer.weights for layer in task.output_map(records[0]).layers]
        task.render(records[0], Surface(80, "ascii"))
    if isinstance(task, TextEmbedder) and run.settings.model.kind != "bidaf":
        results["vectors"] = run.embed(["ann saw a cat", "the dog"])
    return results


def assert_close(actual: Any, expected: Any) -> None:
    """Compare plain data, whose numbers may differ in their last digits."""
    if isinstance(expected, dict):
        assert actual.keys() == expected.keys()
        for key, value in expected.items():
            assert_close(actual[key], value)
    elif isinstance(expected, list | tuple):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            assert_close(one, other)
    elif isinstance(expected, float | np.ndarray):
        np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-3)
    else:
        assert actual == expected


@DEVICES
def test_answers(tiny_part, float64, tiny_settings, unchecked, monkeypatch):
    if not float64:
        monkeypatch.setattr(precision, "WITHOUT_FLOAT64", (NAME,))
    run = create_run(tiny_settings(tiny_part, {}))[0]
    run.model.eval()
    expected = answers(run)
    with simulated_device(float64=float64) as device:
        run.model.to(device)
        assert_close(answers(run), expected)
