"""Attention weights of many pairs, and outputs reranked by their coverage of the source."""

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


def build_run(model: dict[str, Any]) -> Run:
    """Return a run with large random weights, so that its tokens and attention differ."""
    words = train_tokenizer("words", TEXTS, 50)
    run = Run(resolve_settings({"model": model}), {"source": words, "target": words})
    with torch.no_grad():
        for weight in run.model.parameters():
            weight.mul_(3.0)
    return run


@pytest.fixture(scope="module", params=MODELS, ids=lambda model: model["kind"])
def run(request) -> Run:
    return build_run(request.param)


def test_weights_in_a_batch_are_those_of_single_pairs(run):
    ids = run.task.source.encode_ids(TEXTS)
    examples = [Example(9, source, target) for source, target in zip(ids, ids[::-1], strict=True)]
    tables = run.task.mean_attention_weights(examples)
    for example, table in zip(examples, tables, strict=True):
        batch = collate([example])
        with observe(run.model.eval()) as recorded, torch.no_grad():
            run.model.teacher_forced(
                run.model.remember(batch.source, batch.source_valid), batch.target_in
            )
        single_tables = []
        for name in run.model.cross_attentions:
            calls = recorded[name]
            heads = calls[0].shape[1] if calls[0].ndim == 4 else 1
            for head in range(heads):
                rows = [call[0, head] if call.ndim == 4 else call[0] for call in calls]
                single_tables.append(torch.cat(rows))
        expected = sum(single_tables) / len(single_tables)
        torch.testing.assert_close(table, expected, rtol=1e-4, atol=1e-5)
        assert table.shape == (len(example.target) + 1, len(example.source) + 1)


def n_best(run: Run, texts: Sequence[str], decode: BeamConfig) -> list[tuple[TextOutput, ...]]:
    """Return the n best outputs for each text."""
    decoding = build_decoding(decode, max_positions=math.inf)
    return [prediction.outputs for prediction in run.task.decode(texts, decoding=decoding)]


def ranked_by_coverage(run: Run, texts: Sequence[str], decode: BeamConfig) -> list[list[Any]]:
    """Return (score, text) of all that the beam finds, by eq. 14 of Wu et al. 2016, in loops."""
    beam = decode.model_copy(update={"coverage_penalty": 0.0, "n_best": decode.width})
    rankings = []
    for text, outputs in zip(texts, n_best(run, texts, beam), strict=True):
        ranking = []
        for output in outputs:
            weights = run.task.alignment(text, output.ids).weights.tolist()
            coverage = 0.0
            for i in range(len(text.split())):
                attended = 0.0
                for row in weights:
                    attended += row[i]
                coverage += math.log(max(min(attended, 1.0), 1e-9))
            length = len(output.ids) + 1
            score = output.log_prob / ((5 + length) / 6) ** decode.length_penalty
            ranking.append((score + decode.coverage_penalty * coverage, output.text))
        rankings.append(sorted(ranking, key=lambda pair: -pair[0]))
    return rankings


@pytest.mark.usefixtures("unchecked")  # the shapes are checked above
def test_coverage_against_a_loop(run, seed):
    decode = BeamConfig(width=4, n_best=3, coverage_penalty=1.0, length_penalty=0.6, max_length=12)
    rankings = ranked_by_coverage(run, TEXTS, decode)
    for outputs, ranking in zip(n_best(run, TEXTS, decode), rankings, strict=True):
        scores = [score for score, _ in ranking[:3]]
        assert [output.score for output in outputs] == pytest.approx(scores, abs=1e-4)
        assert {output.text for output in outputs} == {t for _, t in ranking[:3]}, f"seed {seed}"


@pytest.mark.usefixtures("unchecked")
def test_coverage_changes_the_best_output():
    """A penalty that outweighs everything else puts the output with the best coverage first."""
    run, texts = build_run(MODELS[0]), TEXTS[:3]
    decode = BeamConfig(width=5, coverage_penalty=1000.0, max_length=12)
    reranked = n_best(run, texts, decode)
    for outputs, ranking in zip(reranked, ranked_by_coverage(run, texts, decode), strict=True):
        assert outputs[0].score == pytest.approx(ranking[0][0], rel=1e-4)
        assert len(outputs) == 1
    plain = n_best(run, texts, decode.model_copy(update={"coverage_penalty": 0.0}))
    assert [outputs[0].score for outputs in plain] != [outputs[0].score for outputs in reranked]


def test_a_model_without_attention_has_no_coverage():
    run = build_run({"kind": "encdec", "dim": 8})
    with pytest.raises(ValueError, match="EncoderDecoder has no attention to the source"):
        n_best(run, ["a b"], BeamConfig(width=2, coverage_penalty=0.2, max_length=5))
