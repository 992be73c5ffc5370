"""Tests of the likelihood of piano rolls."""

import math

import pytest

from regard.metrics.music import (
    FIRST_STEP_GIVEN_SIGNATURE,
    FIRST_STEP_PREDICTED_SIGNATURE,
    frame_nll,
    step_nll,
)


def test_step_nll():
    """Sounding keys count with log p, silent keys with log(1 - p)."""
    assert step_nll([0.8, 0.25], [0]) == pytest.approx(-math.log(0.8) - math.log(0.75))
    assert step_nll([0.5] * 88, [3, 4]) == pytest.approx(88 * math.log(2))
    assert step_nll([0.0, 1.0], [1]) == 0
    assert step_nll([0.0, 1.0], [0]) == math.inf


def test_frame_nll():
    assert frame_nll(84.5, 10) == 8.45
    with pytest.raises(ValueError, match="steps must be at least 1, not 0"):
        frame_nll(0.0, 0)
    with pytest.raises(ValueError, match=r"sounding must be keys from 0 to 1, not \{2\}"):
        step_nll([0.5, 0.5], [2])


def test_signatures():
    assert FIRST_STEP_GIVEN_SIGNATURE != FIRST_STEP_PREDICTED_SIGNATURE
    assert FIRST_STEP_GIVEN_SIGNATURE == "nll|keys:88,sum|steps:mean|log:e|first:given|v:1"
