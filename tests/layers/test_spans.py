"""Stretches of positions against all of them, written out."""

import math

import torch

from regard.layers.spans import best_spans


def test_all_stretches_are_compared():
    starts, ends = torch.randn(2, 7).double(), torch.randn(2, 7).double()
    starts[1, 5:] = ends[1, 5:] = -torch.inf  # padding
    found = best_spans(starts, ends, 3, limit=100)
    for row, count in ((0, 6), (1, 4)):
        table = {
            (s, e): (starts[row, s + 1] + ends[row, e + 1] - starts[row, 0] - ends[row, 0]).item()
            for s in range(count)
            for e in range(s, min(count, s + 3))
        }
        scores = found.scores[row].tolist()
        ours = [
            (s, e)
            for s, e, score in zip(
                found.starts[row].tolist(), found.ends[row].tolist(), scores, strict=True
            )
            if score > -math.inf
        ]
        assert ours == sorted(table, key=table.__getitem__, reverse=True)
        assert math.isclose(scores[0], max(table.values()))
        total = math.log(sum(math.exp(one) for one in table.values()))
        assert math.isclose(found.total[row].item(), total)


def test_short_texts():
    found = best_spans(torch.zeros(1, 2), torch.zeros(1, 2), 30)
    assert found.scores.tolist() == [[0.0]]
    assert (found.starts.tolist(), found.ends.tolist()) == ([[0]], [[0]])
