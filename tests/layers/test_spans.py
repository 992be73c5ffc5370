"""The best spans against an enumeration of all spans."""

import math

import torch

from regard.layers.spans import best_spans


def test_all_spans_are_compared():
    starts, ends = torch.randn(2, 7).double(), torch.randn(2, 7).double()
    starts[1, 5:] = ends[1, 5:] = -torch.inf  # padding
    spans = best_spans(starts, ends, 3, limit=100)
    for row, count in ((0, 6), (1, 4)):
        table = {
            (s, e): (starts[row, s + 1] + ends[row, e + 1] - starts[row, 0] - ends[row, 0]).item()
            for s in range(count)
            for e in range(s, min(count, s + 3))
        }
        scores = spans.scores[row].tolist()
        span_list = [
            (s, e)
            for s, e, score in zip(
                spans.starts[row].tolist(), spans.ends[row].tolist(), scores, strict=True
            )
            if score > -math.inf
        ]
        assert span_list == sorted(table, key=table.__getitem__, reverse=True)
        assert math.isclose(scores[0], max(table.values()))
        total = math.log(sum(math.exp(score_value) for score_value in table.values()))
        assert math.isclose(spans.total[row].item(), total)


def test_short_texts():
    spans = best_spans(torch.zeros(1, 2), torch.zeros(1, 2), 30)
    assert spans.scores.tolist() == [[0.0]]
    assert (spans.starts.tolist(), spans.ends.tolist()) == ([[0]], [[0]])
