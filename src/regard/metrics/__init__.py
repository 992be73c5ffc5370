"""Predictions into numbers. Runs without torch."""
