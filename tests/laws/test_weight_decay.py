"""Weight decay leaves out biases, norms, embeddings and positions, in every model."""

from types import SimpleNamespace

import pytest
from torch import nn

from regard.data.build import build_corpus
from regard.layers.lora import add_lora
from regard.tasks.base import ParameterGroup
from regard.tasks.building import batch_options, build_untrained_run
from regard.tasks.pretrained import layer_decay_groups
from regard.training.build import build_optimizer, build_training, with_rate_multipliers
from regard.training.weight_decay import parameter_kinds, without_decay

ADAMW = {"optimizer": {"kind": "adamw", "weight_decay": 0.3}, "learning_rate": 1e-3}
NO_DECAY = ("biases", "norms", "embeddings", "positions")


def test_each_parameter_is_in_one_group(tiny, tiny_settings, unchecked):
    settings = tiny_settings(tiny, ADAMW)
    run = build_untrained_run(settings, build_corpus(settings.data))
    names = {p: name for name, p in run.model.named_parameters()}
    part = next(iter(names.values())).split(".")[0]
    groups = with_rate_multipliers(run.model, run.task.parameter_groups(), {part: 0.5})
    optimizer = build_optimizer(settings.train, without_decay(run.model, groups, NO_DECAY))
    grouped = [p for group in optimizer.param_groups for p in group["params"]]
    assert len(grouped) == len(set(grouped))
    assert set(grouped) == {p for p in run.model.parameters() if p.requires_grad}
    for group in optimizer.param_groups:
        assert group["weight_decay"] in (0.0, 0.3)
        for parameter in group["params"]:
            name = names[parameter]
            assert group["lr"] == pytest.approx(5e-4 if name.split(".")[0] == part else 1e-3)
            is_vector = parameter.ndim < 2 or name.endswith(("bias", "norm.weight", "gain"))
            if is_vector:
                assert group["weight_decay"] == 0.0, name
    decayed = {p for g in optimizer.param_groups if g["weight_decay"] for p in g["params"]}
    for module in run.model.modules():
        if isinstance(module, nn.Linear) and module.weight.requires_grad:
            assert module.weight in decayed
        if type(module).__name__ in ("Embedding", "LearnedPositions"):
            assert module.weight not in decayed


CLASSIFIER = SimpleNamespace(task="classify", kind="bert", example="classify")


def test_a_training_excludes_them_by_default(tiny_settings):
    settings = tiny_settings(CLASSIFIER, ADAMW)
    corpus = build_corpus(settings.data)
    task = build_untrained_run(settings, corpus).task
    training = build_training(settings, task, task.batches(corpus, batch_options(settings)))
    decay = {p: g["weight_decay"] for g in training.optimizer.param_groups for p in g["params"]}
    expected = {p: 0.0 if kind in NO_DECAY else 0.3 for p, kind in parameter_kinds(task.model)}
    assert decay == expected
    assert set(decay.values()) == {0.0, 0.3}


@pytest.fixture
def classifier(tiny_settings):
    settings = tiny_settings(CLASSIFIER, ADAMW)
    return build_untrained_run(settings, build_corpus(settings.data)).model


def test_an_empty_list_decays_all(classifier):
    groups = without_decay(classifier, [ParameterGroup(list(classifier.parameters()))], [])
    assert [group.decays for group in groups] == [True]


def test_layers_keep_their_rates(classifier):
    by_layer = layer_decay_groups(classifier, classifier.encoder, 0.5)
    groups = without_decay(classifier, by_layer, NO_DECAY)
    rates = [(rate, True) for rate in (1.0, 0.5, 0.25)] + [(r, False) for r in (1.0, 0.5, 0.25)]
    # embeddings and their norm are all that is below the layers, and the pooler is a matrix
    assert sorted((g.rate, g.decays) for g in groups) == sorted(rates)


def test_low_rank_matrices_decay(classifier):
    add_lora(classifier.encoder, 2)
    kinds = {kind for p, kind in parameter_kinds(classifier.encoder) if p.requires_grad}
    assert kinds == {"weights"}
