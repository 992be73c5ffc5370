"""The list of metrics is literal, short, and true."""

import subprocess
import sys

from regard.metric import (
    alignment,
    answers,
    bits,
    caption,
    classes,
    dialogue,
    entities,
    fold,
    language,
    music,
    summary,
    translation,
    worlds,
)
from regard.metric.catalogue import METRICS


def test_every_metric_exists():
    texts = (translation, language, summary, dialogue, answers, caption)
    places = (*texts, music, bits, fold, worlds, classes, entities, alignment.Agreement)
    for name, description in METRICS.items():
        assert any(hasattr(place, name) for place in places), name
        assert "\n" not in description
        assert 0 < len(description) <= 90


def test_metrics_run_without_torch():
    code = (
        "import sys; import regard.metric.translation, regard.metric.alignment, "
        "regard.metric.language, regard.metric.classes, regard.metric.entities, "
        "regard.metric.answers, regard.metric.summary, regard.metric.bits, regard.metric.fold, "
        "regard.metric.worlds; "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_catalogue_imports_nothing():
    code = (
        "import sys; before = set(sys.modules); import regard.metric.catalogue; "
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["regard", "regard.metric", "regard.metric.catalogue"]
