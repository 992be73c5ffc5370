"""Tests of few-shot episodes: balance, reproducibility, and the Bayes classifier."""

import numpy as np
import pytest

from regard.data.synthetic.episodes import Prototypes, draw_layout


def test_layout_is_balanced():
    support_labels, query_labels, support_order = draw_layout(
        np.random.default_rng(1), 50, ways=3, shots=2, queries=7
    )
    assert support_labels.shape == (50, 6)
    assert query_labels.shape == (50, 7)
    for row in range(50):
        assert np.bincount(support_labels[row]).tolist() == [2, 2, 2]
        assert sorted(np.bincount(query_labels[row], minlength=3)) == [2, 2, 3]
        for row_order in support_order[row]:
            assert sorted(row_order) == list(range(6))
    assert len(np.unique(support_order.reshape(-1, 6), axis=0)) > 100
    assert np.bincount(query_labels[:, 0], minlength=3).min() > 5


def test_examples_are_near_their_class():
    corpus = Prototypes(4, 3, dim=2000, noise=0.1, eval_episodes=5)
    for record in corpus.read("test"):
        examples, labels = record["examples"], record["support_labels"]
        assert examples.shape == (4 * 3 + 1, 2000)
        assert examples.dtype == np.float32
        for example, label in zip(examples, [*labels, record["target"]], strict=True):
            distances = np.array(
                [np.abs(example - support_example).mean() for support_example in examples[:-1]]
            )
            is_same_class = labels == label
            assert distances[is_same_class].max() < 0.2 < 0.8 < distances[~is_same_class].min()


def test_episodes_are_reproducible_and_splits_differ():
    corpus = Prototypes(eval_episodes=3)
    records, repeated = (list(corpus.read("dev")) for _ in range(2))
    assert len(records) == 3
    assert all(
        np.array_equal(first["examples"], second["examples"])
        for first, second in zip(records, repeated, strict=True)
    )
    assert not np.array_equal(records[0]["examples"], next(corpus.read("test"))["examples"])
    assert not np.array_equal(records[0]["examples"], records[1]["examples"])
    batches = [corpus.sample_batch(1, number, 4, 2, False) for number in (0, 0, 1)]
    assert np.array_equal(batches[0].examples, batches[1].examples)
    assert not np.array_equal(batches[0].examples, batches[2].examples)
    assert not np.array_equal(batches[0].examples, corpus.sample_batch(2, 0, 4, 2, False).examples)


def test_varied_shots():
    corpus = Prototypes(2, 3)
    support_sizes = {
        corpus.sample_batch(1, number, 2, 1, True).support_labels.shape[1] for number in range(30)
    }
    assert support_sizes == {2, 4, 6}


def test_best_class_matches_the_likelihood():
    """Compare `best_class` with exact likelihoods, for two classes with one example each."""
    corpus = Prototypes(2, 1, dim=1, noise=0.7, seed=3, eval_episodes=2000)
    variance = 0.7**2
    precision = np.linalg.inv(np.array([[1 + variance, 1.0], [1.0, 1 + variance]]))

    def likelihood(query, same_class, other_class):
        """Return the likelihood that the query has the first class: x, q ~ N(m, v), m ~ N(0, 1)."""
        pair = np.array([same_class, query])
        joint = np.exp(-0.5 * pair @ precision @ pair)
        return joint * np.exp(-0.5 * other_class**2 / (1 + variance))

    correct = 0
    for record in corpus.read("test"):
        values, labels = record["examples"][:, 0].astype(float), record["support_labels"]
        class_values = [values[:-1][labels == way][0] for way in (0, 1)]
        scores = [
            likelihood(values[-1], class_values[way], class_values[1 - way]) for way in (0, 1)
        ]
        assert corpus.best_class(record) == int(np.argmax(scores))
        correct += corpus.best_class(record) == record["target"]
    assert 0.6 < correct / 2000 < 0.8


def test_bad_sizes():
    with pytest.raises(ValueError, match="ways must be at least 2, not 1"):
        Prototypes(1)
