"""A small translator finds the alignments that were planted in its data."""

import time
from pathlib import Path

from regard.run import Run
from regard.tasks.alignment import alignment_error, gold_from_records
from regard.tasks.load import resolve_settings
from regard.training.trainer import Trainer


def test_attention_finds_what_was_planted(tmp_path: Path, seed: int, unchecked: None):
    """Sentences are turned around, so that words move far; benchmarks/reorder.py has the others."""
    settings = resolve_settings(
        {
            "seed": seed,
            "data": {"kind": "reorder", "order": "far", "size": 5000, "held_out": 200}
            | {"vocabulary_size": 12, "min_words": 4, "max_words": 8},
            "text": {"kind": "words"},
            "model": {"kind": "luong", "score": "general", "dim": 32, "hidden_dim": 64}
            | {"layers": 1, "init": "scaled", "reverse": False},
            "train": {"steps": 350, "examples_per_batch": 64, "learning_rate": 5e-3}
            | {"schedule": {"kind": "cosine", "warmup": 50}},
            "decode": {"kind": "greedy"},
        }
    )
    start = time.process_time()
    for _ in Trainer(settings, tmp_path):
        pass
    run = Run.load(tmp_path)
    records = list(run.corpus().read("test"))
    aer = alignment_error(run.task.aligner(), gold_from_records(records))
    outputs = run.predict(records)
    right = sum(o.text == r["target"] for o, r in zip(outputs, records, strict=True))
    seconds = time.process_time() - start
    print(f"AER {aer:.3f}, {right} of {len(records)} right after {seconds:.1f} s, seed {seed}")
    assert aer is not None
    assert aer < 0.05, f"seed {seed}"
    assert right > 180, f"seed {seed}"
