"""The likeliest next words: as by trying all tokens, for every kind of vocabulary."""

import math
from collections import defaultdict

import pytest
import torch
from torch import nn

from regard.config.decode import GreedyConfig
from regard.models.catalogue import build_model
from regard.tasks import next_words as searched
from regard.tasks.generation import build_decoding
from regard.tasks.language.task import LanguageTask
from regard.text.external import ExternalTokenizer
from regard.text.special import END, UNKNOWN
from regard.text.tokenizer import WORD_PATTERN
from regard.text.train import train_tokenizer

TEXTS = ["ab ba abb a b bab ab. abba", "ba ab ab abb"] * 5
SIZES = {"bpe": 12, "byte_bpe": 264, "wordpiece": 13, "unigram": 11, "words": 12, "characters": 10}
MODELS = {
    "gpt2": {"dim": 8, "heads": 2, "layers": 1, "max_positions": 24, "dropout": 0.0},
    "rnnlm": {"dim": 8},
    "lstmn": {"dim": 8},
}
GREEDY = build_decoding(GreedyConfig(), math.inf)


def made(kind: str, model: str = "rnnlm", *, foreign: bool = False) -> LanguageTask:
    """With weights so wide that tokens differ in their probabilities."""
    text = train_tokenizer(kind, TEXTS, SIZES[kind])
    network = build_model(model, {**MODELS[model], "size": text.size}).double().eval()
    for weight in network.parameters():
        nn.init.normal_(weight, std=0.6)
    tokenizer = ExternalTokenizer.from_tokenizer(text) if foreign else text
    return LanguageTask(network, tokenizer, decoding=GREEDY)


@torch.no_grad()
def tried(task: LanguageTask, text: str, depth: int) -> dict[str, float]:
    """p of each word of at most `depth` tokens, by trying all of them, with the text's decoding.

    What was typed is ASCII: no token may end within one of its characters.
    """
    tail = WORD_PATTERN.findall("." + text)[-1] if text[-1:].strip() else ""
    tail = tail[1:] if text == tail[1:] else tail
    before = text[: len(text) - len(tail)]
    stem = task.text.encode_ids([before.removesuffix(" ")])[0]

    def written(ids: tuple[int, ...]) -> str:
        return task.text.decode([*stem, *ids])

    def word(so_far: str) -> tuple[str, bool]:
        found = WORD_PATTERN.search(so_far[len(before) :])
        over = found is not None and len(before) + found.end() < len(so_far)
        return (found[0] if found else "", over)

    found, mass = defaultdict[str, float](float), float(written(()).startswith(text))
    front: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(depth + 1):  # the last time to see what ends there
        ahead = dict[tuple[int, ...], float]()
        states = task.model.teacher_forced(
            None, torch.tensor([[END, *stem, *ids] for ids in front])
        )
        shares = task.model.logits(states[:, -1]).softmax(-1).tolist()
        for (ids, p), row in zip(front.items(), shares, strict=True):
            here = written(ids)
            for number, share in enumerate(row):
                now = here if number == END else written((*ids, number))
                known, (said, _), (_, over) = here.startswith(text), word(here), word(now)
                if known and said and "\ufffd" not in said and (over or number == END):
                    found[said] += p * share
                    continue
                if number <= UNKNOWN or (known and over):
                    continue
                if now.startswith(text) or text.startswith(now):
                    ahead[*ids, number] = p * share
                    mass += p * share if now.startswith(text) and not known else 0
        front = ahead
        if not front:
            break
    return {one: p / mass for one, p in found.items()}


CASES = [
    *[(kind, text, 3) for kind in ("bpe", "unigram") for text in ("ab ", "ba a", "ab ba ab")],
    *[("wordpiece", text, 3) for text in ("ab ", "ba a", "ba ab")],
    *[("words", text, 2) for text in ("ab ", "ba a", "ab abb", "a")],
    *[("characters", text, 4) for text in ("", "ab ", "ba a", "ab")],
    ("byte_bpe", "ba ab", 2),
    ("byte_bpe", "ba ", 1),
]


@pytest.mark.parametrize(("kind", "text", "depth"), CASES)
def test_words_are_those_of_trying_all(kind, text, depth, monkeypatch, unchecked):
    monkeypatch.setattr(searched, "MIN_RELATIVE_PROBABILITY", 0.0)
    task = made(kind)
    tail = len(task.token_bytes.resume_point(text).tail)
    found = task.next_words(text, 10**6, max_prefixes=10**6, max_tokens=depth - tail)
    wanted = tried(task, text, depth)
    assert dict(found) == pytest.approx(wanted, rel=1e-9)
    assert len(found) > 1
    assert [p for _, p in found] == sorted((p for _, p in found), reverse=True)
    assert all(
        word.startswith(WORD_PATTERN.findall(f"x {text}")[-1])
        for word, _ in found
        if text[-1:] > " "
    )


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("text", ["ba ab", "b"])
def test_the_few_best_are_the_best_of_all(model, text, unchecked):
    """By characters there is one way to cut a word that was begun: nothing is left out."""
    task = made("characters", model)
    wanted = sorted(tried(task, text, 4).items(), key=lambda one: -one[1])[:3]
    tail = len(task.token_bytes.resume_point(text).tail)
    found = task.next_words(text, 3, max_tokens=4 - tail)
    assert [word for word, _ in found] == [word for word, _ in wanted]
    assert [p for _, p in found] == pytest.approx([p for _, p in wanted], rel=1e-6)


def test_ids_that_are_not_ours(unchecked):
    own = made("byte_bpe")
    external = ExternalTokenizer.from_tokenizer(own.text)
    other = LanguageTask(own.model, external, decoding=GREEDY)
    ours, theirs = (task.next_words("ab b", 5) for task in (own, other))
    assert dict(theirs) == pytest.approx(dict(ours), rel=1e-3)  # PAD and START are tokens there


def test_work_is_bounded(unchecked):
    task, read = made("characters"), 0
    inner = task.model.read

    def counted(state: object, ids: torch.Tensor) -> object:
        nonlocal read
        read += len(ids)
        return inner(state, ids)

    task.model.read = counted
    task.next_words("ab ", 50, max_prefixes=40)
    assert 30 < read <= 41  # and once for what stands before


def test_a_letter_of_several_bytes_may_be_cut(unchecked):
    """Typed, or found: no half of a letter is told."""
    task = made("byte_bpe")
    found = task.next_words("ab dö", 20)
    assert found
    assert all(word.startswith("dö") and "\ufffd" not in word for word, _ in found)


def test_what_nobody_can_write_has_no_continuation(unchecked):
    assert made("characters").next_words("ab ж", 5) == []
    with pytest.raises(ValueError, match="count must be 1 or more, not 0"):
        made("characters").next_words("ab", 0)


def test_a_long_text_is_cut_to_leave_room_for_the_word(unchecked):
    task = made("characters", "gpt2")
    long = "ab ba " * 20
    assert task.next_words(long + "a", 4) == task.next_words(long[6:] + "a", 4)
    assert task.next_words(long + "a", 4) != task.next_words("a", 4)
