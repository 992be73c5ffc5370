"""Tests of the catalogue of metrics: it imports nothing, and every metric exists."""

import subprocess
import sys

from regard.metrics import (
    alignment,
    answers,
    bandit,
    bits,
    caption,
    classification,
    dialogue,
    entities,
    fold,
    language,
    music,
    summary,
    translation,
)
from regard.metrics.catalogue import METRICS


def test_every_metric_exists():
    texts = (translation, language, summary, dialogue, answers, caption)
    modules = (*texts, music, bits, fold, bandit, classification, entities, alignment.Agreement)
    for name, description in METRICS.items():
        assert any(hasattr(module, name) for module in modules), name
        assert "\n" not in description
        assert 0 < len(description) <= 90


def test_metrics_run_without_torch():
    code = (
        "import sys; import regard.metrics.translation, regard.metrics.alignment, "
        "regard.metrics.language, regard.metrics.classification, regard.metrics.entities, "
        "regard.metrics.answers, regard.metrics.summary, regard.metrics.bits, regard.metrics.fold, "
        "regard.metrics.bandit; "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_catalogue_imports_nothing():
    code = (
        "import sys; before = set(sys.modules); import regard.metrics.catalogue; "
        "print(*sorted(set(sys.modules) - before))"
    )
    completed = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert completed.stdout.split() == ["regard", "regard.metrics", "regard.metrics.catalogue"]
