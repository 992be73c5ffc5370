"""The LSTM of episodes is torch's LSTM with an output layer."""

import torch
from torch import nn

from regard.models.lstm import Lstm


def test_it_is_torch_s():
    model, torch_lstm = Lstm(5, 3, dim=6, layers=2), nn.LSTM(5, 6, 2, batch_first=True)
    model.layers.load_torch_weights(torch_lstm)
    inputs = torch.randn(2, 7, 5)
    torch.testing.assert_close(model.episode(inputs), model.out(torch_lstm(inputs)[0]))


def test_the_size_of_the_paper_s_baseline():
    """Graves et al. 2014: 1,352,969 weights for 3 layers of 256; ours has no shortcuts."""
    count = sum(weight.numel() for weight in Lstm(9, 8, dim=256, layers=3).parameters())
    assert 0.95 * 1_352_969 < count < 1_352_969
