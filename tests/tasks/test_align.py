"""Word alignments: weights against steps taken one by one, planted patterns, and what is chosen."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

from regard.attention.observe import intervene, observe, replace
from regard.batching.example import Example, collate
from regard.config.decode import GreedyConfig
from regard.metrics.alignment import flipped, strong_links
from regard.metrics.alignment_files import GoldAlignment, Links
from regard.models.catalogue import build_model
from regard.tasks.alignment import Aligner, WeightSelection, rank_by_agreement, rank_by_gold
from regard.tasks.generation import build_decoding
from regard.tasks.translate.task import TranslateTask
from regard.text.special import END, START
from regard.text.train import train_tokenizer

TEXTS = [
    ("the old house", "das alte Haus"),
    ("a", "ein"),
    ("houses , houses and more houses", "Häuser , Häuser und mehr Häuser"),
    ("", "leer"),
    ("empty", ""),
    ("", ""),
    ("  oh  , that unknowable xyz", "ach  , das unwissbare qqq "),
]


def translator(kind: str, how: str = "bpe", **settings: Any) -> TranslateTask:
    sides = [
        train_tokenizer(how, [pair[side] for pair in TEXTS], 60 if how == "bpe" else 99)
        for side in (0, 1)
    ]
    sizes = {"source_size": sides[0].size, "target_size": sides[1].size}
    model = build_model(kind, {**sizes, "dim": 8, **settings}).eval()
    return TranslateTask(model, *sides, decoding=build_decoding(GreedyConfig(), math.inf))


def by_steps(task: TranslateTask, source: str, target: str) -> dict[str, torch.Tensor]:
    """The weights of one pair alone, by steps of a search: [(heads,) calls, slots] a layer."""
    read, written = task.source.encode_ids([source])[0], task.target.encode_ids([target])[0]
    ids = torch.tensor([[*read, END]])
    with torch.no_grad(), observe(task.model) as seen:
        state = task.model.start(task.model.remember(ids, torch.ones_like(ids, dtype=torch.bool)))
        for token in [START, *written]:
            _, state = task.model.step(state, torch.tensor([token]))
    return {
        name: calls[0]
        for name, calls in seen.joined().items()
        if name in task.model.cross_attentions
    }


def between_words(table: torch.Tensor, rows: list[Any], columns: list[Any]) -> np.ndarray:
    """A word looks as its tokens do on average, and is looked at as much as they are together."""
    count = [1 + max(words, default=-1) for words in (rows, columns)]
    found = np.zeros(count)
    for j, i in np.ndindex(*count):
        mine = [t for t, word in enumerate(rows) if word == j]
        for t in mine:
            found[j, i] += sum(
                float(table[t, s]) / len(mine) for s, word in enumerate(columns) if word == i
            )
    return found


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("rnnsearch", {}),
        ("luong", {"window": "local_p", "radius": 2}),
        ("luong", {"input_feeding": False}),
        ("transformer", {"layers": 3, "heads": 2}),
        ("rnmt", {"heads": 2}),
    ],
)
@pytest.mark.parametrize("room", [1, 25, 10_000])
def test_tables_are_those_of_single_steps(kind: str, settings: dict[str, Any], room: int):
    """Alone or in any batch; `shift` 0 is the step that says a token, 1 the one that reads it."""
    task = translator(kind, **settings)
    aligner = Aligner(task)
    ways = aligner.selections()
    found = dict(aligner.word_weight_tables(TEXTS, ways, tokens_per_batch=room))
    assert sorted(found) == list(range(len(TEXTS)))
    for number, (source, target) in enumerate(TEXTS):
        steps = list(by_steps(task, source, target).values())
        heads = torch.stack([one if one.ndim == 3 else one[None] for one in steps])
        rows, columns = task.target.encode(target).words, task.source.encode(source).words
        for way, table in zip(ways, found[number], strict=True):
            part = heads if way.layer is None else heads[way.layer][None]
            part = part if way.head is None else part[:, way.head][:, None]
            wanted = between_words(part.mean((0, 1))[way.shift :], rows, columns)
            np.testing.assert_allclose(table, wanted, atol=2e-6)


def test_a_model_of_the_other_direction_reads_the_targets(monkeypatch: pytest.MonkeyPatch):
    """And a few pairs at a time are as good as all at once."""
    task = translator("luong")
    wanted = dict(Aligner(task).word_weight_tables(TEXTS, [WeightSelection(0)]))
    monkeypatch.setattr("regard.tasks.alignment.RECORDS_PER_CHUNK", 3)
    swapped = [(target, source) for source, target in TEXTS]
    found = dict(
        Aligner(task, target_to_source=True).word_weight_tables(swapped, [WeightSelection(0)])
    )
    assert sorted(found) == sorted(wanted)
    for number, (table,) in found.items():
        np.testing.assert_allclose(table, wanted[number][0], atol=1e-6)


def test_ways():
    aligner = Aligner(translator("transformer", layers=3, heads=2))
    assert aligner.default_selection() == aligner.selections()[0] == WeightSelection(1)
    assert len(aligner.selections()) == len(set(aligner.selections())) == 2 * (1 + 3 + 3 * 2)
    assert len(aligner.selections(heads=False)) == 2 * (1 + 3)
    assert Aligner(translator("rnnsearch")).selections() == [
        WeightSelection(0),
        WeightSelection(0, None, 1),
    ]
    assert len(Aligner(translator("rnmt", heads=2)).selections()) == 2 * (1 + 2)
    weights = torch.rand(2, 1, 3, 4, 5)
    assert torch.equal(WeightSelection(1, 2).apply(weights), weights[1, :, 2])
    torch.testing.assert_close(WeightSelection(1).apply(weights), weights[1].mean(1))
    torch.testing.assert_close(WeightSelection(None).apply(weights), weights.mean((0, 2)))


GOLD: list[Links] = [frozenset({(2, 0), (0, 1), (1, 2)})] * 2
SAID = [("a b c", "C A B"), ("d e f", "F D E")]


@contextmanager
def planted(
    task: TranslateTask, layer: int, head: int, shift: int, links: Links = GOLD[0]
) -> Iterator[None]:
    """One head looks where the links say, all the others at the end of the source."""
    edits = {}
    for number, name in enumerate(task.model.cross_attentions):
        table = torch.zeros(task.model.decoder.layers[0].cross_attention.heads, 4, 4)
        table[..., 3] = 1.0
        if number == layer:
            table[head, :, 3] = 0.4  # the end has no word: it is never the best one
            for i, j in links:
                table[head, j + shift, i] = 0.6
        edits[name] = replace(table)
    with intervene(task.model, edits):
        yield


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("layer", "head", "shift"), [(0, 1, 0), (2, 0, 1)])
def test_the_planted_head_is_found(layer: int, head: int, shift: int, turned: bool):
    task = translator("transformer", "words", layers=3, heads=2)
    texts = [(target, source) for source, target in SAID] if turned else SAID
    gold = [flipped(links) for links in GOLD] if turned else GOLD
    aligner = Aligner(task, target_to_source=turned)
    told: list[int] = []
    with planted(task, layer, head, shift):
        choices = rank_by_gold(
            aligner, texts, [GoldAlignment(links, links) for links in gold], told.append
        )
        links = aligner.links(
            texts, [WeightSelection(layer, head, shift), WeightSelection(layer, head, 1 - shift)]
        )
    assert sum(told) == 2
    # the means over heads and layers hold the planted links too, and no others
    best = [choice.selections[0] for choice in choices if choice.agreement.aer == 0]
    assert set(best) == {
        WeightSelection(layer, head, shift),
        WeightSelection(layer, None, shift),
        WeightSelection(None, None, shift),
    }
    rates = [choice.agreement.aer for choice in choices]
    assert rates == sorted(rates)
    assert links[0] == gold
    assert links[1] != gold


def test_the_ways_that_agree_are_found():
    tasks = [translator("transformer", "words", layers=3, heads=2) for _ in range(2)]
    there, back = Aligner(tasks[0]), Aligner(tasks[1], target_to_source=True)
    with planted(tasks[0], 2, 0, 0), planted(tasks[1], 1, 1, 1, flipped(GOLD[0])):
        choices = rank_by_agreement(there, back, SAID)
    assert len(choices) == 8 * 8
    both = [choice for choice in choices if choice.agreement.predicted_sure]
    assert choices[: len(both)] == both  # elsewhere nothing is linked: no agreement, only silence
    best = {choice.selections for choice in both if choice.agreement.aer == 0}
    own, other = (
        (WeightSelection(2), WeightSelection(None)),
        (WeightSelection(1, None, 1), WeightSelection(None, None, 1)),
    )
    assert best == {(one, two) for one in own for two in other}
    assert choices[0].selections in best


def test_links_by_threshold():
    task = translator("transformer", "words", layers=1, heads=1)
    every = Aligner(task, extract_links=lambda table: strong_links(table, 1e-9))
    links = every.links(SAID, [WeightSelection(0)])[0]
    assert links[0] == {(i, j) for i in range(3) for j in range(3)}


def test_what_cannot_be_aligned(unchecked: None):
    with pytest.raises(ValueError, match="EncoderDecoder has no attention to the source"):
        Aligner(translator("encdec"))
    aligner = Aligner(translator("transformer", layers=3, heads=2))
    for way, says in (
        (WeightSelection(3), "layer must be 0 to 2, not 3"),
        (WeightSelection(0, 2), "head must be 0 to 1, not 2"),
        (WeightSelection(0, 0, 2), "shift must be 0 or 1, not 2"),
    ):
        with pytest.raises(ValueError, match=says):
            aligner.links(SAID, [way])
    with pytest.raises(ValueError, match="layer must be 0 only, not 1"):
        Aligner(translator("rnnsearch")).links(SAID, [WeightSelection(1)])


def test_looking_has_no_gradient_and_ends_training_mode():
    task = translator("rnnsearch")
    task.model.train()
    weights = task.attention_weights(collate([Example(0, [5, 6], [7])]))
    assert weights.shape == (1, 1, 1, 2, 3)
    assert not weights.requires_grad
    assert not task.model.training
