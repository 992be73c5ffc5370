"""Tables of models: the same numbers in text, Markdown, CSV and JSON."""

import csv
import json
import math
from io import StringIO

from regard.metric.comparison import Measured
from regard.view.report import aligned, as_json, lengths, markdown, overview, sheet

ONE = Measured("a|b", 12345, 30.126, 50.0, 12.5, 3.5, 0.0312, 1234.5, 99.94, 61.0, {"1-2": 1.0})
OTHER = Measured("c", 7, 0.0, 1.0, 0.0, math.inf, None, 9.0, 1.0, 0.4, {"1-2": 2.0, "3+": 4.0})
MODELS = [ONE, OTHER]


def test_overview_by_hand():
    head, one, other = overview(MODELS)
    assert head[:7] == ["model", "parameters", "BLEU", "chrF", "exact %", "perplexity", "AER"]
    assert " ".join(one) == "a|b 12,345 30.13 50.00 12.5 3.50 0.031 1,234 99.9 61"
    assert other[5:7] == ["inf", "-"]
    assert lengths(MODELS) == [
        ["BLEU by source words", "1-2", "3+"],
        ["a|b", "1.00", "-"],
        ["c", "2.00", "4.00"],
    ]


def test_text_is_aligned():
    assert aligned([["a", "long"], ["longer", "b"]]) == "a       long\nlonger     b"


def test_markdown():
    text = markdown("Title", MODELS, ["BLEU: x"], [["a|b", "p.png"]])
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
    one, other = csv.DictReader(StringIO(sheet(MODELS)))
    assert (one["name"], float(one["bleu"]), float(one["bleu 1-2"])) == ("a|b", 30.126, 1.0)
    assert one["bleu 3+"] == ""
    assert (other["aer"], other["perplexity"]) == ("", "inf")


def test_json():
    found = json.loads(as_json("Title", MODELS, ["n"]))
    assert (found["title"], found["notes"]) == ("Title", ["n"])
    assert found["models"][0] == ONE._asdict()
    assert found["models"][1]["perplexity"] is None
    assert found["models"][1]["aer"] is None
