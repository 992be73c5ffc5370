"""The likeliest next words, compared with an enumeration of all tokens, for every tokenizer."""

import math
from collections import defaultdict

import pytest
import torch
from torch import nn

from regard.config.decode import GreedyConfig
from regard.models.catalogue import build_model
from regard.tasks import next_words
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


def build_task(kind: str, model: str = "rnnlm") -> LanguageTask:
    """Return a task with large random weights, so that probabilities of tokens differ."""
    text = train_tokenizer(kind, TEXTS, SIZES[kind])
    network = build_model(model, {**MODELS[model], "size": text.size}).double().eval()
    for weight in network.parameters():
        nn.init.normal_(weight, std=0.6)
    return LanguageTask(network, text, decoding=GREEDY)


@torch.no_grad()
def enumerate_words(task: LanguageTask, text: str, depth: int) -> dict[str, float]:
    """Return the probability of each word of at most `depth` tokens, by enumeration.

    The typed text must be ASCII: no token ends inside one of its characters.
    """
    tail = WORD_PATTERN.findall("." + text)[-1] if text[-1:].strip() else ""
    tail = tail[1:] if text == tail[1:] else tail
    before = text[: len(text) - len(tail)]
    stem = task.text.encode_ids([before.removesuffix(" ")])[0]

    def decode(ids: tuple[int, ...]) -> str:
        return task.text.decode([*stem, *ids])

    def word(prefix: str) -> tuple[str, bool]:
        match = WORD_PATTERN.search(prefix[len(before) :])
        is_complete = match is not None and len(before) + match.end() < len(prefix)
        return (match[0] if match else "", is_complete)

    words, mass = defaultdict[str, float](float), float(decode(()).startswith(text))
    prefixes: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(depth + 1):  # the last step only completes words
        longer = dict[tuple[int, ...], float]()
        states = task.model.teacher_forced(
            None, torch.tensor([[END, *stem, *ids] for ids in prefixes])
        )
        probabilities = task.model.logits(states[:, -1]).softmax(-1).tolist()
        for (ids, p), row in zip(prefixes.items(), probabilities, strict=True):
            prefix = decode(ids)
            covers_typed, (candidate, _) = prefix.startswith(text), word(prefix)
            for token, token_p in enumerate(row):
                extended = prefix if token == END else decode((*ids, token))
                _, is_complete = word(extended)
                if (
                    covers_typed
                    and candidate
                    and "\ufffd" not in candidate
                    and (is_complete or token == END)
                ):
                    words[candidate] += p * token_p
                    continue
                if token <= UNKNOWN or (covers_typed and is_complete):
                    continue
                if extended.startswith(text) or text.startswith(extended):
                    longer[*ids, token] = p * token_p
                    mass += p * token_p if extended.startswith(text) and not covers_typed else 0
        prefixes = longer
        if not prefixes:
            break
    return {candidate: p / mass for candidate, p in words.items()}


CASES = [
    *[(kind, text, 3) for kind in ("bpe", "unigram") for text in ("ab ", "ba a", "ab ba ab")],
    *[("wordpiece", text, 3) for text in ("ab ", "ba a", "ba ab")],
    *[("words", text, 2) for text in ("ab ", "ba a", "ab abb", "a")],
    *[("characters", text, 4) for text in ("", "ab ", "ba a", "ab")],
    ("byte_bpe", "ba ab", 2),
    ("byte_bpe", "ba ", 1),
]


@pytest.mark.parametrize(("kind", "text", "depth"), CASES)
def test_words_are_those_of_the_enumeration(kind, text, depth, monkeypatch, unchecked):
    monkeypatch.setattr(next_words, "MIN_RELATIVE_PROBABILITY", 0.0)
    task = build_task(kind)
    tail = len(task.token_bytes.resume_point(text).tail)
    words = task.next_words(text, 10**6, max_prefixes=10**6, max_tokens=depth - tail)
    assert dict(words) == pytest.approx(enumerate_words(task, text, depth), rel=1e-9)
    assert len(words) > 1
    assert [p for _, p in words] == sorted((p for _, p in words), reverse=True)
    assert all(
        word.startswith(WORD_PATTERN.findall(f"x {text}")[-1])
        for word, _ in words
        if text[-1:] > " "
    )


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("text", ["ba ab", "b"])
def test_the_few_best_are_the_best_of_all(model, text, unchecked):
    """In characters a word has one tokenization, so the search drops nothing."""
    task = build_task("characters", model)
    expected = sorted(enumerate_words(task, text, 4).items(), key=lambda item: -item[1])[:3]
    tail = len(task.token_bytes.resume_point(text).tail)
    words = task.next_words(text, 3, max_tokens=4 - tail)
    assert [word for word, _ in words] == [word for word, _ in expected]
    assert [p for _, p in words] == pytest.approx([p for _, p in expected], rel=1e-6)


def test_an_external_tokenizer(unchecked):
    task = build_task("byte_bpe")
    tokenizer = ExternalTokenizer.from_tokenizer(task.text)
    external_task = LanguageTask(task.model, tokenizer, decoding=GREEDY)
    words, external_words = (t.next_words("ab b", 5) for t in (task, external_task))
    # PAD and START are ordinary tokens of the external tokenizer.
    assert dict(external_words) == pytest.approx(dict(words), rel=1e-3)


def test_the_number_of_prefixes_is_limited(unchecked):
    task, rows = build_task("characters"), 0
    read = task.model.read

    def counting_read(state: object, ids: torch.Tensor) -> object:
        nonlocal rows
        rows += len(ids)
        return read(state, ids)

    task.model.read = counting_read
    task.next_words("ab ", 50, max_prefixes=40)
    assert 30 < rows <= 41  # with one row for the prompt


def test_words_have_complete_characters(unchecked):
    """Tokens may split a character of several bytes, in the typed text and in words."""
    task = build_task("byte_bpe")
    words = task.next_words("ab dö", 20)
    assert words
    assert all(word.startswith("dö") and "\ufffd" not in word for word, _ in words)


def test_an_unknown_character_has_no_continuation(unchecked):
    assert build_task("characters").next_words("ab ж", 5) == []
    with pytest.raises(ValueError, match="count must be 1 or more, not 0"):
        build_task("characters").next_words("ab", 0)


def test_a_long_text_leaves_positions_for_the_word(unchecked):
    task = build_task("characters", "gpt2")
    text = "ab ba " * 20
    assert task.next_words(text + "a", 4) == task.next_words(text[6:] + "a", 4)
    assert task.next_words(text + "a", 4) != task.next_words("a", 4)
