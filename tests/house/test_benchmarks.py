"""Text of the benchmarks is spelled as the data that it is used with."""

import importlib
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_reviews_are_spelled_as_sst2(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    pretrained = importlib.import_module("pretrained")
    text = "I don't say<br />it's <b>bad</b>, they've GONE!"
    expected = "i do n't say it 's < b > bad < / b > , they 've gone !"
    assert pretrained.apart(text) == expected
