"""Episodes: who is in them, in which order, and how well points can be told at best."""

import numpy as np
import pytest

from regard.data.synthetic.episodes import Prototypes, draw_layout


def test_each_class_is_there_as_often_and_asked_for_in_turn():
    labels, wanted, order = draw_layout(np.random.default_rng(1), 50, ways=3, shots=2, queries=7)
    assert labels.shape == (50, 6)
    assert wanted.shape == (50, 7)
    for row in range(50):
        assert np.bincount(labels[row]).tolist() == [2, 2, 2]
        assert sorted(np.bincount(wanted[row], minlength=3)) == [2, 2, 3]
        for one in order[row]:
            assert sorted(one) == list(range(6))
    assert len(np.unique(order.reshape(-1, 6), axis=0)) > 100
    assert np.bincount(wanted[:, 0], minlength=3).min() > 5


def test_points_lie_around_their_class():
    corpus = Prototypes(4, 3, dim=2000, noise=0.1, eval_episodes=5)
    for record in corpus.read("test"):
        shown, labels = record["examples"], record["support_labels"]
        assert shown.shape == (4 * 3 + 1, 2000)
        assert shown.dtype == np.float32
        for one, label in zip(shown, [*labels, record["target"]], strict=True):
            near = np.array([np.abs(one - other).mean() for other in shown[:-1]])
            same = labels == label
            assert near[same].max() < 0.2 < 0.8 < near[~same].min()


def test_an_episode_is_always_the_same_and_splits_are_not():
    corpus = Prototypes(eval_episodes=3)
    one, other = (list(corpus.read("dev")) for _ in range(2))
    assert len(one) == 3
    assert all(
        np.array_equal(a["examples"], b["examples"]) for a, b in zip(one, other, strict=True)
    )
    assert not np.array_equal(one[0]["examples"], next(corpus.read("test"))["examples"])
    assert not np.array_equal(one[0]["examples"], one[1]["examples"])
    batches = [corpus.sample_batch(1, number, 4, 2, False) for number in (0, 0, 1)]
    assert np.array_equal(batches[0].examples, batches[1].examples)
    assert not np.array_equal(batches[0].examples, batches[2].examples)
    assert not np.array_equal(batches[0].examples, corpus.sample_batch(2, 0, 4, 2, False).examples)


def test_batches_may_vary_in_shots():
    corpus = Prototypes(2, 3)
    found = {
        corpus.sample_batch(1, number, 2, 1, True).support_labels.shape[1] for number in range(30)
    }
    assert found == {2, 4, 6}


def test_two_points_on_a_line_by_integration():
    """The best rule of two classes and one example each, by the density of what is shown."""
    corpus = Prototypes(2, 1, dim=1, noise=0.7, seed=3, eval_episodes=8000)
    variance = 0.7**2

    def likelihood(query, same, other):
        """Of the query being of the class of `same`: x, q ~ N(m, v), m ~ N(0, 1)."""
        together = np.array([[1 + variance, 1.0], [1.0, 1 + variance]])
        pair = np.array([same, query])
        joint = np.exp(-0.5 * pair @ np.linalg.inv(together) @ pair)
        return joint * np.exp(-0.5 * other**2 / (1 + variance))

    right = 0
    for record in corpus.read("test"):
        values, labels = record["examples"][:, 0].astype(float), record["support_labels"]
        shown = [values[:-1][labels == way][0] for way in (0, 1)]
        scores = [likelihood(values[-1], shown[way], shown[1 - way]) for way in (0, 1)]
        assert corpus.best_class(record) == int(np.argmax(scores))
        right += corpus.best_class(record) == record["target"]
    assert 0.6 < right / 8000 < 0.8


def test_bad_sizes():
    with pytest.raises(
        ValueError, match="ways must be at least 2, not 1: there is nothing to tell"
    ):
        Prototypes(1)
