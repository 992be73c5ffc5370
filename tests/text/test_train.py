"""Tests of tokenizer training: determinism, sizes, options and errors."""

import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.text.special import SPECIALS, UNKNOWN
from regard.text.train import BYTE_COUNT, TOKENIZER_KINDS, train_tokenizer

SENTENCES = [
    "Ein Mann reitet auf einem Pferd , das schnell läuft .",
    "A man is riding on a horse , which runs fast .",
    "男が馬に乗っている 。",
] * 2
# All characters are equally frequent, so only the tie-breaking order decides which are kept.
EQUALLY_FREQUENT = [
    "".join(map(chr, range(0x4E00, 0x4E00 + 300))),
    " ".join(map(chr, range(0x400, 0x450))),
]

TRAIN_AND_HASH = """
import hashlib, json, sys
from regard.text.train import train_tokenizer
kind, size, texts = json.loads(sys.stdin.read())
print(hashlib.sha256(train_tokenizer(kind, texts, size).to_json().encode()).hexdigest())
"""


def train_in_subprocess(kind, size, texts, hash_seed):
    """Return the checksum of a tokenizer that another process trains."""
    import json

    completed = subprocess.run(
        [sys.executable, "-c", TRAIN_AND_HASH],
        input=json.dumps([kind, size, texts]),
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=True,
    )
    return completed.stdout


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_training_is_deterministic_across_processes(kind):
    size = {"byte_bpe": 300}.get(kind, 120)
    texts = [*SENTENCES, *EQUALLY_FREQUENT]
    assert len({train_in_subprocess(kind, size, texts, hash_seed) for hash_seed in range(3)}) == 1


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
@settings(max_examples=40)
@given(texts=st.lists(st.text(max_size=20), min_size=1), size=st.integers(6, 60), rng=st.randoms())
def test_vocabulary_size_is_bounded_and_independent_of_order(kind, texts, size, rng):
    texts = [*texts, "abc", *EQUALLY_FREQUENT]
    if kind == "byte_bpe":
        size += BYTE_COUNT
    tokenizer = train_tokenizer(kind, texts, size)
    assert len(SPECIALS) < tokenizer.size <= size
    rng.shuffle(texts)
    assert train_tokenizer(kind, texts, size).to_json() == tokenizer.to_json()


@pytest.mark.parametrize("kind", ["bpe", "wordpiece", "unigram", "characters"])
def test_frequent_characters_are_kept(kind):
    texts = ["aaa bbb cc"] * 10 + EQUALLY_FREQUENT
    tokenizer = train_tokenizer(kind, texts, 12)
    assert UNKNOWN not in tokenizer.encode("aa bb cc").ids
    assert UNKNOWN in tokenizer.encode(chr(0x4E00)).ids


@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
def test_iterator_with_too_many_characters(kind):
    with pytest.raises(ValueError, match="size 12 is less than the number of characters") as caught:
        train_tokenizer(kind, iter(EQUALLY_FREQUENT), 12)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
@pytest.mark.parametrize("texts", [[], [""], [" ", "\t\n"], iter([])])
def test_empty_texts(kind, texts):
    with pytest.raises(ValueError, match="texts are empty"):
        train_tokenizer(kind, texts, 300)


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_errors_of_the_reader_are_raised(kind):
    def reads():
        yield "a b c"
        raise ValueError("some.tsv:2: bad")

    with pytest.raises(ValueError, match=r"some.tsv:2: bad"):
        train_tokenizer(kind, reads(), 300)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "sentences"}, "kind must be one of bpe, .* not 'sentences'"),
        ({"size": 4}, "size must be at least 5 for bpe, not 4"),
        ({"kind": "byte_bpe", "size": 259}, "size must be at least 260 for byte_bpe"),
        ({"kind": "wordpiece", "size": 5}, "size must be at least 6 for wordpiece"),
        ({"min_count": 0}, "min_count must be at least 1, not 0"),
        ({"normalize": "NFD"}, "normalize must be NFC, NFKC or None, not 'NFD'"),
    ],
)
def test_bad_arguments(unchecked, options, message):
    with pytest.raises(ValueError, match=message):
        train_tokenizer(**{"kind": "bpe", "texts": SENTENCES, "size": 300, **options})


def test_words_by_frequency():
    tokenizer = train_tokenizer("words", ["b a b c", "c b d"], 6)
    assert [tokenizer.token(n) for n in range(4, tokenizer.size)] == ["b", "c"]
    assert tokenizer.encode("a b").ids == [UNKNOWN, 4]


def test_min_count():
    texts = ["aa aa bb cc", "aa bb"]
    message = train_tokenizer("words", texts, 100, min_count=2)
    assert [message.token(n) for n in range(4, message.size)] == ["aa", "bb"]
    letters = train_tokenizer("characters", ["aab "], 100, min_count=2)
    assert letters.encode("ab").ids == [4, UNKNOWN]
    joined = train_tokenizer("bpe", texts, 100, min_count=3)
    assert joined.encode("aa bb").tokens == ["▁aa", "▁", "b", "b"]
    pieces = train_tokenizer("unigram", texts, 100, min_count=3)
    assert pieces.encode("aa").tokens == ["▁aa"]
    assert "bb" not in pieces.encode("x bb").tokens


def test_bpe_merges():
    """The most frequent pair is "ab", then its merges (Sennrich et al. 2016, algorithm 1)."""
    tokenizer = train_tokenizer("bpe", ["ab ab ab abc"], 4 + 4 + 2)
    assert [tokenizer.token(n) for n in range(4, 10)] == ["a", "b", "c", "▁", "ab", "▁ab"]
    assert tokenizer.encode("ab cab").tokens == ["▁ab", "▁", "c", "ab"]


def test_bpe_separates_punctuation():
    tokenizer = train_tokenizer("bpe", ["(dog.) dog. (dog.)"] * 9, 100)
    assert tokenizer.encode("(dog.) dog.").tokens == ["▁(", "dog", ".)", "▁dog", "."]


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_lower_case(kind):
    tokenizer = train_tokenizer(kind, ["A Man Runs"], 300, lower=True)
    assert tokenizer.decode(tokenizer.encode("A MAN runs").ids) == "a man runs"


def test_zero_digits():
    tokenizer = train_tokenizer("words", ["at 3:40 on the 17th"], 50, zero_digits=True)
    assert (
        tokenizer.decode(tokenizer.encode_ids(["at 9:55 on the 20th"])[0]) == "at 0:00 on the 00th"
    )
