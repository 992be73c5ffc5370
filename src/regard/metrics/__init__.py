"""Metrics: predictions and references -> numbers, without torch."""
