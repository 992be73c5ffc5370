"""Tests of perplexity, bits per token and bits per character."""

import math

import pytest

from regard.metrics.language import bits_per_character, bits_per_token, perplexity


def test_uniform_predictions():
    """8 equally likely tokens have perplexity 8 and 3 bits each."""
    loss = 100 * math.log(8)
    assert perplexity(loss, 100) == pytest.approx(8)
    assert bits_per_character(loss, 100) == pytest.approx(3)
    assert bits_per_token(loss, 100) == pytest.approx(3)
    assert bits_per_character(loss, 300) == pytest.approx(1)


def test_extreme_losses():
    assert perplexity(0.0, 5) == 1.0
    assert bits_per_character(0.0, 5) == 0.0
    assert perplexity(1e6, 1) == math.inf
    assert bits_per_token(1e6, 1) == pytest.approx(1e6 / math.log(2))


@pytest.mark.parametrize("metric", [perplexity, bits_per_token, bits_per_character])
def test_bad_sums(metric):
    with pytest.raises(ValueError, match="must be at least 1, not 0"):
        metric(1.0, 0)
    for loss in (-1.0, math.nan):
        with pytest.raises(ValueError, match="loss must be a sum of negative log-likelihoods"):
            metric(loss, 1)
