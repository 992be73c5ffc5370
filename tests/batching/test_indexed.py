"""Batches by number: without end, and taken up anywhere."""

from regard.batching.indexed import IndexedBatches


def test_they_come_in_order_and_go_on():
    source = IndexedBatches(lambda number: number**2)
    assert [next(source) for _ in range(4)] == [0, 1, 4, 9]
    other = IndexedBatches(lambda number: number**2)
    other.load_state_dict(source.state_dict())
    assert next(other) == 16
    assert other.epoch == 0
    assert other.carried == {}
