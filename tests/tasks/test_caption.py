"""The task of captions: its losses by hand, its searches, and where its words look."""

import numpy as np
import pytest
import torch

from regard.attention.reinforce import sample_attention
from regard.batching.example import Example
from regard.batching.pictures import PicturePreprocessor
from regard.config.decode import BeamConfig, GreedyConfig, SampleConfig
from regard.config.load import resolve
from regard.data.formats.images import ImageReader
from regard.data.synthetic.digits import Digits
from regard.decoding.constraints import Constraints
from regard.models.caption import ShowAttend, doubly_stochastic_penalty
from regard.tasks.caption import CaptionTask
from regard.tasks.generation import build_search
from regard.text.train import train_tokenizer
from regard.train.caption import CaptionRun, boxed_tokens

RECORDS = list(Digits(12, side=16).read("train"))
SMALL = {"dim": 6, "image_dim": 4}


def task(**settings) -> CaptionTask:
    text = train_tokenizer("words", [record["caption"] for record in RECORDS], 50)
    model = ShowAttend(text.size, 16, 1, **SMALL, **settings)
    return CaptionTask(model, PicturePreprocessor(ImageReader((16, 16), 1)), text)


def test_a_caption_is_learnt_to_its_end():
    it = task()
    pairs = list(it.examples(RECORDS, 50))
    assert [pair.index for pair in pairs] == list(range(12))
    batch = it.collate(pairs)
    it.model.eval()
    with torch.no_grad():
        logits = it.model.logits(
            it.model.teacher_forced(it.model.remember(batch.pictures), batch.target_in)
        )
    told = logits.log_softmax(-1).gather(-1, batch.target_out[..., None])[..., 0]
    wanted = -told[batch.target_valid].sum()
    found = it.negative_log_likelihood(pairs)
    assert found.total.item() == pytest.approx(wanted.item(), rel=1e-4)
    assert found.count == sum(len(pair.target) + 1 for pair in pairs)
    several = {"picture": RECORDS[0]["picture"], "captions": ("3 top left", "7 top left , 1")}
    assert [len(pair.target) for pair in it.examples([several], 50)] == [3, 5]
    assert [len(pair.target) for pair in it.examples([several], 4)] == [3]


def test_the_doubly_stochastic_term_is_for_training():
    it = task()
    batch = it.collate(list(it.examples(RECORDS, 50)))
    it.model.train()
    plain, more = it.loss(batch), it.loss(batch, doubly_stochastic_weight=0.5)
    with torch.no_grad():
        weights = it.model.decode_with_attention(
            it.model.remember(batch.pictures), batch.target_in
        ).weights
    wanted = 0.5 * doubly_stochastic_penalty(weights, batch.target_valid).sum()
    assert (more.total - plain.total).item() == pytest.approx(wanted.item(), rel=1e-3)
    it.model.eval()
    assert it.loss(batch, doubly_stochastic_weight=0.5).total.item() == it.loss(batch).total.item()


def test_hard_attention_is_taught_by_the_reward_of_whole_captions():
    """With the same draws: the loss is -log p - ((log p - b) log p(s) + 0.01 H), and b moves."""
    it = task(normalize="reinforce", expectation_rate=0.0)
    batch = it.collate(list(it.examples(RECORDS, 50)))
    model = it.model.train()
    model.reinforce.baseline.fill_(-3.0)
    torch.manual_seed(5)
    with torch.no_grad(), sample_attention(model, 0.0) as episode:
        logits = model.logits(model.teacher_forced(model.remember(batch.pictures), batch.target_in))
    torch.manual_seed(5)
    found = it.loss(batch)
    steps, wanted, rewards = logits.log_softmax(-1), 0.0, []
    [drawn], [entropies] = episode.log_prob.values(), episode.entropy.values()
    for row, valid in enumerate(batch.target_valid):
        length = int(valid.sum())
        likely = sum(steps[row, t, batch.target_out[row, t]].item() for t in range(length))
        of_places = sum(drawn[t][row, 0].item() for t in range(length))
        entropy = sum(entropies[t][row, 0].item() for t in range(length))
        wanted -= likely + (likely + 3.0) * of_places + 0.01 * entropy
        rewards.append(likely)
    assert found.total.item() == pytest.approx(wanted, rel=1e-4)
    moved = 0.9 * -3.0 + 0.1 * np.mean(rewards)
    assert model.reinforce.baseline.item() == pytest.approx(moved, rel=1e-4)
    found.total.backward()
    assert model.attention.score.energy.grad.any()


def test_hard_attention_may_be_soft_at_first():
    """Then its loss is that of soft attention with the same weights, but for the entropies."""
    hard, soft = task(normalize="reinforce", entropy_weight=0.0), task()
    weights = hard.model.state_dict()
    soft.model.load_state_dict({k: v for k, v in weights.items() if "baseline" not in k})
    batch = hard.collate(list(hard.examples(RECORDS, 50)))
    hard.model.train()
    first, again = (hard.loss(batch, soft=True).total.item() for _ in range(2))
    assert first == again == pytest.approx(soft.loss(batch).total.item(), rel=1e-4)
    drawn = {hard.loss(batch).total.item() for _ in range(3)}
    assert len(drawn) == 3


@pytest.mark.parametrize(
    "decode", [GreedyConfig(), BeamConfig(width=3, n_best=2), SampleConfig(seed=3)]
)
def test_every_search_serves(decode):
    it, pictures = task(), [record["picture"] for record in RECORDS]
    rules = Constraints(max_length=6)
    found = it.predict(pictures, build_search(decode), rules)
    assert len(found) == 12
    alone = it.predict(pictures[3:4], build_search(decode), rules)
    assert alone[0][0].ids == found[3][0].ids
    look = it.caption_attention(pictures[3], found[3][0].ids)
    assert look.words[-1] == "</s>"
    assert look.weights.shape == (len(look.words), 4, 4)
    assert look.weights.sum((1, 2)).tolist() == pytest.approx([1.0] * len(look.words), abs=1e-5)


def test_the_middle_of_the_greatest_weight():
    weights = torch.zeros(4, 4)
    weights[1, 3] = 0.7
    assert task().attention_peak(weights) == (6.0, 14.0)


def test_boxes_of_words_are_boxes_of_tokens():
    spans = [(0, 1), (2, 5), (6, 10), (11, 12), (13, 14)]
    boxes = ((0, (0, 0, 8, 8)), (4, (8, 8, 16, 16)))
    assert list(boxed_tokens("3 top left , 7", spans, boxes)) == [
        (0, boxes[0][1]),
        (4, boxes[1][1]),
    ]


def test_pointing_is_of_the_cell_that_is_spoken_of(monkeypatch):
    """A model that looks at the right cell for each digit word has all of it, one that looks at
    the top left has those that are there; also where pictures are read larger."""
    data = {"kind": "digits", "size": 12, "side": 16, "held_out": 4}
    settings = resolve(
        {"task": "caption", "data": data, "image": {"size": [32, 32], "channels": 1}}
    )
    run = CaptionRun(settings, CaptionRun.build_vocabularies(settings, Digits(12, side=16)))

    def right(pairs: list[Example]) -> list[torch.Tensor]:
        found = []
        for record, pair in zip(RECORDS, pairs, strict=True):
            weights = torch.zeros(len(pair.target) + 1, 4, 4)
            for word, (top, left, _, _) in record["boxes"]:
                weights[word, top // 4 + 1, left // 4] = 1.0
            found.append(weights)
        return found

    monkeypatch.setattr(run.task, "attention_weights", right)
    assert run.pointing_accuracy(RECORDS) == 100
    monkeypatch.setattr(
        run.task,
        "attention_weights",
        lambda _: [torch.eye(1, 16).view(1, 4, 4).expand(20, 4, 4)] * 12,
    )
    boxes = [box for record in RECORDS for _, box in record["boxes"]]
    assert run.pointing_accuracy(RECORDS) == pytest.approx(
        100 * sum(box[:2] == (0, 0) for box in boxes) / len(boxes)
    )
    assert run.pointing_accuracy([{"picture": RECORDS[0]["picture"], "caption": "3"}]) is None
