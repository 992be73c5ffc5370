"""Batches by number: without end, and taken up anywhere."""

from regard.batch.numbered import Numbered


def test_they_come_in_order_and_go_on():
    source = Numbered(lambda number: number**2)
    assert [next(source) for _ in range(4)] == [0, 1, 4, 9]
    other = Numbered(lambda number: number**2)
    other.restore(source.state())
    assert next(other) == 16
    assert other.epoch == 0
    assert other.carried == {}
