"""The cost of a step can be counted for every kind of model."""

from regard.training.step_probe import measure_step_cost


def test_every_step_can_be_counted(tiny_model, tiny_settings, unchecked):
    cost = measure_step_cost(tiny_settings(tiny_model, {"optimizer": {"kind": "sgd"}}))
    matrices = cost.parameters / 4  # some models read only a few rows of their largest table
    assert cost.weights >= 4 * cost.parameters
    assert cost.optimizer == 0
    assert cost.full.flops > 2 * matrices
    assert cost.full.activations > 0
    assert cost.full.peak >= cost.weights
    assert cost.full.size >= cost.small.size
    assert cost.steps == 2
