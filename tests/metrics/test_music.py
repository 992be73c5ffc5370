"""The likelihood of steps, by hand."""

import math

import pytest

from regard.metrics.music import (
    FIRST_STEP_GIVEN_SIGNATURE,
    FIRST_STEP_PREDICTED_SIGNATURE,
    frame_nll,
    step_nll,
)


def test_both_terms_count():
    """Of two keys, one sounds: its log p, and the log(1 - p) of the other."""
    assert step_nll([0.8, 0.25], [0]) == pytest.approx(-math.log(0.8) - math.log(0.75))
    assert step_nll([0.5] * 88, [3, 4]) == pytest.approx(88 * math.log(2))
    assert step_nll([0.0, 1.0], [1]) == 0
    assert step_nll([0.0, 1.0], [0]) == math.inf


def test_the_mean_is_of_steps():
    assert frame_nll(84.5, 10) == 8.45
    with pytest.raises(ValueError, match="steps must be 1 or more, not 0"):
        frame_nll(0.0, 0)
    with pytest.raises(ValueError, match="not among the 2"):
        step_nll([0.5, 0.5], [2])


def test_signatures_say_what_differs():
    assert FIRST_STEP_GIVEN_SIGNATURE != FIRST_STEP_PREDICTED_SIGNATURE
    assert FIRST_STEP_GIVEN_SIGNATURE == "nll|keys:88,sum|steps:mean|log:e|first:given|v:1"
