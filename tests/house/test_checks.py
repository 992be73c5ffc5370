"""The checks that every other test relies on are really on."""

import warnings

import pytest
import torch
from jaxtyping import TypeCheckError

from regard.attention.scores import Dot

WRONG = torch.ones(2, 3), torch.ones(3)  # keys lack an axis


def test_shapes_are_checked():
    with pytest.raises(TypeCheckError):
        Dot()(*WRONG)


def test_shapes_can_go_unchecked(unchecked):
    with pytest.raises(RuntimeError, match="only supported on matrices"):  # torch's own word
        Dot()(*WRONG)


def test_and_are_checked_again():
    with pytest.raises(TypeCheckError):
        Dot()(*WRONG)


def test_warnings_are_errors():
    with pytest.raises(UserWarning, match="careful"):
        warnings.warn("careful", UserWarning, stacklevel=1)


def test_every_test_starts_from_its_own_seed(seed):
    assert torch.initial_seed() == seed
