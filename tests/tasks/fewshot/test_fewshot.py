"""Few shots: what the learner is shown, that the last label is not told, and the loss by hand."""

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


class Heard(nn.Module):
    """A learner that remembers what it was shown, and answers by chance."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))

    def episode(self, inputs, feedback):
        self.inputs, self.feedback = inputs, feedback
        self.said = torch.randn(*inputs.shape[:2], WAYS) * self.weight
        return self.said


def few_shot_task(embed, learner) -> FewshotTask:
    parse_support = partial(parse_points, dim=DIM)
    model = EpisodeClassifier(embed, learner, WAYS)
    return FewshotTask(model, shots=SHOTS, parse_support=parse_support)


def some(queries=5, many=4):
    return Prototypes(WAYS, SHOTS, dim=DIM).sample_episodes(
        "train", np.random.default_rng(3), many, SHOTS, queries
    )


def test_each_query_has_a_sequence_of_its_own():
    learner = Heard()
    task, dealt = few_shot_task(None, learner), some()
    said = task.model(task.collate_sampled(dealt))
    assert said.shape == (4, 5, WAYS)
    assert learner.inputs.shape == (20, 7, DIM)
    for row in range(4):
        for query in range(5):
            given, told = (one[row * 5 + query] for one in (learner.inputs, learner.feedback))
            order = dealt.support_order[row, query]
            np.testing.assert_array_equal(given[:-1], dealt.examples[row][order])
            np.testing.assert_array_equal(given[-1], dealt.examples[row, 6 + query])
            assert told[:-1].argmax(-1).tolist() == dealt.support_labels[row][order].tolist()
            assert torch.equal(told[:-1].sum(-1), torch.ones(6))
            assert not told[-1].any()  # what is asked for is not told
            assert torch.equal(said[row, query], learner.said[row * 5 + query, -1])


def test_the_loss_is_of_the_last_step():
    learner = Heard()
    task, dealt = few_shot_task(None, learner), some(queries=2)
    loss = task.loss(task.collate_sampled(dealt), 0)
    chances = learner.said[:, -1].log_softmax(-1)
    wanted = -sum(chances[n, label] for n, label in enumerate(dealt.query_labels.ravel()))
    assert loss.count == 8
    torch.testing.assert_close(loss.total, wanted)


def images(many=5) -> tuple[FewshotTask, FewshotBatch]:
    gallery = ClassImages(
        np.random.default_rng(1).integers(0, 256, (24, 8, 8, 1), dtype=np.uint8), np.full(6, 4)
    )
    learner = Snail(DIM + WAYS, WAYS, WAYS * SHOTS + 1, dim=None, blocks=("TC(4)", "A(4, 4)"))
    task = few_shot_task(ImageEncoder(1, DIM, layers=2, hidden_dim=5), learner)
    return task, task.collate_sampled(
        gallery.sample_episodes(np.random.default_rng(2), many, WAYS, SHOTS, 2)
    )


def test_images_are_embedded_once_and_the_same_everywhere():
    task, asked = images()
    task.model.eval()
    whole = task.model(asked)
    assert whole.shape == (5, 2, WAYS)
    states = task.model.embeddings(asked.examples)
    for row in range(5):
        for query in range(2):
            order = asked.support_order[row, query]
            inputs = torch.cat([states[row][order], states[row, 6 + query][None]])
            labels = F.one_hot(asked.support_labels[row][order], WAYS).float()
            labels = torch.cat([labels, torch.zeros(1, WAYS)])
            alone = task.model.learner.episode(inputs[None], labels[None])[0, -1]
            torch.testing.assert_close(alone, whole[row, query], rtol=1e-4, atol=1e-5)
    embed = task.model.embed
    assert embed is not None
    task.model.train()
    states = task.model.embeddings(asked.examples)
    plain = embed(asked.examples.flatten(0, 1)).mean(1)  # 2 x 2 places, their mean
    plain = (plain - plain.mean(0)) / (plain.var(0, unbiased=False) + 1e-5).sqrt()
    torch.testing.assert_close(states.flatten(0, 1), plain, rtol=1e-4, atol=1e-5)


def test_all_weights_learn_from_images(unchecked):
    task, asked = images()
    task.loss(asked, 0).total.backward()
    for name, weight in task.model.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.abs().sum() > 0, name


def test_white_is_nothing():
    pixels = torch.tensor([[0, 255], [51, 204]], dtype=torch.uint8).view(1, 1, 2, 2, 1)
    found = to_floats(pixels)
    assert found.shape == (1, 1, 1, 2, 2)
    torch.testing.assert_close(found.flatten(), torch.tensor([1.0, 0.0, 0.8, 0.2]))


def test_records_are_guessed_and_looked_at():
    corpus = Prototypes(WAYS, SHOTS, dim=DIM, eval_episodes=70)
    learner = Snail(DIM + WAYS, WAYS, 7, dim=None, blocks=("A(3, 3)", "TC(4)", "A(4, 4)"))
    task, records = few_shot_task(None, learner), list(corpus.read("test"))
    done = []
    guesses = task.predict(records, on_progress=done.append)
    assert sum(done) == len(guesses) == 70
    for record, guess in list(zip(records, guesses, strict=True))[60:70]:
        [alone] = task.predict([record])
        assert alone.label == guess.label
        assert guess.probabilities == pytest.approx(alone.probabilities, abs=1e-5)
        assert sum(guess.probabilities.values()) == pytest.approx(1, abs=1e-5)
    loss = task.negative_log_likelihood(records)
    chances = [
        guess.probabilities[str(record["target"] + 1)]
        for record, guess in zip(records, guesses, strict=True)
    ]
    assert loss.total.item() == pytest.approx(-np.log(chances).sum(), rel=1e-4)
    seen = task.attention_weights(task.episode(records[0]))
    assert [weights.shape for weights in seen.values()] == [(7, 7)] * 2
    assert task.predict([]) == []
    with pytest.raises(ValueError, match="records are missing"):
        task.score([])
    with pytest.raises(ValueError, match="records are missing"):
        task.negative_log_likelihood([])


def test_a_ruler():
    shown = np.array([[0, 0], [8, 8], [2, 2], [8, 9], [3, 1]], np.float32)
    record = {"examples": shown, "support_labels": np.array([0, 1, 0, 1]), "target": 0}
    assert nearest_class(record) == 0
    record["examples"] = np.array([[200], [9], [210], [7], [150]], np.uint8)  # no overflow
    assert nearest_class(record) == 0


def line_of(shots: int) -> str:
    support = {name: [[n, 0.5]] * shots for n, name in enumerate("ab")}
    return json.dumps({"support": support, "query": [0.1, 1]})


def test_lines_of_different_sizes_and_records_together():
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
    lines = [task.parse(line_of(shots), "here") for shots in (1, 2)]
    assert lines[0] == {"input": line_of(1)}
    predictions = task.predict([lines[0], first, second, lines[1]])
    for record, prediction in zip([lines[0], first, second, lines[1]], predictions, strict=True):
        [alone] = task.predict([record])
        assert alone.label == prediction.label
        assert prediction.probabilities == pytest.approx(alone.probabilities, abs=1e-5)
    assert list(predictions[0].as_dict()["probabilities"]) == ["a", "b"]
    assert predictions[0].as_dict()["label"] == predictions[0].text in ("a", "b")
    attention = task.attention_map(lines[1])
    assert attention.queries.tokens == ("a: 1", "b: 1", "a: 2", "b: 2", "(the query)")
    assert attention.title == f"{predictions[3].text}: {line_of(2)}"
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
        ("x", "here: it must be JSON such as"),
        (THREE_SHOTS, "here: give 1 to 2 examples of each class"),
        ('{"support": {"a": [[0, 1, 2, 3]]}, "query": [0, 1, 2, 3]}', "here: 1 classes in"),
        ('{"support": {"a": [[0]]}, "query": [0]}', "here: a point has 4 numbers here, not 1"),
    ],
)
def test_bad_lines(line, message):
    task = few_shot_task(None, Heard())
    with pytest.raises(ValueError, match=message):
        task.parse(line, "here")
