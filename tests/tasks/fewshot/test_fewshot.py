"""Few-shot recognition: inputs of the learner, the loss by hand, predictions, input lines."""

import json
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from rich.console import Console
from torch import nn

from regard.data.build import build_corpus
from regard.data.formats.class_folders import ClassImages
from regard.data.synthetic.episodes import Prototypes
from regard.layers.images import ImageEncoder
from regard.models.snail import Snail
from regard.tasks.base import BatchOptions
from regard.tasks.fewshot.build import BUILDER
from regard.tasks.fewshot.classifier import EpisodeClassifier, FewshotBatch
from regard.tasks.fewshot.episode import parse_points
from regard.tasks.fewshot.task import FewshotTask, nearest_class, to_floats
from regard.tasks.load import resolve_settings
from regard.view.terminal import Surface

WAYS, SHOTS, DIM = 3, 2, 4


class RecordingLearner(nn.Module):
    """A learner that keeps its inputs and returns random logits."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))

    def episode(self, inputs, feedback):
        self.inputs, self.feedback = inputs, feedback
        self.outputs = torch.randn(*inputs.shape[:2], WAYS) * self.weight
        return self.outputs


def build_task(embed, learner) -> FewshotTask:
    parse_support = partial(parse_points, dim=DIM)
    model = EpisodeClassifier(embed, learner, WAYS)
    return FewshotTask(model, shots=SHOTS, parse_support=parse_support)


def sample_episodes(queries=5, count=4):
    return Prototypes(WAYS, SHOTS, dim=DIM).sample_episodes(
        "train", np.random.default_rng(3), count, SHOTS, queries
    )


def test_each_query_has_its_own_sequence():
    learner = RecordingLearner()
    task, episodes = build_task(None, learner), sample_episodes()
    logits = task.model(task.collate_sampled(episodes))
    assert logits.shape == (4, 5, WAYS)
    assert learner.inputs.shape == (20, 7, DIM)
    for row in range(4):
        for query in range(5):
            inputs = learner.inputs[row * 5 + query]
            labels = learner.feedback[row * 5 + query]
            order = episodes.support_order[row, query]
            np.testing.assert_array_equal(inputs[:-1], episodes.examples[row][order])
            np.testing.assert_array_equal(inputs[-1], episodes.examples[row, 6 + query])
            assert labels[:-1].argmax(-1).tolist() == episodes.support_labels[row][order].tolist()
            assert torch.equal(labels[:-1].sum(-1), torch.ones(6))
            assert not labels[-1].any()  # the label of the query is hidden
            assert torch.equal(logits[row, query], learner.outputs[row * 5 + query, -1])


def test_loss_is_that_of_the_last_step():
    learner = RecordingLearner()
    task, episodes = build_task(None, learner), sample_episodes(queries=2)
    loss = task.loss(task.collate_sampled(episodes), 0)
    log_probs = learner.outputs[:, -1].log_softmax(-1)
    expected = -sum(log_probs[n, label] for n, label in enumerate(episodes.query_labels.ravel()))
    assert loss.count == 8
    torch.testing.assert_close(loss.total, expected)


def build_image_task(count=5) -> tuple[FewshotTask, FewshotBatch]:
    """Return a task on images of 8 x 8 pixels, and a batch of `count` episodes."""
    images = ClassImages(
        np.random.default_rng(1).integers(0, 256, (24, 8, 8, 1), dtype=np.uint8), np.full(6, 4)
    )
    learner = Snail(DIM + WAYS, WAYS, WAYS * SHOTS + 1, dim=None, blocks=("TC(4)", "A(4, 4)"))
    task = build_task(ImageEncoder(1, DIM, layers=2, hidden_dim=5), learner)
    return task, task.collate_sampled(
        images.sample_episodes(np.random.default_rng(2), count, WAYS, SHOTS, 2)
    )


def test_each_image_has_one_embedding_in_all_sequences():
    task, batch = build_image_task()
    task.model.eval()
    logits = task.model(batch)
    assert logits.shape == (5, 2, WAYS)
    states = task.model.embeddings(batch.examples)
    for row in range(5):
        for query in range(2):
            order = batch.support_order[row, query]
            inputs = torch.cat([states[row][order], states[row, 6 + query][None]])
            labels = F.one_hot(batch.support_labels[row][order], WAYS).float()
            labels = torch.cat([labels, torch.zeros(1, WAYS)])
            alone = task.model.learner.episode(inputs[None], labels[None])[0, -1]
            torch.testing.assert_close(alone, logits[row, query], rtol=1e-4, atol=1e-5)


def test_embeddings_are_normalized_over_the_batch():
    task, batch = build_image_task()
    embed = task.model.embed
    assert embed is not None
    task.model.train()
    states = task.model.embeddings(batch.examples)
    plain = embed(batch.examples.flatten(0, 1)).mean(1)  # the mean of 2 x 2 regions
    plain = (plain - plain.mean(0)) / (plain.var(0, unbiased=False) + 1e-5).sqrt()
    torch.testing.assert_close(states.flatten(0, 1), plain, rtol=1e-4, atol=1e-5)


def test_all_weights_learn_from_images(unchecked):
    task, batch = build_image_task()
    task.loss(batch, 0).total.backward()
    for name, weight in task.model.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.abs().sum() > 0, name


def test_white_becomes_0_and_black_1():
    pixels = torch.tensor([[0, 255], [51, 204]], dtype=torch.uint8).view(1, 1, 2, 2, 1)
    floats = to_floats(pixels)
    assert floats.shape == (1, 1, 1, 2, 2)
    torch.testing.assert_close(floats.flatten(), torch.tensor([1.0, 0.0, 0.8, 0.2]))


def test_predictions_do_not_depend_on_the_batch():
    corpus = Prototypes(WAYS, SHOTS, dim=DIM, eval_episodes=70)
    learner = Snail(DIM + WAYS, WAYS, 7, dim=None, blocks=("A(3, 3)", "TC(4)", "A(4, 4)"))
    task, records = build_task(None, learner), list(corpus.read("test"))
    counts = []
    predictions = task.predict(records, on_progress=counts.append)
    assert sum(counts) == len(predictions) == 70
    for record, prediction in list(zip(records, predictions, strict=True))[60:70]:
        [alone] = task.predict([record])
        assert alone.label == prediction.label
        assert prediction.probabilities == pytest.approx(alone.probabilities, abs=1e-5)
        assert sum(prediction.probabilities.values()) == pytest.approx(1, abs=1e-5)
    loss = task.negative_log_likelihood(records)
    probabilities = [
        prediction.probabilities[str(record["target"] + 1)]
        for record, prediction in zip(records, predictions, strict=True)
    ]
    assert loss.total.item() == pytest.approx(-np.log(probabilities).sum(), rel=1e-4)
    attention = task.attention_weights(task.episode(records[0]))
    assert [weights.shape for weights in attention.values()] == [(7, 7)] * 2
    assert task.predict([]) == []
    with pytest.raises(ValueError, match="records are missing"):
        task.score([])
    with pytest.raises(ValueError, match="records are missing"):
        task.negative_log_likelihood([])


def test_nearest_class_is_that_of_the_nearest_mean():
    examples = np.array([[0, 0], [8, 8], [2, 2], [8, 9], [3, 1]], np.float32)
    record = {"examples": examples, "support_labels": np.array([0, 1, 0, 1]), "target": 0}
    assert nearest_class(record) == 0
    record["examples"] = np.array([[200], [9], [210], [7], [150]], np.uint8)  # no overflow
    assert nearest_class(record) == 0


def input_line(shots: int) -> str:
    support = {name: [[n, 0.5]] * shots for n, name in enumerate("ab")}
    return json.dumps({"support": support, "query": [0.1, 1]})


def test_lines_of_different_sizes_and_records_in_one_call():
    settings = resolve_settings(
        {
            "task": "fewshot",
            "data": {"ways": 2, "shots": 2, "dim": 2, "eval_episodes": 5},
            "model": {"blocks": ["A(4, 4)", "TC(4)"]},
            "train": {"examples_per_batch": 3, "queries": 3, "label_smoothing": 0.2},
        }
    )
    task = BUILDER.build_task(settings, {}, BUILDER.build_model(settings, {}))
    corpus = build_corpus(settings.data)
    first, second, *_ = records = list(corpus.read("test"))
    lines = [task.parse(input_line(shots), "here") for shots in (1, 2)]
    assert lines[0] == {"input": input_line(1)}
    predictions = task.predict([lines[0], first, second, lines[1]])
    for record, prediction in zip([lines[0], first, second, lines[1]], predictions, strict=True):
        [alone] = task.predict([record])
        assert alone.label == prediction.label
        assert prediction.probabilities == pytest.approx(alone.probabilities, abs=1e-5)
    assert list(predictions[0].as_dict()["probabilities"]) == ["a", "b"]
    assert predictions[0].as_dict()["label"] == predictions[0].text in ("a", "b")
    attention = task.attention_map(lines[1])
    assert attention.queries.tokens == ("a: 1", "b: 1", "a: 2", "b: 2", "(the query)")
    assert attention.title == f"{predictions[3].text}: {input_line(2)}"
    assert len(task.attention_map(first).queries.tokens) == 5
    surface = Surface.from_console(Console(width=80, color_system=None))
    assert "\n(the query)" in task.render(lines[0], surface)
    scores = task.score(records)
    assert scores["accuracy"] == task.validation_metric("accuracy", records)
    assert list(scores)[-2:] == ["loss", "episodes"]
    assert "optimal" in scores
    batches = task.batches(corpus, BatchOptions(None, 3, seed=0))
    batch = next(batches)
    assert batch.targets.shape == (3, 3)
    task.model.eval()
    assert task.loss(batch, 0).total > 0.5 * task.cross_entropy(batch).total
    assert task.loss(batch, 0).total != task.cross_entropy(batch).total


THREE_SHOTS = json.dumps(
    {"support": {name: [[0, 1, 2, 3]] * 3 for name in "abc"}, "query": [0, 1, 2, 3]}
)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x", "here: a line must be JSON such as"),
        (THREE_SHOTS, "here: give 1 to 2 examples of each class"),
        ('{"support": {"a": [[0, 1, 2, 3]]}, "query": [0, 1, 2, 3]}', "here: 1 classes in"),
        ('{"support": {"a": [[0]]}, "query": [0]}', "here: a point has 1 numbers; give 4"),
    ],
)
def test_bad_lines_raise_an_error(line, message):
    task = build_task(None, RecordingLearner())
    with pytest.raises(ValueError, match=message):
        task.parse(line, "here")
