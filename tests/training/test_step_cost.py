"""Counted costs of steps agree with hand counts."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from regard.tasks.load import resolve_settings
from regard.training.cluster_plan import GPU_COUNTS, Hardware, cluster_row, cluster_table
from regard.training.live_tensors import LiveTensors
from regard.training.step_cost import BatchCost, StepCost
from regard.training.step_probe import measure_step_cost

DIM, LENGTH, ROWS = 16, 8, 8
SMALL = BatchCost(10.0, 1.0, 10.0, 1e3, 2e3, 5e3)
FULL = BatchCost(80.0, 8.0, 80.0, 8e3, 16e3, 19e3)
COST = StepCost("tokens", 250, 1000, 1000, 2000, 500, SMALL, FULL, 1.0, 100, 1, False)


def language_cost(folder, **model) -> StepCost:
    path = folder / "text.txt"
    path.write_text("a b c d e f g h " * 100)
    settings = {
        "task": "language",
        "data": {"kind": "text", "train": str(path)},
        "text": {"kind": "words"},
        "model": {"kind": "gpt2", "dim": DIM, "heads": 2, "max_positions": LENGTH, **model},
        "train": {"steps": 7, "context_length": LENGTH, "examples_per_batch": ROWS},
    }
    return measure_step_cost(resolve_settings(settings))


def test_live_tensors_are_those_of_a_hand_count():
    model = nn.Linear(10, 10, bias=False)
    inputs = torch.rand(1000, 10)
    with LiveTensors(model.parameters()) as live:
        output = model(inputs)  # 40,000 bytes
        squared = output**2  # 40,000 more; the square keeps its input
        del output
        assert live.live == 80_000
        squared.sum().backward()
    assert live.activation_peak >= 80_000 + 40_000  # and the gradient of the square
    assert live.activation_peak < 80_000 + 4 * 40_000
    del squared
    assert live.live == live.gradients == 400
    live.hooks[0].remove()


def test_operations_and_bytes_of_gpt2_are_those_of_its_equations(tmp_path, unchecked):
    layers, vocabulary = 2, 4 + 8 + 1
    cost = language_cost(tmp_path, layers=layers, dropout=0.0)
    blocks = layers * (12 * DIM**2 + 13 * DIM)
    table = (cost.parameters - blocks - (LENGTH + 2) * DIM) // DIM
    assert abs(table - vocabulary) < 3
    tokens = ROWS * LENGTH
    products = 6 * tokens * (12 * layers * DIM**2 + table * DIM)
    attention = 14 * layers * ROWS * LENGTH**2 * DIM  # 2 products forward, 5 backward
    assert cost.full.flops == products + attention
    assert cost.full.units == tokens
    assert cost.total_units == 7 * tokens
    assert cost.optimizer == pytest.approx(8 * cost.parameters, rel=0.02)  # and numbers of steps


def test_layers_and_batches_continue_along_a_line(tmp_path, monkeypatch, unchecked):
    expected = language_cost(tmp_path, layers=5)
    monkeypatch.setattr("regard.training.step_probe.available_memory", lambda: 10_000_000_000)
    monkeypatch.setattr("regard.training.step_probe.BYTES_PER_PARAMETER", 10**9)
    monkeypatch.setattr("regard.training.step_probe.MAX_STEP_FLOPS", 0)
    cost = language_cost(tmp_path, layers=5)
    assert cost.is_continued
    for name in ("parameters", "weights", "gradients", "gathered"):
        assert getattr(cost, name) == getattr(expected, name)
    assert cost.full.flops == pytest.approx(expected.full.flops)
    assert cost.full.activations == pytest.approx(expected.full.activations, rel=0.1)


def test_a_cluster_by_hand():
    hardware = Hardware(memory=9e3, bandwidth=1e3, flops_per_second=500.0, price=3600.0)
    row = cluster_row(COST, hardware, 4)
    assert (row.sharding, row.memory) == ("DDP", 4000 + 2 * 2000)
    seconds_per_step = 2000 / 500 + 2 * 1000 * 3 / 4 / 1000
    assert row.units_per_second == pytest.approx(80 / seconds_per_step)
    assert row.days == pytest.approx(100 * seconds_per_step / 86400)
    assert row.cost == pytest.approx(4 * 100 * seconds_per_step)
    row = cluster_row(COST, replace(hardware, memory=7e3), 4)
    assert (row.sharding, row.memory) == ("FSDP", 4000 / 4 + 500 * 3 / 4 + 2 * 2000)
    assert row.units_per_second == pytest.approx(80 / (4 + 3 * 1000 * 3 / 4 / 1000))
    assert cluster_row(COST, replace(hardware, memory=5e3), 4).sharding == "none"
    rows = cluster_table(COST, hardware, 3)
    assert [row.gpus for row in rows] == sorted({3, *GPU_COUNTS})
    assert rows[-1].units_per_step == 1024 * 10  # one row each
