"""States of residues: windows, batches, the loss by hand, predictions of long proteins."""

import pytest
import torch
from torch.nn.functional import log_softmax

from regard.models.birnn import BiRnn
from regard.models.msa import Msa
from regard.tasks.fold.model import RESIDUE_ID_COUNT, RESIDUE_IDS, ResidueClassifier
from regard.tasks.fold.states import IGNORE_INDEX, ResidueStateTask, residue_windows
from regard.text.labels import Labels
from regard.view.terminal import Surface

SMALL = {"dim": 6, "pair_dim": 4, "heads": 2, "pair_heads": 1, "head_dim": 3, "layers": 1}
LONG = "MKVLAAGDEFWYTTSRNQ"


def build_msa(max_tokens: int = 9) -> ResidueStateTask:
    model = randomized(ResidueClassifier(Msa(RESIDUE_ID_COUNT, **SMALL), 3))
    return ResidueStateTask(model, Labels("CEH"), use_alignment=True, max_tokens=max_tokens)


def build_birnn(max_tokens: int = 9) -> ResidueStateTask:
    model = randomized(
        ResidueClassifier(BiRnn(RESIDUE_ID_COUNT, dim=4, hidden_dim=3, pooling="mean"), 3)
    )
    return ResidueStateTask(model, Labels("CEH"), use_alignment=False, max_tokens=max_tokens)


def predict(task, *texts, on_progress=None):
    return task.predict([{"text": text} for text in texts], on_progress=on_progress)


def probability_table(prediction):
    return torch.tensor([[*row.values()] for row in prediction.probabilities])


def randomized(model):
    """Draw all weights from N(0, 0.16)."""
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.4)
    return model.eval()


@pytest.fixture(scope="module")
def msa() -> ResidueStateTask:
    torch.manual_seed(0)
    return build_msa()


def distance_to_center(position: int, context: range) -> int:
    """Return twice the distance of a residue to the center of a window."""
    return abs(2 * position - context.start - context.stop + 1)


@pytest.mark.parametrize("max_residues", [1, 2, 5, 6, 7])
@pytest.mark.parametrize("length", [1, 5, 6, 7, 13, 40])
def test_the_window_with_the_nearest_center_predicts_a_residue(length, max_residues):
    windows = residue_windows(length, max_residues)
    assert [position for w in windows for position in w.predicted] == list(range(length))
    for window in windows:
        assert len(window.context) == min(length, max_residues)
        assert set(window.predicted) <= set(window.context)
        for position in window.predicted:
            nearest = min(distance_to_center(position, other.context) for other in windows)
            assert distance_to_center(position, window.context) <= nearest + 1


def test_training_counts_all_residues_of_a_window_and_evaluation_each_once():
    task, record = build_msa(8), {"text": LONG, "states": "CEH" * 6}
    training, evaluation = (list(task.examples([record], all_residues=e)) for e in (True, False))
    assert [len(example.columns) for example in training] == [8] * 4  # from 0, 4, 8 and 10 on
    assert sum(len(example.states) for example in training) == 32
    in_loss = [state != IGNORE_INDEX for example in evaluation for state in example.states]
    assert sum(in_loss) == len(LONG)
    assert all(state != IGNORE_INDEX for example in training for state in example.states)


def test_batches_are_padded_and_unknown_states_are_ignored(msa):
    batch = msa.collate(
        [
            *msa.examples([{"text": "MKVB MK-V", "states": "CE?Q"}]),
            *msa.examples([{"text": "GA", "states": "HH"}]),
        ]
    )
    m, k, v, x, gap, g, a = (RESIDUE_IDS[letter] for letter in "MKVX-GA")
    expected = [[[m, k, v, x], [m, k, gap, v]], [[g, a, 0, 0], [0, 0, 0, 0]]]
    assert batch.inputs["ids"].tolist() == expected
    assert batch.inputs["valid"].tolist() == [[True] * 4, [True, True, False, False]]
    assert batch.inputs["sequence_valid"].tolist() == [[True, True], [True, False]]
    assert batch.states.tolist() == [
        [0, 1, IGNORE_INDEX, IGNORE_INDEX],
        [2, 2, IGNORE_INDEX, IGNORE_INDEX],
    ]


@pytest.mark.parametrize("build", [build_msa, build_birnn])
def test_loss_counts_known_states_only(build):
    task = build()
    records = [{"text": "MKVLA", "states": "CE?HC"}, {"text": "GA", "states": "HH"}]
    batch = task.collate([*task.examples(records)])
    loss, total = task.loss(batch, 0), 0.0
    for record in records:
        [alone] = task.examples([record])
        logits = task.model(task.tensors([alone.columns]))[0]
        for row, state in zip(log_softmax(logits, -1), record["states"], strict=True):
            total -= 0.0 if state == "?" else row["CEH".index(state)].item()
    assert loss.total.item() == pytest.approx(total, rel=1e-5)
    assert loss.count == 6


@pytest.mark.parametrize("build", [build_msa, build_birnn])
def test_predictions_do_not_depend_on_the_batch(build):
    task, texts = build(6), [LONG, "GA", LONG[:7], LONG[::-1]]
    counts = list[int]()
    predictions = predict(task, *texts, on_progress=counts.append)
    assert sum(counts) == len(texts)
    for text, prediction in zip(texts, predictions, strict=True):
        states, probabilities = prediction.states, prediction.probabilities
        [alone] = predict(task, text)
        assert alone.states == states
        assert len(states) == len(text)
        torch.testing.assert_close(probability_table(alone), probability_table(prediction))
        assert all(sum(row.values()) == pytest.approx(1.0) for row in probabilities)
        assert prediction.text == f"{text}\n{states}"
        assert prediction.annotation == (text, states)
        assert [max(row, key=row.get) for row in probabilities] == list(states)


def test_predictions_of_a_long_protein_are_those_of_its_windows():
    task = build_birnn(8)
    [prediction] = predict(task, LONG)
    for window in residue_windows(len(LONG), 8):
        part = LONG[window.context.start : window.context.stop]
        [alone] = predict(task, part)
        first = window.predicted.start - window.context.start
        joined = probability_table(prediction)[window.predicted.start : window.predicted.stop]
        expected = probability_table(alone)[first : first + len(window.predicted)]
        torch.testing.assert_close(joined, expected)


def test_only_msa_reads_aligned_sequences(msa):
    for task, ignores_alignment in ((msa, False), (build_birnn(), True)):
        [single], [aligned] = (predict(task, t) for t in ("MKVLA", "MKVLA GKV-A"))
        assert (single.probabilities == aligned.probabilities) is ignores_alignment


def test_attention_among_residues(msa):
    short, birnn = build_msa(4), build_birnn()
    attention = short.attention_weights("MKVLA MRVLA")
    assert {name: tuple(w.shape) for name, w in attention.items()} == {
        "encoder.blocks.0.rows.look": (2, 4, 4)
    }
    assert birnn.attention_weights("MKV") == {}
    assert (msa.has_attention(), birnn.has_attention()) == (True, False)
    with pytest.raises(ValueError, match="model BiRnn has no attention to observe"):
        birnn.render({"text": "MKV"}, Surface())
    text = short.render({"text": "MKVLA MRVLA"}, Surface())
    for part in ("layer 1", "M1", "the first 4 residues", "weight:"):
        assert part in text


def test_metrics_compare_states(msa):
    records = [{"text": "MKVLA", "states": "CE?HC"}, {"text": "GA", "states": "HH"}]
    metrics = msa.score(records)
    states = "".join(prediction.states for prediction in msa.predict(records))
    correct = sum(a == b for a, b in zip(states, "CE?HCHH", strict=True))
    assert metrics["accuracy"] == pytest.approx(100 * correct / 6)
    assert (metrics["residues"], metrics["proteins"], metrics["majority"]) == (6, 2, 50.0)


def test_lines_become_aligned_sequences(msa):
    assert msa.parse("mkv m.v", "input 1") == {"text": "MKV M-V"}
    with pytest.raises(ValueError, match="input 1: residue 3 is '1'; give letters"):
        msa.parse("MK1", "input 1")
