"""Every model, every search: the same strings in any batch and order of texts, and in replicas.

Each model of the catalogue has random weights, drawn wide so that outputs differ from text to text.
One model is also tried after a short training, as it would be used; with --all, every model is.
"""

import random
from typing import Any

import pytest
import torch
from torch import nn

from regard.batching.batches import Batches, InMemoryExamples
from regard.config.decode import BeamConfig, DecodeConfig, GreedyConfig, SampleConfig
from regard.decoding.constraints import Constraints
from regard.models.catalogue import build_model, model_settings
from regard.tasks.catalogue import model_kinds
from regard.tasks.generation import Decoding, build_search, sampling_seeds
from regard.tasks.translate.task import TranslateTask
from regard.text.train import train_tokenizer

pytestmark = pytest.mark.usefixtures("unchecked")  # the shapes of models are tested elsewhere
KINDS = [*model_kinds("translate")]
SEARCHES: dict[str, DecodeConfig] = {
    "greedy": GreedyConfig(),
    "beam": BeamConfig(width=4, n_best=3, length_penalty=0.6),
    "sample": SampleConfig(top_p=0.95, temperature=0.8),
}
LETTERS, COUNT = "abcdefghijklmnop", 32
STEPS, RATE = 60, 3e-3
# A model of random weights likes to repeat itself, one of little training to say nothing.
RULES = Constraints(8, min_length=3, no_repeat_ngram=1)
MIN_DIFFERENT = 10  # outputs: a model that writes the same for all texts would show little


def texts(count: int) -> list[str]:
    """Words of 1 to 9 letters, all different."""
    found: dict[str, None] = {}
    while len(found) < count:
        found["".join(random.choices(LETTERS, k=random.randint(1, 9)))] = None
    return list(found)


def translator(kind: str, trained: bool) -> TranslateTask:
    torch.manual_seed(0)  # of the weights; the texts are others each time
    tokeniser = train_tokenizer("characters", [LETTERS], 20)
    sizes = {"source_size": tokeniser.size, "target_size": tokeniser.size}
    # the starts of the papers are for layers of 1000 units
    start = {"init": "scaled"} if "init" in model_settings(kind) else {}
    model: Any = build_model(kind, {**sizes, **start, "dim": 32, "dropout": 0.0})
    task = TranslateTask(
        model, tokeniser, tokeniser, decoding=Decoding(build_search(GreedyConfig()), RULES)
    )
    if not trained:
        for weight in model.parameters():
            if weight.ndim > 1:
                nn.init.normal_(weight, std=0.5)
        return task
    pairs = list(task.examples({"source": word, "target": word[::-1]} for word in texts(300)))
    batches = Batches(InMemoryExamples(pairs), collate=task.collate, examples_per_batch=32)
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = task.loss(next(batches), 0)
        (loss.total / loss.count).backward()
        optimizer.step()
    return task


def outputs(
    task: TranslateTask, given: list[str], decode: DecodeConfig, sentences: int
) -> dict[str, Any]:
    decoding = Decoding(build_search(decode), RULES)
    found = task.decode(given, decoding=decoding, examples_per_batch=sentences)
    return {
        text: [one.text for one in prediction.outputs]
        for text, prediction in zip(given, found, strict=True)
    }


CASES = [
    pytest.param(kind, trained, marks=[pytest.mark.full] if trained and kind != "rnnsearch" else [])
    for kind in KINDS
    for trained in (False, True)
]


@pytest.mark.parametrize(("kind", "trained"), CASES)
def test_any_batch_any_order(kind: str, trained: bool):
    task, given = translator(kind, trained), texts(COUNT)
    for name, decode in SEARCHES.items():
        whole = outputs(task, given, decode, 64)
        assert len({str(some) for some in whole.values()}) > MIN_DIFFERENT, name
        assert outputs(task, random.sample(given, COUNT), decode, 64) == whole, name
        for sentences, count, task.replicas in ((7, 21, 3), (1, 6, 1)):  # some of them, for time
            found = outputs(task, random.sample(given, count), decode, sentences)
            assert found == {text: whole[text] for text in found}, (name, sentences)


def test_a_text_that_comes_again_is_drawn_anew():
    task = translator("rnnsearch", trained=False)
    decoding = Decoding(build_search(SampleConfig(temperature=5.0)), RULES)
    found = task.decode(["abc"] * 20, decoding=decoding)
    assert len({prediction.text for prediction in found}) > 10
    sources = task.source.encode_ids(["a", "b", "a"])
    assert len(set(sampling_seeds(sources))) == 3
    assert sampling_seeds(sources)[:2] == sampling_seeds(sources[1::-1])[::-1]
