"""The LSTM of episodes is torch's, with a layer on it."""

import torch
from torch import nn

from regard.models.lstm import Lstm


def test_it_is_torch_s():
    ours, theirs = Lstm(5, 3, dim=6, layers=2), nn.LSTM(5, 6, 2, batch_first=True)
    ours.layers.load_torch_weights(theirs)
    inputs = torch.randn(2, 7, 5)
    torch.testing.assert_close(ours.episode(inputs), ours.out(theirs(inputs)[0]))


def test_the_size_of_the_paper_s_baseline():
    """1,352,969 weights for 3 layers of 256 (Graves et al. 2014); without its shortcuts, fewer."""
    count = sum(weight.numel() for weight in Lstm(9, 8, dim=256, layers=3).parameters())
    assert 0.95 * 1_352_969 < count < 1_352_969
