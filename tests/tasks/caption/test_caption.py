"""Captioning: losses by hand, searches, and the attention of words."""

import math

import numpy as np
import pytest
import torch

from regard.attention.reinforce import sample_attention
from regard.batching.images import ImagePreprocessor
from regard.config.decode import BeamConfig, GreedyConfig, SampleConfig
from regard.data.formats.images import ImageReader
from regard.data.synthetic.digits import Digits
from regard.models.caption import ShowAttend, doubly_stochastic_penalty
from regard.run import Run
from regard.tasks.base import BatchOptions
from regard.tasks.caption.examples import CaptionExample
from regard.tasks.caption.pointing import attention_peak, boxed_tokens, measure_pointing
from regard.tasks.caption.task import CaptionTask
from regard.tasks.generation import build_decoding
from regard.tasks.load import resolve_settings
from regard.text.train import train_tokenizer
from regard.view.terminal import Surface

RECORDS = list(Digits(12, side=16).read("train"))
SMALL = {"dim": 6, "image_dim": 4}


TEXT = train_tokenizer("words", [record["caption"] for record in RECORDS], 50)


def build_task(decode=GreedyConfig(max_length=6), parameters=None, **settings) -> CaptionTask:  # noqa: B008
    return CaptionTask(
        ShowAttend(TEXT.size, 16, 1, **SMALL, **settings),
        ImagePreprocessor(ImageReader((16, 16), 1)),
        TEXT,
        decoding=build_decoding(decode, math.inf),
        **(parameters or {}),
    )


@pytest.fixture(scope="module")
def task() -> CaptionTask:
    """A task with random weights, for tests that do not change it."""
    torch.manual_seed(0)
    return build_task()


def test_loss_counts_every_token_and_the_end(task):
    examples = list(task.examples(RECORDS))
    assert [example.index for example in examples] == list(range(12))
    batch = task.collate(examples)
    model = task.model.eval()
    with torch.no_grad():
        logits = model.logits(model.teacher_forced(model.remember(batch.images), batch.target_in))
    log_probs = logits.log_softmax(-1).gather(-1, batch.target_out[..., None])[..., 0]
    expected = -log_probs[batch.target_valid].sum()
    loss = task.negative_log_likelihood(RECORDS)
    assert loss.total.item() == pytest.approx(expected.item(), rel=1e-4)
    assert loss.count == sum(len(example.caption) + 1 for example in examples)


def test_examples_of_several_captions_and_of_long_ones(task):
    record = {"image": RECORDS[0]["image"], "captions": ("3 top left", "7 top left , 1")}
    assert [len(example.caption) for example in task.examples([record])] == [3, 5]
    short = build_task(parameters={"max_tokens": 4})
    assert [len(example.caption) for example in short.examples([record])] == [3]
    with pytest.raises(ValueError, match="captions are missing"):
        build_task(parameters={"max_tokens": 1}).negative_log_likelihood([record])


def test_doubly_stochastic_penalty_is_part_of_the_training_loss_only():
    task = build_task()
    batch = task.collate(list(task.examples(RECORDS)))
    plain = task.loss(batch, 0)
    evaluated = task.negative_log_likelihood(RECORDS).total.item()
    task.doubly_stochastic_weight = 0.5
    penalized = task.loss(batch, 0)
    model = task.model
    with torch.no_grad():
        weights = model.decode_with_attention(model.remember(batch.images), batch.target_in).weights
    expected = 0.5 * doubly_stochastic_penalty(weights, batch.target_valid).sum()
    assert (penalized.total - plain.total).item() == pytest.approx(expected.item(), rel=1e-3)
    assert task.negative_log_likelihood(RECORDS).total.item() == evaluated


def test_label_smoothing_is_part_of_the_training_loss_only():
    task = build_task(parameters={"label_smoothing": 0.1})
    torch.nn.init.normal_(task.model.output.weight, std=2.0)  # far from uniform
    batch = task.collate(list(task.examples(RECORDS)))
    evaluated = task.negative_log_likelihood(RECORDS).total.item()
    assert evaluated == pytest.approx(task.cross_entropy(batch).total.item(), rel=1e-4)
    assert task.loss(batch, 0).total.item() != pytest.approx(evaluated, rel=1e-4)


def test_hard_attention_learns_from_the_log_likelihood_of_captions():
    """With the same draws, the loss is -log p - ((log p - b) log p(s) + 0.01 H), and b moves."""
    task = build_task(normalize="reinforce", expectation_rate=0.0)
    batch = task.collate(list(task.examples(RECORDS)))
    model = task.model.train()
    model.reinforce.baseline.fill_(-3.0)
    torch.manual_seed(5)
    with torch.no_grad(), sample_attention(model, 0.0) as episode:
        logits = model.logits(model.teacher_forced(model.remember(batch.images), batch.target_in))
    torch.manual_seed(5)
    loss = task.loss(batch, 0)
    log_probs, expected, rewards = logits.log_softmax(-1), 0.0, []
    [sampled], [entropies] = episode.log_prob.values(), episode.entropy.values()
    for row, valid in enumerate(batch.target_valid):
        length = int(valid.sum())
        reward = sum(log_probs[row, t, batch.target_out[row, t]].item() for t in range(length))
        region_log_prob = sum(sampled[t][row, 0].item() for t in range(length))
        entropy = sum(entropies[t][row, 0].item() for t in range(length))
        expected -= reward + (reward + 3.0) * region_log_prob + 0.01 * entropy
        rewards.append(reward)
    assert loss.total.item() == pytest.approx(expected, rel=1e-4)
    new_baseline = 0.9 * -3.0 + 0.1 * np.mean(rewards)
    assert model.reinforce.baseline.item() == pytest.approx(new_baseline, rel=1e-4)
    loss.total.backward()
    assert model.attention.score.energy.grad.any()


def test_hard_attention_may_begin_as_soft_attention():
    """Without entropy, its loss is then that of soft attention with the same weights."""
    hard = build_task(
        parameters={"soft_attention_steps": 5}, normalize="reinforce", entropy_weight=0.0
    )
    soft = build_task()
    weights = hard.model.state_dict()
    soft.model.load_state_dict({k: v for k, v in weights.items() if "baseline" not in k})
    batch = hard.collate(list(hard.examples(RECORDS)))
    hard.model.train()
    first, last = (hard.loss(batch, step).total.item() for step in (0, 4))
    assert first == last == pytest.approx(soft.loss(batch, 0).total.item(), rel=1e-4)
    sampled_losses = {hard.loss(batch, 5).total.item() for _ in range(3)}
    assert len(sampled_losses) == 3


@pytest.mark.parametrize(
    "decode",
    [
        GreedyConfig(max_length=6),
        BeamConfig(width=3, n_best=2, max_length=6),
        SampleConfig(seed=3, max_length=6),
    ],
)
def test_every_search_returns_captions_with_attention(decode):
    task, counts = build_task(decode), []
    predictions = task.predict(RECORDS, on_progress=counts.append)
    assert len(predictions) == sum(counts) == 12
    [alone] = task.predict(RECORDS[3:4])
    assert alone.best.ids == predictions[3].best.ids
    captions = alone.as_dict()["captions"]
    assert [caption["text"] for caption in captions] == [output.text for output in alone.outputs]
    attention = task.caption_attention(RECORDS[3]["image"], alone.best.ids)
    assert attention.words[-1] == "</s>"
    count = len(attention.words)
    assert attention.weights.shape == (count, 4, 4)
    assert attention.weights.sum((1, 2)).tolist() == pytest.approx([1.0] * count, abs=1e-5)


def test_attention_of_the_predicted_caption_and_of_a_given_one(task):
    record = RECORDS[0]
    assert task.attention_map(record).title == task.predict([record])[0].text
    given = task.attention_map(record, "3 top left")
    assert given.title == "3 top left"
    assert [layer.name for layer in given.layers] == ["1 3", "2 top", "3 left", "4 </s>"]
    assert {layer.kind for layer in given.layers} == {"grid"}
    text = task.render(record, Surface(width=80), target="3 top left")
    assert text.startswith("3 top left\n\n")
    assert "4 </s>" in text


def test_lines_without_an_image_raise_an_error(task, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("no pixels")
    with pytest.raises(ValueError, match=r"input 1: .*no\.png: there is no such image"):
        task.parse(str(tmp_path / "no.png"), "input 1")
    with pytest.raises(ValueError, match=r"input 2: .*a\.txt: not an image"):
        task.parse(str(path), "input 2")


def test_attention_peak_is_the_center_of_the_region_with_the_largest_weight():
    weights = torch.zeros(4, 4)
    weights[1, 3] = 0.7
    assert attention_peak(weights, 4) == (6.0, 14.0)


def test_box_of_a_word_belongs_to_its_first_token():
    spans = [(0, 1), (2, 5), (6, 10), (11, 12), (13, 14)]
    boxes = ((0, (0, 0, 8, 8)), (4, (8, 8, 16, 16)))
    assert list(boxed_tokens("3 top left , 7", spans, boxes)) == [
        (0, boxes[0][1]),
        (4, boxes[1][1]),
    ]


def test_pointing_counts_words_that_attend_to_their_box(monkeypatch):
    """Attention to the right cell scores 100; to the top left, the share of boxes there.

    The model reads images at twice their size.
    """
    data = {"kind": "digits", "size": 12, "side": 16, "held_out": 4}
    settings = resolve_settings(
        {"task": "caption", "data": data, "image": {"size": [32, 32], "channels": 1}}
    )
    task = Run.create(settings, Digits(12, side=16)).task

    def attend_to_boxes(examples: list[CaptionExample]) -> list[torch.Tensor]:
        tables = []
        for record, example in zip(RECORDS, examples, strict=True):
            weights = torch.zeros(len(example.caption) + 1, 4, 4)
            for word, (top, left, _, _) in record["boxes"]:
                weights[word, top // 4 + 1, left // 4] = 1.0
            tables.append(weights)
        return tables

    monkeypatch.setattr(task, "attention_weights", attend_to_boxes)
    assert measure_pointing(task, RECORDS) == 100
    monkeypatch.setattr(
        task,
        "attention_weights",
        lambda _: [torch.eye(1, 16).view(1, 4, 4).expand(20, 4, 4)] * 12,
    )
    boxes = [box for record in RECORDS for _, box in record["boxes"]]
    assert measure_pointing(task, RECORDS) == pytest.approx(
        100 * sum(box[:2] == (0, 0) for box in boxes) / len(boxes)
    )
    without_boxes = [{"image": RECORDS[0]["image"], "caption": "3"}]
    assert measure_pointing(task, without_boxes) is None
    with pytest.raises(ValueError, match="'pointing' is not known for this data"):
        task.validation_metric("pointing", without_boxes)


def test_metrics_and_their_order(task):
    scores = task.score(RECORDS)
    names = ["bleu1", "bleu2", "bleu3", "bleu4", "cider", "exact", "pointing"]
    assert [name for name in scores if "signature" not in name] == [
        *names,
        "perplexity",
        "images",
    ]


def test_images_that_exceed_the_memory_are_read_for_their_batch(task, monkeypatch):
    options = BatchOptions(None, examples_per_batch=12, seed=0)
    corpus = Digits(12, side=16)
    all_loaded = next(task.batches(corpus, options))
    monkeypatch.setattr("regard.tasks.caption.task.MAX_PIXEL_BYTES_IN_MEMORY", 5 * 16 * 16)
    batches = task.batches(corpus, options)
    batch = next(batches)
    assert torch.equal(batch.target_in, all_loaded.target_in)
    assert torch.equal(batch.images, all_loaded.images)
    short = build_task(parameters={"max_tokens": 1})
    with pytest.raises(ValueError, match="no caption is left"):
        short.batches(corpus, options)
