"""Tables of models: the same numbers in text, Markdown, CSV and JSON."""

import csv
import json
import math
from io import StringIO

from regard.metrics.comparison import ModelResult, seed_spread
from regard.view.report import (
    ComparisonReport,
    as_csv,
    as_json,
    as_markdown,
    as_text,
    length_table,
    overview_table,
    render_table,
    seed_average_table,
)

FIELDS = ("parameters", "bleu", "chrf", "exact", "perplexity", "aer", "training_tokens")
FIELDS += ("decoding_sentences", "training_seconds")


def measured(name, numbers, by_length):
    return ModelResult(name, dict(zip(FIELDS, numbers, strict=True)), by_length)


ONE = measured("a|b", (12345, 30.126, 50.0, 12.5, 3.5, 0.0312, 1234.5, 99.94, 61.0), {"1-2": 1.0})
OTHER = measured("c", (7, 0.0, 1.0, 0.0, math.inf, None, 9.0, 1.0, 0.4), {"1-2": 2.0, "3+": 4.0})
MODELS = [ONE, OTHER]
TOLD = ComparisonReport("Title", MODELS, [], ["BLEU: x"])
SEEDS = [
    ModelResult(f"seed={n}", {"parameters": 9, "accuracy": value, "training_texts": 1000.0 * n}, {})
    for n, value in enumerate((80.0, 83.0, 86.0), 1)
]
AVERAGED = ComparisonReport("Title", SEEDS, [seed_spread("base", SEEDS)], [])


def test_overview_by_hand():
    head, one, other = overview_table(MODELS)
    assert head[:7] == ["model", "parameters", "BLEU", "chrF", "exact %", "perplexity", "AER"]
    assert " ".join(one) == "a|b 12,345 30.13 50.00 12.5 3.50 0.031 1,234 99.9 61"
    assert other[5:7] == ["inf", "-"]
    assert length_table(MODELS) == [
        ["BLEU by source words", "1-2", "3+"],
        ["a|b", "1.00", "-"],
        ["c", "2.00", "4.00"],
    ]


def test_columns_are_those_that_some_model_has():
    """In their own order, whichever model brings them."""
    without = ModelResult("a", {"parameters": 1, "accuracy": 50.0, "training_seconds": 1.0}, {})
    with_it = ModelResult("b", {**without.values, "next_sentence": 75.0}, {})
    head, one, other = overview_table([without, with_it])
    assert head == ["model", "parameters", "accuracy %", "next sentence %", "train s"]
    assert (one[3], other[3]) == ("-", "75.00")
    new = ModelResult("c", {**with_it.values, "f1_new": 1.0}, {})  # of a name that nobody foresaw
    assert overview_table([new])[0][-2:] == ["f1 new", "train s"]


def test_means_stand_below_the_runs():
    assert seed_average_table(AVERAGED.spreads) == [
        ["mean ± deviation", "seeds", "accuracy %", "train texts/s"],
        ["base", "3", "83.00 ± 3.00", "2,000 ± 1,000"],
    ]
    shown = as_text(AVERAGED).splitlines()
    assert shown[4] == ""
    assert shown[5].split() == [
        "mean",
        "±",
        "deviation",
        "seeds",
        *["accuracy", "%", "train", "texts/s"],
    ]
    assert "| base | 3 | 83.00 ± 3.00 |" in as_markdown(AVERAGED, [])
    *runs, mean, away = csv.DictReader(StringIO(as_csv(AVERAGED)))
    assert [row["row"] for row in runs] == ["model"] * 3
    assert (mean["name"], mean["row"], mean["accuracy"]) == ("base", "mean", "83.0")
    assert (away["name"], away["row"], away["accuracy"]) == ("base", "deviation", "3.0")
    (group,) = json.loads(as_json(AVERAGED))["seeds"]
    assert group["models"] == ["seed=1", "seed=2", "seed=3"]
    assert (group["mean"]["accuracy"], group["deviation"]["accuracy"]) == (83.0, 3.0)


def test_text_is_aligned():
    assert render_table([["a", "long"], ["longer", "b"]]) == "a       long\nlonger     b"


def test_markdown():
    text = as_markdown(TOLD, [["a|b", "p.png"]])
    lines = text.splitlines()
    assert lines[0] == "# Title"
    assert "| a\\|b | 12,345 |" in text
    assert "- BLEU: x" in lines
    assert "![a\\|b](<p.png>)" in lines
    tables = [line for line in lines if line.startswith("|")]
    plain = [line.replace("\\|", "") for line in tables]
    assert {line.count("|") for line in plain[:4]} == {11}
    assert {line.count("|") for line in plain[4:]} == {4}


def test_csv_holds_every_number_in_full():
    one, other = csv.DictReader(StringIO(as_csv(TOLD)))
    assert (one["name"], float(one["bleu"]), float(one["bleu 1-2"])) == ("a|b", 30.126, 1.0)
    assert one["bleu 3+"] == ""
    assert (other["aer"], other["perplexity"]) == ("", "inf")


def test_json():
    found = json.loads(as_json(TOLD))
    assert (found["title"], found["notes"], found["seeds"]) == ("Title", ["BLEU: x"], [])
    assert found["models"][0] == {"name": "a|b", **ONE.values, "by_length": {"1-2": 1.0}}
    assert found["models"][1]["perplexity"] is None
    assert found["models"][1]["aer"] is None
