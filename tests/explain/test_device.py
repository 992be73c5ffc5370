"""Explanations of a run on another device are those of a run on the CPU."""

from typing import Any

import numpy as np
import pytest
from support.simulated_device import simulated_device

from regard.explain.counterfactual import render_counterfactual
from regard.explain.faithfulness import faithfulness
from regard.explain.gradients import gradient_attention_map
from regard.explain.heads import measure_heads
from regard.run import Run
from regard.tasks.load import resolve_settings
from regard.training.prepare import create_run

SETTINGS: dict[str, Any] = {
    "task": "translate",
    "data": {"kind": "reorder", "size": 20, "held_out": 4, "vocabulary_size": 6},
    "text": {"kind": "words"},
    "model": {"kind": "transformer", "dim": 8, "heads": 2, "layers": 1, "hidden_dim": 8},
    "decode": {"kind": "greedy", "max_length": 6},
}


def explanations(run: Run) -> tuple[list[float], list[str]]:
    """Return the numbers and the texts of all explanations."""
    records = list(run.corpus().read("dev"))
    text = records[0]["source"]
    report = faithfulness(run, records[0])
    heads = measure_heads(run, records)
    layers = gradient_attention_map(run, text).layers
    aligner = run.task.aligner()
    assert aligner is not None
    links = aligner.links([(text, records[0]["target"])], [aligner.default_selection()])
    numbers = [head.loss_increase for head in heads]
    numbers += [value for value in report._asdict().values() if isinstance(value, float)]
    numbers += [float(number) for layer in layers for number in np.ravel(layer.weights)]
    word = text.split()[0]
    output = run(text).text.split()[0]
    texts = [render_counterfactual(run, text, ["L1.H1"], []), str(sorted(map(str, links)))]
    return numbers, [*texts, render_counterfactual(run, text, [], [f"{output}->{word}"])]


def test_explanations(unchecked):
    run, _ = create_run(resolve_settings(SETTINGS))
    numbers, texts = explanations(run)
    assert len(numbers) > 20
    with simulated_device() as device:
        run.model.to(device)
        found_numbers, found_texts = explanations(run)
    assert found_numbers == pytest.approx(numbers, rel=1e-3, abs=1e-4)
    assert found_texts == texts
