"""Trust: measures that are right where the truth is known."""

import math
import random

import pytest
import torch

from regard.attention.observe import intervene, observe
from regard.explain.faithfulness import (
    attention_per_token,
    build_permutation_edit,
    faithfulness,
    gradient_attention,
    uniform,
)
from regard.tasks.load import resolve_settings
from regard.training.trainer import Trainer


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    """Taught that one of two words decides: where the answer lies is known."""
    folder, draw = tmp_path_factory.mktemp("judge"), random.Random(1)
    rows = []
    for number in range(300):
        label = ("bad", "good")[number % 2]
        words = [f"w{draw.randrange(20)}" for _ in range(7)]
        words.insert(draw.randrange(8), f"{label}word")
        rows.append(f"{' '.join(words)}\t{label}\n")
    for split, some in (("train", rows[20:]), ("dev", rows[:20]), ("test", rows[:20])):
        (folder / f"{split}.tsv").write_text("".join(some))
    files = {split: str(folder / f"{split}.tsv") for split in ("train", "dev", "test")}
    settings = {
        "task": "classify",
        "data": {"kind": "labeled", **files},
        "text": {"kind": "words"},
        "model": {"kind": "birnn", "dim": 16, "hidden_dim": 16},
        "train": {"steps": 60, "examples_per_batch": 32, "learning_rate": 0.01},
    }
    fit = Trainer(resolve_settings(settings), folder / "run", lambda _: None)
    list(fit)
    return fit.run


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    settings = {
        "task": "translate",
        "data": {"kind": "reorder", "size": 40, "held_out": 6, "vocabulary_size": 6},
        "text": {"kind": "words"},
        "model": {"kind": "transformer", "dim": 8, "heads": 2, "layers": 2, "hidden_dim": 8},
        "train": {"steps": 4, "examples_per_batch": 8},
        "decode": {"kind": "greedy", "max_length": 6},
    }
    fit = Trainer(resolve_settings(settings), tmp_path_factory.mktemp("run"), lambda _: None)
    list(fit)
    return fit.run


def test_the_word_that_decides_is_found(judge):
    for record in list(judge.corpus().read("test"))[:5]:
        found = faithfulness(judge, record)
        assert found.output == record["label"]  # else the model has not learned it
        best = max(found.tokens, key=lambda one: one.leave_one_out)
        assert best.text == f"{record['label']}word"


def test_leaving_out_is_what_it_says(judge):
    text = next(judge.corpus().read("test"))["text"]
    found, read = faithfulness(judge, {"text": text}), judge.task.readout({"text": text})
    with torch.no_grad():
        whole = float(read.log_prob(read.ids))
        less = float(read.log_prob([n for at, n in enumerate(read.ids) if at != 1]))
    assert found.tokens[1].leave_one_out == pytest.approx(whole - less, abs=1e-5)


def test_gradients_are_those_of_a_difference(judge):
    """|x . g| is how log p moves as the vector is made a little longer."""
    text = next(judge.corpus().read("test"))["text"]
    read = judge.task.readout({"text": text})
    found = faithfulness(judge, {"text": text}).tokens
    table = judge.model.encoder.words.weight
    number = read.ids[2]
    assert read.ids.count(number) == 1
    with torch.no_grad():
        kept, small = table[number].clone(), 1e-2
        ends = []
        for factor in (1 + small, 1 - small):
            table[number] = kept * factor
            ends.append(float(read.log_prob(read.ids)))
        table[number] = kept
    slope = abs(ends[0] - ends[1]) / (2 * small)
    assert found[2].gradient == pytest.approx(slope, abs=2e-3, rel=0.05)


def test_a_translation_has_no_verdict(translator):
    found = faithfulness(translator, next(translator.corpus().read("test")))
    assert found.label_changes is None
    numbers = [
        found.uniform_drop,
        found.permuted_drop,
        found.top_token_drop,
        found.other_tokens_drop,
    ]
    assert all(math.isfinite(x) for x in numbers)


def test_attention_is_the_mean_of_all_that_looked(translator):
    text = next(translator.corpus().read("test"))["source"]
    read = translator.task.readout({"source": text})
    _, looked = attention_per_token(translator.model, read)
    with torch.no_grad(), observe(translator.model, read.attentions) as weights:
        read.log_prob(read.ids)
    table = torch.stack(list(weights.joined().values()))  # l b h t s
    assert looked == pytest.approx(table.mean((0, 1, 2, 3))[: len(read.ids)].tolist(), abs=1e-6)


def test_uniform_and_permuted_keep_their_sums_and_what_is_hidden():
    weights = torch.tensor([[[0.7, 0.3, 0.0, 0.0], [0.1, 0.2, 0.3, 0.4]]])
    even = uniform(weights)
    assert even[0, 0].tolist() == [0.5, 0.5, 0.0, 0.0]
    other = build_permutation_edit(torch.Generator().manual_seed(1))(weights.expand(50, 2, 4))
    assert (other[:, 0, 2:] == 0).all()
    assert other.sort(-1).values.equal(weights.expand(50, 2, 4).sort(-1).values)
    assert len({tuple(row.tolist()) for row in other[:, 1]}) > 10


def test_edits_reach_the_model(translator):
    text = next(translator.corpus().read("test"))["source"]
    read = translator.task.readout({"source": text})
    with torch.no_grad():
        before = float(read.log_prob(read.ids))
        with intervene(translator.model, dict.fromkeys(read.attentions, uniform)):
            after = float(read.log_prob(read.ids))
    assert faithfulness(translator, {"source": text}).uniform_drop == pytest.approx(
        before - after, abs=1e-5
    )


def test_one_token_is_too_few(judge):
    with pytest.raises(ValueError, match="two tokens or more"):
        faithfulness(judge, {"text": "word"})


def test_a_pull_is_the_slope_of_an_attention(translator):
    """a da is how log p moves as one weight is made a little greater, by differences."""
    text = next(translator.corpus().read("test"))["source"]
    read, name = translator.task.readout({"source": text}), translator.task.cross_attentions[0]
    found, small = gradient_attention(translator, {"source": text})[name][0], 1e-2

    def moved(head: int, q: int, k: int, by: float) -> float:
        def edit(weights: torch.Tensor) -> torch.Tensor:
            other = weights.clone()
            other[0, head, q, k] *= 1 + by
            return other

        with torch.no_grad(), intervene(translator.model, {name: edit}):
            return float(read.log_prob(read.ids))

    for head, q, k in ((0, 0, 0), (1, 2, 1), (0, 1, 3)):
        slope = (moved(head, q, k, small) - moved(head, q, k, -small)) / (2 * small)
        assert found[head, q, k].item() == pytest.approx(max(slope, 0.0), abs=2e-4)
