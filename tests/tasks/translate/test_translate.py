"""Weights of many pairs at once, and outputs ranked by how much of the source was looked at."""

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from regard.attention.observe import observe
from regard.batching.example import Example, collate
from regard.config.decode import BeamConfig
from regard.run import Run
from regard.tasks.generation import TextOutput, build_decoding
from regard.tasks.load import resolve_settings
from regard.text.train import train_tokenizer

TEXTS = ["a b c d e", "b a", "e d c b a a", "c", ""]
MODELS = [
    {"kind": "rnnsearch", "dim": 8, "init": "scaled"},
    {"kind": "luong", "dim": 8, "init": "scaled", "window": "local_p", "radius": 2},
    {"kind": "luong", "dim": 8, "init": "scaled", "input_feeding": False, "normalize": "sparsemax"},
    {"kind": "transformer", "dim": 8, "heads": 2, "layers": 2},
    {"kind": "rnmt", "dim": 8, "heads": 2, "layers": 1, "decoder_layers": 2},
]


def made(model: dict[str, Any]) -> Run:
    """A model whose random weights are large, so that its words and looks differ."""
    words = train_tokenizer("words", TEXTS, 50)
    run = Run(resolve_settings({"model": model}), {"source": words, "target": words})
    with torch.no_grad():
        for weight in run.model.parameters():
            weight.mul_(3.0)
    return run


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m["kind"])
def test_many_pairs_are_seen_as_one_is(model):
    run = made(model)
    ids = run.task.source.encode_ids(TEXTS)
    pairs = [Example(9, source, target) for source, target in zip(ids, ids[::-1], strict=True)]
    tables = run.task.mean_attention_weights(pairs)
    for pair, table in zip(pairs, tables, strict=True):
        batch = collate([pair])
        with observe(run.model.eval()) as seen, torch.no_grad():
            run.model.teacher_forced(
                run.model.remember(batch.source, batch.source_valid), batch.target_in
            )
        alone = []
        for name in run.model.cross_attentions:
            calls = seen[name]
            heads = calls[0].shape[1] if calls[0].ndim == 4 else 1
            for head in range(heads):
                rows = [c[0, head] if c.ndim == 4 else c[0] for c in calls]
                alone.append(torch.cat(rows))
        torch.testing.assert_close(table, sum(alone) / len(alone), rtol=1e-4, atol=1e-5)
        assert table.shape == (len(pair.target) + 1, len(pair.source) + 1)


def decoded(run: Run, texts: Sequence[str], decode: BeamConfig) -> list[tuple[TextOutput, ...]]:
    """The n best outputs of each text."""
    decoding = build_decoding(decode, max_positions=math.inf)
    return [prediction.outputs for prediction in run.task.decode(texts, decoding=decoding)]


def ranked(run: Run, text: str, decode: BeamConfig) -> list[tuple[float, str]]:
    """All that the beam finds, ranked by eq. 14 of Wu et al. 2016, in loops."""
    plain = decode.model_copy(update={"coverage_penalty": 0.0, "n_best": decode.width})
    found = []
    for one in decoded(run, [text], plain)[0]:
        weights = run.task.alignment(text, one.ids).weights.tolist()
        cover = 0.0
        for i in range(len(text.split())):
            looked = 0.0
            for row in weights:
                looked += row[i]
            cover += math.log(max(min(looked, 1.0), 1e-9))
        length = len(one.ids) + 1
        score = one.log_prob / ((5 + length) / 6) ** decode.length_penalty
        found.append((score + decode.coverage_penalty * cover, one.text))
    return sorted(found, key=lambda pair: -pair[0])


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m["kind"])
def test_coverage_against_a_loop(model, seed):
    run = made(model)
    decode = BeamConfig(width=4, n_best=3, coverage_penalty=1.0, length_penalty=0.6, max_length=12)
    outputs = decoded(run, TEXTS, decode)
    for text, best in zip(TEXTS, outputs, strict=True):
        wanted = ranked(run, text, decode)[:3]
        assert [one.score for one in best] == pytest.approx([s for s, _ in wanted], abs=1e-4)
        assert {one.text for one in best} == {t for _, t in wanted}, f"seed {seed}"


def test_coverage_changes_what_is_best():
    """With a penalty that outweighs all else, what looked at most comes first."""
    run = made(MODELS[0])
    decode = BeamConfig(width=5, coverage_penalty=1000.0, max_length=12)
    for text, best in zip(TEXTS[:3], decoded(run, TEXTS[:3], decode), strict=True):
        cover = ranked(run, text, decode)[0][0]
        assert best[0].score == pytest.approx(cover, rel=1e-4)
        assert len(best) == 1
    plain = decoded(run, TEXTS[:3], decode.model_copy(update={"coverage_penalty": 0.0}))
    covered = decoded(run, TEXTS[:3], decode)
    assert [one[0].score for one in plain] != [one[0].score for one in covered]


def test_a_model_without_attention_cannot_cover():
    run = made({"kind": "encdec", "dim": 8})
    with pytest.raises(ValueError, match="EncoderDecoder has no attention to the source"):
        decoded(run, ["a b"], BeamConfig(width=2, coverage_penalty=0.2, max_length=5))
