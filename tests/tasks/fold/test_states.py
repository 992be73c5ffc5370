"""States of residues: windows, batches, the loss by hand, and what is put together again."""

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


def msa(max_tokens: int = 9) -> ResidueStateTask:
    model = awake(ResidueClassifier(Msa(RESIDUE_ID_COUNT, **SMALL), 3))
    return ResidueStateTask(model, Labels("CEH"), use_alignment=True, max_tokens=max_tokens)


def birnn(max_tokens: int = 9) -> ResidueStateTask:
    model = awake(
        ResidueClassifier(BiRnn(RESIDUE_ID_COUNT, dim=4, hidden_dim=3, pooling="mean"), 3)
    )
    return ResidueStateTask(model, Labels("CEH"), use_alignment=False, max_tokens=max_tokens)


def predict(task, *texts, on_progress=None):
    return task.predict([{"text": text} for text in texts], on_progress=on_progress)


def table(prediction):
    return torch.tensor([[*row.values()] for row in prediction.probabilities])


def awake(model):
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.4)
    return model.eval()


@pytest.mark.parametrize("longest", [1, 2, 5, 6, 7])
@pytest.mark.parametrize("length", [1, 5, 6, 7, 13, 40])
def test_every_residue_is_told_once_by_the_best_window(length, longest):
    found = residue_windows(length, longest)
    assert [at for one in found for at in one.predicted] == list(range(length))
    for one in found:
        assert len(one.context) == min(length, longest)
        assert set(one.predicted) <= set(one.context)
        for at in one.predicted:  # no other window has it nearer to its middle
            off = [abs(2 * at - other.context.start - other.context.stop + 1) for other in found]
            assert abs(2 * at - one.context.start - one.context.stop + 1) <= min(off) + 1


def test_windows_of_training_count_all_and_others_each_once():
    task, record = msa(8), {"text": LONG, "states": "CEH" * 6}
    every, once = (list(task.examples([record], all_residues=e)) for e in (True, False))
    assert [len(pair.source) for pair in every] == [8] * 4  # from 0, 4, 8 and 10 on
    assert sum(len(pair.target) for pair in every) == 32
    assert sum(state != IGNORE_INDEX for pair in once for state in pair.target) == len(LONG)
    assert all(state != IGNORE_INDEX for pair in every for state in pair.target)


def test_letters_become_numbers_and_gaps_fill_up():
    batch = msa().collate(
        [
            *msa().examples([{"text": "MKVB MK-V", "states": "CE?Q"}]),
            *msa().examples([{"text": "GA", "states": "HH"}]),
        ]
    )
    m, k, v, x, gap, g, a = (RESIDUE_IDS[letter] for letter in "MKVX-GA")
    wanted = [[[m, k, v, x], [m, k, gap, v]], [[g, a, 0, 0], [0, 0, 0, 0]]]
    assert batch.inputs["ids"].tolist() == wanted
    assert batch.inputs["valid"].tolist() == [[True] * 4, [True, True, False, False]]
    assert batch.inputs["sequence_valid"].tolist() == [[True, True], [True, False]]
    assert batch.states.tolist() == [
        [0, 1, IGNORE_INDEX, IGNORE_INDEX],
        [2, 2, IGNORE_INDEX, IGNORE_INDEX],
    ]


@pytest.mark.parametrize("make", [msa, birnn])
def test_the_loss_is_of_known_states_only(make):
    task = make()
    records = [{"text": "MKVLA", "states": "CE?HC"}, {"text": "GA", "states": "HH"}]
    batch = task.collate([*task.examples(records)])
    loss, total = task.loss(batch, 0), 0.0
    for record in records:
        [alone] = task.examples([record])
        logits = task.model(task.tensors([alone.source]))[0]
        for row, state in zip(log_softmax(logits, -1), record["states"], strict=True):
            total -= 0.0 if state == "?" else row["CEH".index(state)].item()
    assert loss.total.item() == pytest.approx(total, rel=1e-5)
    assert loss.count == 6


@pytest.mark.parametrize("make", [msa, birnn])
def test_what_is_told_hangs_on_the_protein_alone(make):
    task, texts = make(6), [LONG, "GA", LONG[:7], LONG[::-1]]
    counts = list[int]()
    together = predict(task, *texts, on_progress=counts.append)
    assert sum(counts) == len(texts)
    for text, one in zip(texts, together, strict=True):
        [alone] = predict(task, text)
        assert alone.states == one.states
        assert len(one.states) == len(text)
        torch.testing.assert_close(table(alone), table(one))
        assert all(sum(row.values()) == pytest.approx(1.0) for row in one.probabilities)
        assert (one.text, one.annotation) == (f"{text}\n{one.states}", (text, one.states))
        assert [max(row, key=row.get) for row in one.probabilities] == list(one.states)


def test_a_window_tells_its_middle():
    task = birnn(8)
    [one] = predict(task, LONG)
    for window in residue_windows(len(LONG), 8):
        part = LONG[window.context.start : window.context.stop]
        [alone] = predict(task, part)
        first = window.predicted.start - window.context.start
        there = table(one)[window.predicted.start : window.predicted.stop]
        wanted = table(alone)[first : first + len(window.predicted)]
        torch.testing.assert_close(there, wanted)


def test_aligned_sequences_are_read_by_who_can():
    for task, alike in ((msa(), False), (birnn(), True)):
        [one], [other] = (predict(task, t) for t in ("MKVLA", "MKVLA GKV-A"))
        assert (one.probabilities == other.probabilities) is alike


def test_what_residues_looked_at():
    seen = msa(4).attention_weights("MKVLA MRVLA")
    assert {name: tuple(w.shape) for name, w in seen.items()} == {"blocks.0.rows.look": (2, 4, 4)}
    assert birnn().attention_weights("MKV") == {}
    assert (msa().has_attention(), birnn().has_attention()) == (True, False)
    with pytest.raises(ValueError, match="model BiRnn has no attention to observe"):
        birnn().render({"text": "MKV"}, Surface())
    shown = msa(4).render({"text": "MKVLA MRVLA"}, Surface())
    for part in ("layer 1", "M1", "the first 4 residues", "weight:"):
        assert part in shown


def test_metrics_compare_states():
    task, records = msa(), [{"text": "MKVLA", "states": "CE?HC"}, {"text": "GA", "states": "HH"}]
    found = task.score(records)
    states = "".join(one.states for one in task.predict(records))
    right = sum(a == b for a, b in zip(states, "CE?HCHH", strict=True))
    assert found["accuracy"] == pytest.approx(100 * right / 6)
    assert (found["residues"], found["proteins"], found["majority"]) == (6, 2, 50.0)


def test_a_line_is_sequences():
    assert msa().parse("mkv m.v", "input 1") == {"text": "MKV M-V"}
    with pytest.raises(ValueError, match="input 1: residue 3 is '1'; give letters"):
        msa().parse("MK1", "input 1")
