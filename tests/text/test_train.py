"""Learning a vocabulary: the same from the same text, never too large, never from nothing."""

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
# Every character as often as every other: what is kept is a matter of order only.
EQUALS = ["".join(map(chr, range(0x4E00, 0x4E00 + 300))), " ".join(map(chr, range(0x400, 0x450)))]

AGAIN = """
import hashlib, json, sys
from regard.text.train import train_tokenizer
kind, size, texts = json.loads(sys.stdin.read())
print(hashlib.sha256(train_tokenizer(kind, texts, size).to_json().encode()).hexdigest())
"""


def elsewhere(kind, size, texts, hash_seed):
    """The checksum of a tokeniser trained by another process."""
    import json

    done = subprocess.run(
        [sys.executable, "-c", AGAIN],
        input=json.dumps([kind, size, texts]),
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_the_same_text_gives_the_same_tokeniser(kind):
    size = {"byte_bpe": 300}.get(kind, 120)
    texts = [*SENTENCES, *EQUALS]
    assert len({elsewhere(kind, size, texts, hash_seed) for hash_seed in range(3)}) == 1


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
@settings(max_examples=40)
@given(
    texts=st.lists(st.text(max_size=20), min_size=1), size=st.integers(6, 60), again=st.randoms()
)
def test_the_vocabulary_is_never_too_large(kind, texts, size, again):
    texts = [*texts, "abc", *EQUALS]
    if kind == "byte_bpe":
        size += BYTE_COUNT
    tokeniser = train_tokenizer(kind, texts, size)
    assert len(SPECIALS) < tokeniser.size <= size
    again.shuffle(texts)
    assert train_tokenizer(kind, texts, size).to_json() == tokeniser.to_json()


@pytest.mark.parametrize("kind", ["bpe", "wordpiece", "unigram", "characters"])
def test_frequent_characters_are_kept(kind):
    texts = ["aaa bbb cc"] * 10 + EQUALS
    tokeniser = train_tokenizer(kind, texts, 12)
    assert UNKNOWN not in tokeniser.encode("aa bb cc").ids
    assert UNKNOWN in tokeniser.encode(chr(0x4E00)).ids


@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
def test_too_many_characters_in_what_is_read_once(kind):
    with pytest.raises(ValueError, match="size 12 is less than the text has characters") as caught:
        train_tokenizer(kind, iter(EQUALS), 12)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
@pytest.mark.parametrize("texts", [[], [""], [" ", "\t\n"], iter([])])
def test_nothing_to_learn_from(kind, texts):
    with pytest.raises(ValueError, match="texts are empty"):
        train_tokenizer(kind, texts, 300)


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_an_error_of_the_reader_comes_through(kind):
    def reads():
        yield "a b c"
        raise ValueError("some.tsv:2: bad")

    with pytest.raises(ValueError, match=r"some.tsv:2: bad"):
        train_tokenizer(kind, reads(), 300)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"kind": "sentences"}, "kind must be one of bpe, .* not 'sentences'"),
        ({"size": 4}, "size must be at least 5 for bpe, not 4"),
        ({"kind": "byte_bpe", "size": 259}, "size must be at least 260 for byte_bpe"),
        ({"kind": "wordpiece", "size": 5}, "size must be at least 6 for wordpiece"),
        ({"min_count": 0}, "min_count must be at least 1, not 0"),
        ({"normalize": "NFD"}, "normalize must be NFC, NFKC or None, not 'NFD'"),
    ],
)
def test_wrong_arguments(unchecked, wrong, words):
    with pytest.raises(ValueError, match=words):
        train_tokenizer(**{"kind": "bpe", "texts": SENTENCES, "size": 300, **wrong})


def test_words_by_frequency():
    tokeniser = train_tokenizer("words", ["b a b c", "c b d"], 6)
    assert [tokeniser.token(n) for n in range(4, tokeniser.size)] == ["b", "c"]
    assert tokeniser.encode("a b").ids == [UNKNOWN, 4]


def test_rare_ones_stay_out():
    texts = ["aa aa bb cc", "aa bb"]
    words = train_tokenizer("words", texts, 100, min_count=2)
    assert [words.token(n) for n in range(4, words.size)] == ["aa", "bb"]
    letters = train_tokenizer("characters", ["aab "], 100, min_count=2)
    assert letters.encode("ab").ids == [4, UNKNOWN]
    joined = train_tokenizer("bpe", texts, 100, min_count=3)
    assert joined.encode("aa bb").tokens == ["▁aa", "▁", "b", "b"]
    pieces = train_tokenizer("unigram", texts, 100, min_count=3)
    assert pieces.encode("aa").tokens == ["▁aa"]
    assert "bb" not in pieces.encode("x bb").tokens


def test_joins_by_hand():
    """ab is seen most often; then its joins: Sennrich et al. 2016, algorithm 1."""
    tokeniser = train_tokenizer("bpe", ["ab ab ab abc"], 4 + 4 + 2)
    assert [tokeniser.token(n) for n in range(4, 10)] == ["a", "b", "c", "▁", "ab", "▁ab"]
    assert tokeniser.encode("ab cab").tokens == ["▁ab", "▁", "c", "ab"]


def test_punctuation_is_cut_off():
    tokeniser = train_tokenizer("bpe", ["(dog.) dog. (dog.)"] * 9, 100)
    assert tokeniser.encode("(dog.) dog.").tokens == ["▁(", "dog", ".)", "▁dog", "."]


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_lower_case(kind):
    tokeniser = train_tokenizer(kind, ["A Man Runs"], 300, lower=True)
    assert tokeniser.decode(tokeniser.encode("A MAN runs").ids) == "a man runs"


def test_digits():
    text = train_tokenizer("words", ["at 3:40 on the 17th"], 50, zero_digits=True)
    assert text.decode(text.encode_ids(["at 9:55 on the 20th"])[0]) == "at 0:00 on the 00th"
