"""Pixels as tensors: scaled by channel; moved and mirrored by no more than is said."""

import numpy as np
import pytest
import torch

from regard.batching.images import (
    ImagePreprocessor,
    randomly_cropped,
    randomly_flipped,
    stacked,
)
from regard.data.formats.images import ImageReader

PIXELS = np.random.default_rng(0).integers(0, 256, (5, 6, 7, 3), dtype=np.uint8)


def test_scaled_by_channel():
    reader = ImagePreprocessor(ImageReader(), mean=(0.1, 0.2, 0.3), std=(0.5, 0.4, 0.25))
    found = reader.to_tensor(list(PIXELS))
    assert (found.shape, found.dtype) == ((5, 3, 6, 7), torch.float32)
    for image, row, column, channel in ((0, 0, 0, 0), (4, 5, 6, 2), (2, 3, 1, 1)):
        mean, std = reader.mean[channel], reader.std[channel]
        wanted = (PIXELS[image, row, column, channel] / 255 - mean) / std
        assert found[image, channel, row, column].item() == pytest.approx(wanted, abs=1e-5)
    same = ImagePreprocessor(ImageReader()).to_tensor(list(PIXELS))
    assert same.amin() >= -1
    assert same.amax() <= 1


def test_a_crop_is_a_move_with_black_behind():
    whole, seen = stacked(list(PIXELS)), set()
    for _ in range(60):
        for before, after in zip(whole, randomly_cropped(whole, 2), strict=True):
            wide = torch.nn.functional.pad(before, (2, 2, 2, 2))
            places = [
                (top, left)
                for top in range(5)
                for left in range(5)
                if torch.equal(wide[:, top : top + 6, left : left + 7], after)
            ]
            assert len(places) == 1
            seen.add(places[0])
    assert len(seen) == 25  # each move occurs


def test_half_are_mirrored():
    whole = stacked(list(PIXELS))
    turns = 0
    for _ in range(100):
        for before, after in zip(whole, randomly_flipped(whole), strict=True):
            turned = torch.equal(after, before.flip(2))
            assert turned or torch.equal(after, before)
            turns += turned
    assert 200 < turns < 300


def test_nothing_is_changed_unless_it_is_asked_for():
    reader = ImagePreprocessor(ImageReader())
    plain = reader.to_tensor(list(PIXELS))
    assert torch.equal(reader.augmented(list(PIXELS)), plain)
    torch.manual_seed(1)
    one = reader.augmented(list(PIXELS), crop=2, flip=True)
    assert not torch.equal(one, plain)
    torch.manual_seed(1)
    assert torch.equal(reader.augmented(list(PIXELS), crop=2, flip=True), one)
    with pytest.raises(ValueError, match="images are missing"):
        reader.to_tensor([])
