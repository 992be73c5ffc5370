"""The task of captions: its losses by hand, its searches, and where its words look."""

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


def task(decode=GreedyConfig(max_length=6), parameters=None, **settings) -> CaptionTask:  # noqa: B008
    text = train_tokenizer("words", [record["caption"] for record in RECORDS], 50)
    return CaptionTask(
        ShowAttend(text.size, 16, 1, **SMALL, **settings),
        ImagePreprocessor(ImageReader((16, 16), 1)),
        text,
        decoding=build_decoding(decode, math.inf),
        **(parameters or {}),
    )


def test_a_caption_is_learnt_to_its_end():
    it = task()
    pairs = list(it.examples(RECORDS))
    assert [pair.index for pair in pairs] == list(range(12))
    batch = it.collate(pairs)
    it.model.eval()
    with torch.no_grad():
        logits = it.model.logits(
            it.model.teacher_forced(it.model.remember(batch.images), batch.target_in)
        )
    told = logits.log_softmax(-1).gather(-1, batch.target_out[..., None])[..., 0]
    wanted = -told[batch.target_valid].sum()
    found = it.negative_log_likelihood(RECORDS)
    assert found.total.item() == pytest.approx(wanted.item(), rel=1e-4)
    assert found.count == sum(len(pair.caption) + 1 for pair in pairs)
    several = {"image": RECORDS[0]["image"], "captions": ("3 top left", "7 top left , 1")}
    assert [len(pair.caption) for pair in it.examples([several])] == [3, 5]
    short = task(parameters={"max_tokens": 4})
    assert [len(pair.caption) for pair in short.examples([several])] == [3]
    with pytest.raises(ValueError, match="captions are missing"):
        task(parameters={"max_tokens": 1}).negative_log_likelihood([several])


def test_the_doubly_stochastic_term_is_for_training():
    it = task()
    batch = it.collate(list(it.examples(RECORDS)))
    plain = it.loss(batch, 0)
    before = it.negative_log_likelihood(RECORDS).total.item()
    it.doubly_stochastic_weight = 0.5
    penalized = it.loss(batch, 0)
    with torch.no_grad():
        weights = it.model.decode_with_attention(
            it.model.remember(batch.images), batch.target_in
        ).weights
    wanted = 0.5 * doubly_stochastic_penalty(weights, batch.target_valid).sum()
    assert (penalized.total - plain.total).item() == pytest.approx(wanted.item(), rel=1e-3)
    assert it.negative_log_likelihood(RECORDS).total.item() == before


def test_smoothing_is_for_training():
    it = task(parameters={"label_smoothing": 0.1})
    torch.nn.init.normal_(it.model.output.weight, std=2.0)  # far from uniform
    batch = it.collate(list(it.examples(RECORDS)))
    evaluated = it.negative_log_likelihood(RECORDS).total.item()
    assert evaluated == pytest.approx(it.cross_entropy(batch).total.item(), rel=1e-4)
    assert it.loss(batch, 0).total.item() != pytest.approx(evaluated, rel=1e-4)


def test_hard_attention_is_taught_by_the_reward_of_whole_captions():
    """With the same draws: the loss is -log p - ((log p - b) log p(s) + 0.01 H), and b moves."""
    it = task(normalize="reinforce", expectation_rate=0.0)
    batch = it.collate(list(it.examples(RECORDS)))
    model = it.model.train()
    model.reinforce.baseline.fill_(-3.0)
    torch.manual_seed(5)
    with torch.no_grad(), sample_attention(model, 0.0) as episode:
        logits = model.logits(model.teacher_forced(model.remember(batch.images), batch.target_in))
    torch.manual_seed(5)
    found = it.loss(batch, 0)
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
    hard = task(parameters={"soft_attention_steps": 5}, normalize="reinforce", entropy_weight=0.0)
    soft = task()
    weights = hard.model.state_dict()
    soft.model.load_state_dict({k: v for k, v in weights.items() if "baseline" not in k})
    batch = hard.collate(list(hard.examples(RECORDS)))
    hard.model.train()
    first, again = (hard.loss(batch, step).total.item() for step in (0, 4))
    assert first == again == pytest.approx(soft.loss(batch, 0).total.item(), rel=1e-4)
    drawn = {hard.loss(batch, 5).total.item() for _ in range(3)}
    assert len(drawn) == 3


@pytest.mark.parametrize(
    "decode",
    [
        GreedyConfig(max_length=6),
        BeamConfig(width=3, n_best=2, max_length=6),
        SampleConfig(seed=3, max_length=6),
    ],
)
def test_every_search_serves(decode):
    it, counts = task(decode), []
    predictions = it.predict(RECORDS, on_progress=counts.append)
    assert len(predictions) == sum(counts) == 12
    [alone] = it.predict(RECORDS[3:4])
    assert alone.best.ids == predictions[3].best.ids
    captions = alone.as_dict()["captions"]
    assert [caption["text"] for caption in captions] == [one.text for one in alone.outputs]
    attention = it.caption_attention(RECORDS[3]["image"], alone.best.ids)
    assert attention.words[-1] == "</s>"
    count = len(attention.words)
    assert attention.weights.shape == (count, 4, 4)
    assert attention.weights.sum((1, 2)).tolist() == pytest.approx([1.0] * count, abs=1e-5)


def test_attention_of_the_own_caption_and_of_a_given_one():
    it, record = task(), RECORDS[0]
    assert it.attention_map(record).title == it.predict([record])[0].text
    given = it.attention_map(record, "3 top left")
    assert given.title == "3 top left"
    assert [layer.name for layer in given.layers] == ["1 3", "2 top", "3 left", "4 </s>"]
    assert {layer.kind for layer in given.layers} == {"grid"}
    shown = it.render(record, Surface(width=80), target="3 top left")
    assert shown.startswith("3 top left\n\n")
    assert "4 </s>" in shown


def test_a_line_is_the_path_of_a_image(tmp_path):
    it, text = task(), tmp_path / "a.txt"
    text.write_text("no pixels")
    with pytest.raises(ValueError, match=r"input 1: .*no\.png: there is no such image"):
        it.parse(str(tmp_path / "no.png"), "input 1")
    with pytest.raises(ValueError, match=r"input 2: .*a\.txt: not an image"):
        it.parse(str(text), "input 2")


def test_the_middle_of_the_greatest_weight():
    weights = torch.zeros(4, 4)
    weights[1, 3] = 0.7
    assert attention_peak(weights, 4) == (6.0, 14.0)


def test_boxes_of_words_are_boxes_of_tokens():
    spans = [(0, 1), (2, 5), (6, 10), (11, 12), (13, 14)]
    boxes = ((0, (0, 0, 8, 8)), (4, (8, 8, 16, 16)))
    assert list(boxed_tokens("3 top left , 7", spans, boxes)) == [
        (0, boxes[0][1]),
        (4, boxes[1][1]),
    ]


def test_pointing_is_of_the_cell_that_is_spoken_of(monkeypatch):
    """A model that looks at the right cell for each digit word has all of it, one that looks at
    the top left has those that are there; also where images are read larger."""
    data = {"kind": "digits", "size": 12, "side": 16, "held_out": 4}
    settings = resolve_settings(
        {"task": "caption", "data": data, "image": {"size": [32, 32], "channels": 1}}
    )
    it = Run.create(settings, Digits(12, side=16)).task

    def attend_to_boxes(examples: list[CaptionExample]) -> list[torch.Tensor]:
        tables = []
        for record, example in zip(RECORDS, examples, strict=True):
            weights = torch.zeros(len(example.caption) + 1, 4, 4)
            for word, (top, left, _, _) in record["boxes"]:
                weights[word, top // 4 + 1, left // 4] = 1.0
            tables.append(weights)
        return tables

    monkeypatch.setattr(it, "attention_weights", attend_to_boxes)
    assert measure_pointing(it, RECORDS) == 100
    monkeypatch.setattr(
        it,
        "attention_weights",
        lambda _: [torch.eye(1, 16).view(1, 4, 4).expand(20, 4, 4)] * 12,
    )
    boxes = [box for record in RECORDS for _, box in record["boxes"]]
    assert measure_pointing(it, RECORDS) == pytest.approx(
        100 * sum(box[:2] == (0, 0) for box in boxes) / len(boxes)
    )
    without_boxes = [{"image": RECORDS[0]["image"], "caption": "3"}]
    assert measure_pointing(it, without_boxes) is None
    with pytest.raises(ValueError, match="'pointing' is not known of these data"):
        it.validation_metric("pointing", without_boxes)


def test_metrics_and_their_order():
    scores = task().score(RECORDS)
    names = ["bleu1", "bleu2", "bleu3", "bleu4", "cider", "exact", "pointing"]
    assert [name for name in scores if "signature" not in name] == [
        *names,
        "perplexity",
        "images",
    ]


def test_images_beyond_the_memory_are_read_for_their_batch(monkeypatch):
    it, options = task(), BatchOptions(None, examples_per_batch=12, seed=0)
    corpus = Digits(12, side=16)
    all_loaded = next(it.batches(corpus, options))
    monkeypatch.setattr("regard.tasks.caption.task.MAX_PIXEL_BYTES_IN_MEMORY", 5 * 16 * 16)
    batches = it.batches(corpus, options)
    batch = next(batches)
    assert torch.equal(batch.target_in, all_loaded.target_in)
    assert torch.equal(batch.images, all_loaded.images)
    short = task(parameters={"max_tokens": 1})
    with pytest.raises(ValueError, match="no caption is left"):
        short.batches(corpus, options)
