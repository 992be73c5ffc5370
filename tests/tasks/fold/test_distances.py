"""Distances that are told: what is shown, what is hidden, and the loss by hand."""

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


def made(**settings) -> DistanceTask:
    model = PairClassifier(
        Msa(RESIDUE_ID_COUNT, FEATURE_COUNT, **{**SMALL, **settings}), HEAD["bins"]
    )
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.4)
    return DistanceTask(model.eval(), **HEAD, max_tokens=20)


def records(*sizes: int, shown: float = 0.5, seed: int = 0):
    draw = np.random.default_rng(seed)
    for many in sizes:
        points = (12 * draw.random((many, 3))).round(2).tolist()
        yield {"text": json.dumps({"points": points}), "visible_fraction": shown}


def test_what_is_shown_is_drawn_once_for_scores_and_anew_to_learn():
    task = made()
    pairs = [*task.examples(records(9, 6))]
    one, again = task.collate(pairs), task.collate(pairs[::-1])
    assert torch.equal(one.shown, again.shown.flip(0))
    first, second = task.collate_for_training(pairs), task.collate_for_training(pairs)
    assert not torch.equal(first.shown, second.shown)
    for batch in (one, first):
        assert torch.equal(batch.shown, batch.shown.mT)
        assert batch.shown[0].diagonal().all()
        assert not batch.shown[1, 6:].any()
        assert not (batch.hidden & batch.shown).any()
        assert (batch.hidden | batch.shown)[0].triu(1).sum() == 36
        assert not batch.hidden.tril().any()
    share = [
        task.collate_for_training(pairs).shown[0].triu(1).float().sum().item() / 36
        for _ in range(60)
    ]
    assert np.mean(share) == pytest.approx(0.5, abs=0.06)


def test_what_is_hidden_is_not_seen():
    task = made()
    batch = task.collate([*task.examples(records(7))])
    assert batch.inputs["pair_features"][~batch.shown].eq(0).all()
    shown = batch.inputs["pair_features"][batch.shown]
    torch.testing.assert_close(shown[:, 1] * 16, batch.distances[batch.shown])
    assert shown[:, 0].eq(1).all()


def test_a_distance_is_told_by_the_places_it_is_near_to():
    [[row, *_], *_] = made().features(torch.tensor([[[4.0]]]))[0]
    wide = 16 / 15
    wanted = [1.0, 0.25, *(math.exp(-(((4 - n * wide) / wide) ** 2)) for n in range(16))]
    assert row.tolist() == pytest.approx(wanted, abs=1e-6)


def test_what_nobody_knows_counts_nowhere():
    task, text = made(), '{"distances": [[0, 3, null], [3, 0, 4], [null, 4, 0]]}'
    batch = task.collate([*task.examples([{"text": text, "visible_fraction": 0.0}])])
    assert batch.hidden[0].nonzero().tolist() == [[0, 1], [1, 2]]
    assert not batch.shown[0, 0, 2]


def test_the_loss_is_that_of_hidden_bins():
    task = made()
    batch = task.collate([*task.examples(records(5, 4))])
    logits, total, many = task.model(batch.inputs).log_softmax(-1), 0.0, 0
    for row, i, j in batch.hidden.nonzero().tolist():
        place = min(int(batch.distances[row, i, j] // 2), 7)  # eight bins of 2, the last with all
        total -= logits[row, i, j, place].item()
        many += 1
    loss = task.loss(batch, 0)
    assert loss.total.item() == pytest.approx(total, rel=1e-5)
    assert loss.count == many


def test_beyond_the_last_bin_is_in_it():
    found = made().bin_indices(torch.tensor([0.0, 1.9, 2.1, 15.0, 16.5, 99.0]))
    assert found.tolist() == [0, 0, 1, 7, 7, 7]


def test_what_is_told_is_whole():
    """Symmetric, what was shown taken over, alone as among others, and between the middles."""
    task, sets = made(), [*records(6, 9, 4)]
    for pair, one in zip(task.examples(sets), task.predict(sets), strict=True):
        true = pair.distances
        told, shown = np.array(one.distances), np.array(one.shown)
        assert np.allclose(told, told.T, atol=1e-4)
        assert np.allclose(told[shown], true[shown])
        hidden = told[~shown]
        assert ((hidden > 1.0) & (hidden < 15.0)).all()
        [alone] = task.predict([sets[pair.index]])
        assert np.allclose(alone.distances, told, atol=1e-4)
        near = np.array(one.contact_probabilities)
        assert ((near >= 0) & (near <= 1 + 1e-6)).all()
        assert np.array_equal(near[shown] == 1, true[shown] < 8.0)


def test_all_that_is_given_is_shown():
    task, line = made(), '{"distances": [[0, 3, null], [3, 0, 4], [null, 4, 0]]}'
    record = task.parse(line, "input 1")
    assert record == {"text": line}
    [one] = task.predict([record])
    assert one.shown == [[True, True, False], [True, True, True], [False, True, True]]
    assert one.distances[0][1] == 3
    assert [1, 2] in one.as_dict()["contacts"]
    assert json.loads(one.text)["distances"] == one.as_dict()["distances"]


def test_large_sets_are_not_predicted_nor_scored():
    task, sets = made(), [*records(6, 21)]
    with pytest.raises(ValueError, match="record 2: 21 points, but train"):
        task.predict(sets)
    with pytest.raises(ValueError, match="input 1: 21 points"):
        task.parse(sets[1]["text"], "input 1")
    found, alone = task.score(sets), task.score(sets[:1])
    assert found == {**alone, "sets": 2}
    assert found["mae"] == task.validation_metric("mae", sets)
    with pytest.raises(ValueError, match="all sets have more points"):
        task.score(sets[1:])


def test_what_edges_looked_at():
    [record] = records(5)
    seen = made().attention_weights({"text": record["text"]})
    assert {tuple(weights.shape) for weights in seen.values()} == {(2, 5, 5)}
    assert [*seen][:2] == ["blocks.0.edges.0.look", "blocks.0.edges.1.look"]
    with pytest.raises(ValueError, match="pairs do not look at each other"):
        made(triangles="product").attention_weights({"text": record["text"]})
    shown = made().render({"text": record["text"]}, Surface())
    for part in ("5 points, 0 distances told", "contacts", "1: starts", "2: ends", "weight:"):
        assert part in shown
    assert "weight:" not in made(triangles="product").render(record, Surface())


def test_draws_hang_on_the_table():
    one, other = np.ones((3, 3), np.float32), np.zeros((3, 3), np.float32)
    assert torch.equal(reproducible_draws(one), reproducible_draws(one.copy()))
    assert not torch.equal(reproducible_draws(one), reproducible_draws(other))
