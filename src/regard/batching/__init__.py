"""Ids -> tensors: examples, batches of about equal size, an order that can be taken up again."""
