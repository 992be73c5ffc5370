"""Rows of the input files of batch prediction."""

TEXTS = [f"{word} {number}" for number in range(5) for word in ("cat", "mat")]
LINES = [*TEXTS[:5], "", *TEXTS[5:]]
