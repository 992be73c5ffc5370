"""The report as a page."""

import re

from regard.metrics.comparison import ModelResult
from regard.view.attention_map import AttentionMap
from regard.view.html_report import as_html
from regard.view.report import ComparisonReport

PNG = b"\x89PNG\r\n"


def test_every_number_is_there_and_nothing_is_run():
    attack = "</td><script>alert(1)</script>"
    models = [
        ModelResult("a", {"parameters": 1234, "bleu": 31.254}, {}),
        ModelResult(attack, {"parameters": 9, "bleu": None}, {}),
    ]
    maps = [(attack, AttentionMap([[1.0]], [attack], ["b"]))]
    text = as_html(ComparisonReport(attack, models, [], [attack]), [(attack, PNG)], maps)
    assert "<h1" in text
    assert "Comparison of 2 models</h1>" in text
    assert "<td>1,234</td><td>31.25</td>" in text
    assert "<td>9</td><td>-</td>" in text
    scripts = re.findall(r"<script[^>]*>", text)
    assert scripts == ['<script type="application/json">', "<script>"]
    assert "alert(1)</script>" not in text
    assert "data:image/png;base64,iVBORw0K" in text
    assert "http" not in re.sub("http(://www.w3.org/2000/svg|-equiv)", "", text)
