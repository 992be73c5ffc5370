"""Predicted distances: visible and hidden pairs, features, the loss by hand, predictions."""

import json
import math

import numpy as np
import pytest
import torch

from regard.models.msa import Msa
from regard.tasks.fold.distance_examples import reproducible_draws
from regard.tasks.fold.distances import FEATURE_COUNT, DistanceTask
from regard.tasks.fold.model import RESIDUE_ID_COUNT, PairClassifier
from regard.view.terminal import Surface

SMALL = {"dim": 4, "pair_dim": 4, "heads": 1, "pair_heads": 2, "head_dim": 3, "layers": 2}
HEAD = {"bins": 8, "min_distance": 0.0, "max_distance": 16.0, "contact_distance": 8.0}


def build_task(**settings) -> DistanceTask:
    """Return a task whose weights are drawn from N(0, 0.16)."""
    model = PairClassifier(
        Msa(RESIDUE_ID_COUNT, FEATURE_COUNT, **{**SMALL, **settings}), HEAD["bins"]
    )
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.4)
    return DistanceTask(model.eval(), **HEAD, max_tokens=20)


@pytest.fixture(scope="module")
def task() -> DistanceTask:
    torch.manual_seed(0)
    return build_task()


def random_records(*sizes: int, visible_fraction: float = 0.5, seed: int = 0):
    """Yield a record of random points for each size."""
    rng = np.random.default_rng(seed)
    for size in sizes:
        points = (12 * rng.random((size, 3))).round(2).tolist()
        yield {"text": json.dumps({"points": points}), "visible_fraction": visible_fraction}


def test_visible_pairs_are_fixed_in_evaluation_and_random_in_training(task):
    examples = [*task.examples(random_records(9, 6))]
    fixed, reversed_batch = task.collate(examples), task.collate(examples[::-1])
    assert torch.equal(fixed.visible, reversed_batch.visible.flip(0))
    first, second = task.collate_for_training(examples), task.collate_for_training(examples)
    assert not torch.equal(first.visible, second.visible)
    for batch in (fixed, first):
        assert torch.equal(batch.visible, batch.visible.mT)
        assert batch.visible[0].diagonal().all()
        assert not batch.visible[1, 6:].any()
        assert not (batch.hidden & batch.visible).any()
        assert (batch.hidden | batch.visible)[0].triu(1).sum() == 36
        assert not batch.hidden.tril().any()
    shares = [
        task.collate_for_training(examples).visible[0].triu(1).float().sum().item() / 36
        for _ in range(60)
    ]
    assert np.mean(shares) == pytest.approx(0.5, abs=0.06)


def test_hidden_pairs_have_no_features(task):
    batch = task.collate([*task.examples(random_records(7))])
    assert batch.inputs["pair_features"][~batch.visible].eq(0).all()
    features = batch.inputs["pair_features"][batch.visible]
    torch.testing.assert_close(features[:, 1] * 16, batch.distances[batch.visible])
    assert features[:, 0].eq(1).all()


def test_features_of_a_distance_are_radial_bases(task):
    [[row, *_], *_] = task.features(torch.tensor([[[4.0]]]))[0]
    width = 16 / 15
    expected = [1.0, 0.25, *(math.exp(-(((4 - n * width) / width) ** 2)) for n in range(16))]
    assert row.tolist() == pytest.approx(expected, abs=1e-6)


def test_unknown_distances_are_neither_visible_nor_hidden(task):
    text = '{"distances": [[0, 3, null], [3, 0, 4], [null, 4, 0]]}'
    batch = task.collate([*task.examples([{"text": text, "visible_fraction": 0.0}])])
    assert batch.hidden[0].nonzero().tolist() == [[0, 1], [1, 2]]
    assert not batch.visible[0, 0, 2]


def test_loss_is_that_of_the_bins_of_hidden_distances(task):
    batch = task.collate([*task.examples(random_records(5, 4))])
    log_probs, total, count = task.model(batch.inputs).log_softmax(-1), 0.0, 0
    for row, i, j in batch.hidden.nonzero().tolist():
        # eight bins of width 2; the last one holds all larger distances
        target = min(int(batch.distances[row, i, j] // 2), 7)
        total -= log_probs[row, i, j, target].item()
        count += 1
    loss = task.loss(batch, 0)
    assert loss.total.item() == pytest.approx(total, rel=1e-5)
    assert loss.count == count


def test_last_bin_holds_all_larger_distances(task):
    bins = task.bin_indices(torch.tensor([0.0, 1.9, 2.1, 15.0, 16.5, 99.0]))
    assert bins.tolist() == [0, 0, 1, 7, 7, 7]


def test_predicted_tables_are_consistent(task):
    """They are symmetric, keep visible distances, and do not depend on the batch."""
    records = [*random_records(6, 9, 4)]
    for example, prediction in zip(task.examples(records), task.predict(records), strict=True):
        targets = example.distances
        distances, visible = np.array(prediction.distances), np.array(prediction.visible)
        assert np.allclose(distances, distances.T, atol=1e-4)
        assert np.allclose(distances[visible], targets[visible])
        hidden = distances[~visible]
        assert ((hidden > 1.0) & (hidden < 15.0)).all()  # between the centers of the outer bins
        [alone] = task.predict([records[example.index]])
        assert np.allclose(alone.distances, distances, atol=1e-4)
        contacts = np.array(prediction.contact_probabilities)
        assert ((contacts >= 0) & (contacts <= 1 + 1e-6)).all()
        assert np.array_equal(contacts[visible] == 1, targets[visible] < 8.0)


def test_all_distances_of_a_line_are_visible(task):
    line = '{"distances": [[0, 3, null], [3, 0, 4], [null, 4, 0]]}'
    record = task.parse(line, "input 1")
    assert record == {"text": line}
    [prediction] = task.predict([record])
    assert prediction.visible == [[True, True, False], [True, True, True], [False, True, True]]
    assert prediction.distances[0][1] == 3
    assert [1, 2] in prediction.as_dict()["contacts"]
    assert json.loads(prediction.text)["distances"] == prediction.as_dict()["distances"]


def test_large_sets_are_neither_predicted_nor_scored(task):
    sets = [*random_records(6, 21)]
    with pytest.raises(ValueError, match="record 2: 21 points, but train"):
        task.predict(sets)
    with pytest.raises(ValueError, match="input 1: 21 points"):
        task.parse(sets[1]["text"], "input 1")
    metrics, metrics_of_small = task.score(sets), task.score(sets[:1])
    assert metrics == {**metrics_of_small, "sets": 2}
    assert metrics["mae"] == task.validation_metric("mae", sets)
    with pytest.raises(ValueError, match="all sets have more points"):
        task.score(sets[1:])


def test_attention_among_edges(task):
    [record] = random_records(5)
    attention = task.attention_weights({"text": record["text"]})
    assert {tuple(weights.shape) for weights in attention.values()} == {(2, 5, 5)}
    assert [*attention][:2] == ["encoder.blocks.0.edges.0.look", "encoder.blocks.0.edges.1.look"]
    without_attention = build_task(triangles="product")
    with pytest.raises(ValueError, match="model has no attention among pairs"):
        without_attention.attention_weights({"text": record["text"]})
    text = task.render({"text": record["text"]}, Surface())
    for part in ("5 points, 0 distances predicted", "contacts", "1: starts", "2: ends", "weight:"):
        assert part in text
    assert "weight:" not in without_attention.render(record, Surface())


def test_draws_depend_on_the_table_alone():
    ones, zeros = np.ones((3, 3), np.float32), np.zeros((3, 3), np.float32)
    assert torch.equal(reproducible_draws(ones), reproducible_draws(ones.copy()))
    assert not torch.equal(reproducible_draws(ones), reproducible_draws(zeros))
