"""Tests of tokenizers: round trips, words, special ids and files."""

import json
import os
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from regard.text.special import END, PAD, SPECIALS, START, UNKNOWN
from regard.text.tokenizer import Encoding, Tokenizer
from regard.text.train import TOKENIZER_KINDS, WORD_SIGN, train_tokenizer

SENTENCES = [
    "Ein Mann reitet auf einem Pferd , das schnell läuft .",
    "A man is riding on a horse , which runs fast .",
    "Un homme monte à cheval ; l'été , il court .",
    "Мужчина едет на лошади .",
    "男が馬に乗っている 。",
    "איש רוכב על סוס .",  # noqa: RUF001
    "A woman is reading (again) — 24 pages , on 3.5.1994 !",
] * 3

# Spaces of all kinds, controls, emoji with modifiers, combining marks, right-to-left text, and
# strings with a meaning for a tokenizer; drawn more often than other characters.
UNUSUAL = [
    *(" ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u2028", "\x85", "\x1c", "\0", "\x7f"),
    *("<s>", "</s>", "<pad>", "<unk>", "<", ">", "▁", "Ġ", "##", "\ufeff", "\u200b", "\u180e"),
    *(
        "👩🏽\u200d🚀",
        "🇵🇱",
        "é",
        "e\u0301",
        "ﬁ",
        "İ",
        "Σς",
        "שָׁלוֹם",
        "\u202eabc\u202c",
        "日本",
        "한국어",
        "ﷺ",
    ),
]
texts = st.lists(st.one_of(st.text(max_size=6), st.sampled_from(UNUSUAL)), max_size=8).map("".join)
fewer_examples = settings(max_examples=25)  # for tests over all kinds
kinds = st.sampled_from(TOKENIZER_KINDS)
forms = st.sampled_from([None, "NFC", "NFKC"])

TRAINED = {kind: train_tokenizer(kind, SENTENCES, 400) for kind in TOKENIZER_KINDS}


def train_on(kind, text):
    """Train a tokenizer on this text, so that nothing in it is unknown."""
    return train_tokenizer(kind, [text, "a"], 2000)


@given(texts)
def test_byte_bpe_round_trip(text):
    tokenizer = TRAINED["byte_bpe"]
    encoding = tokenizer.encode(text)
    assert tokenizer.decode(encoding.ids) == text
    assert UNKNOWN not in encoding.ids


@given(texts)
def test_characters_round_trip(text):
    tokenizer = train_on("characters", text)
    encoding = tokenizer.encode(text)
    assert tokenizer.decode(encoding.ids) == text
    assert encoding.tokens == list(text)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@given(text=texts)
@example(text="<s> </s><unk> <<pad>>")
@example(text="a\t\tb\nc")
def test_pieces_round_trip(kind, text):
    """All but leading white space and the sign for a space is preserved."""
    text = text.replace("▁", "_").lstrip(" ")
    tokenizer = train_on(kind, text)
    ids = tokenizer.encode(text).ids
    assert tokenizer.decode(ids) == text
    assert UNKNOWN not in ids


@pytest.mark.parametrize("kind", ["words", "wordpiece"])
@given(text=texts)
def test_words_round_trip_with_single_spaces(kind, text):
    text = text.replace(WORD_SIGN, "x")  # not a character
    tokenizer = train_on(kind, text)
    words = tokenizer.words(text)
    unknown = [word for word in words if word in SPECIALS]
    if not unknown and not any(word.startswith("##") for word in words):
        assert tokenizer.decode(tokenizer.encode(text).ids) == " ".join(words)


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
@pytest.mark.parametrize("form", [None, "NFC", "NFKC"])
@pytest.mark.parametrize("lower", [False, True])
def test_every_token_belongs_to_a_word(kind, form, lower):
    """Words of tokens are in order and complete, also for unknown tokens."""
    tokenizer = train_tokenizer(kind, SENTENCES, 400, lower=lower, normalize=form)

    @fewer_examples
    @given(texts)
    def law(text):
        encoding = tokenizer.encode(text)
        words = tokenizer.words(text)
        assert len(encoding.ids) == len(encoding.tokens) == len(encoding.words)
        if not words:
            assert set(encoding.words) <= {None}
            return
        assert encoding.words == sorted(encoding.words)
        assert sorted(set(encoding.words)) == list(range(len(words)))

    law()


@given(texts)
def test_words_are_separated_by_white_space(text):
    words = TRAINED["bpe"].words(text)
    # U+001C to U+001F are spaces to Python but not to Unicode.
    for control in "\x1c\x1d\x1e\x1f":
        text = text.replace(control, "x")
    assert [len(word) for word in words] == [len(word) for word in text.split()]


def test_words_of_known_texts():
    text = "A man\u00a0runs  ."
    assert TRAINED["bpe"].words(text) == ["A", "man", "runs", "."]
    assert TRAINED["words"].encode(text).words == [0, 1, 2, 3]
    # A, space, m, a, n, space, r, u, n, s, space, space, full stop
    assert TRAINED["characters"].encode(text).words == [0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3]
    assert TRAINED["byte_bpe"].encode("é A ").words[-1] == 1


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_training_texts_round_trip(kind):
    for text in SENTENCES:
        encoding = TRAINED[kind].encode(text)
        assert TRAINED[kind].decode(encoding.ids) == text
        assert UNKNOWN not in encoding.ids
        assert [TRAINED[kind].token(n) for n in encoding.ids] == encoding.tokens


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
@fewer_examples
@given(batch=st.lists(texts, max_size=5))
def test_batches_are_independent(kind, batch):
    tokenizer = TRAINED[kind]
    encodings = tokenizer.encode_batch(batch)
    assert encodings == [tokenizer.encode(text) for text in batch]
    assert tokenizer.encode_ids(batch) == [encoding.ids for encoding in encodings]
    assert all(isinstance(encoding, Encoding) for encoding in encodings)


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
@fewer_examples
@given(text=texts)
def test_no_text_contains_special_ids(kind, text):
    for candidate in (text, "<s>", " </s> x <pad>", "a<s>b"):
        ids = TRAINED[kind].encode(candidate).ids
        assert not ids or min(ids) > END
        ids_when_trained = train_on(kind, candidate).encode(candidate).ids
        assert not ids_when_trained or min(ids_when_trained) > END


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_special_ids(kind):
    tokenizer = TRAINED[kind]
    assert [tokenizer.token(n) for n in (PAD, START, END, UNKNOWN)] == list(SPECIALS)
    ids = tokenizer.encode("A man").ids
    assert tokenizer.decode([START, *ids, END, PAD, PAD]) == "A man"
    assert "</s>" in tokenizer.decode([*ids, END], skip_specials=False)
    assert tokenizer.decode([UNKNOWN]) == "<unk>"
    assert tokenizer.decode([]) == ""
    assert tokenizer.encode("") == Encoding([], [], [])


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_ids_outside_the_vocabulary(kind):
    tokenizer = TRAINED[kind]
    for token_id in (-1, tokenizer.size):
        with pytest.raises(ValueError, match=rf"ids must be in \[0, \d+\), not {token_id}"):
            tokenizer.decode([5, token_id])
        with pytest.raises(ValueError, match=str(token_id)):
            tokenizer.token(token_id)
    assert tokenizer.token(tokenizer.size - 1)


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
@fewer_examples
@given(text=texts)
def test_encoding_from_ids_agrees_with_encode(kind, text):
    """Generated ids give the same tokens and words as the text."""
    tokenizer = train_on(kind, text)
    encoding = tokenizer.encode(text.replace("▁", "_").strip())
    if UNKNOWN not in encoding.ids and not any("#" in token for token in encoding.tokens):
        assert tokenizer.encoding_from_ids(encoding.ids) == encoding


def test_encoding_from_ids_with_special_ids():
    tokenizer = TRAINED["bpe"]
    man, comma = tokenizer.encode("A man").ids[-1], tokenizer.encode("a ,").ids[-1]
    encoding = tokenizer.encoding_from_ids([START, man, END, UNKNOWN, comma, PAD])
    assert encoding.words == [None, 0, None, 0, 1, None]
    assert tokenizer.encoding_from_ids([PAD]).words == [None]
    pieces = TRAINED["byte_bpe"].encode("é 日").ids
    assert (
        TRAINED["byte_bpe"].encoding_from_ids(pieces).words
        == TRAINED["byte_bpe"].encode("é 日").words
    )


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
@fewer_examples
@given(text=texts, lower=st.booleans(), form=forms)
def test_save_and_load(tmp_path_factory, kind, text, lower, form):
    tokenizer = train_tokenizer(kind, [*SENTENCES, text], 400, lower=lower, normalize=form)
    path = tmp_path_factory.getbasetemp() / "tokenizer.json"
    tokenizer.save(path)
    loaded = Tokenizer.load(path)
    assert loaded.to_json() == tokenizer.to_json()
    assert loaded.size == tokenizer.size
    assert loaded.encode(text) == tokenizer.encode(text)
    ids = tokenizer.encode(text).ids
    assert loaded.decode(ids) == tokenizer.decode(ids)


def test_save_is_atomic(tmp_path, monkeypatch):
    path = tmp_path / "tokenizer.json"
    TRAINED["words"].save(path)
    before = path.read_bytes()

    def fail(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space"):
        TRAINED["bpe"].save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_damaged_files(tmp_path):
    path = tmp_path / "tokenizer.json"
    TRAINED["bpe"].save(path)
    intact = path.read_bytes()
    shuffled = json.loads(intact)
    vocabulary = shuffled["model"]["vocab"]
    vocabulary["<s>"], vocabulary["</s>"] = vocabulary["</s>"], vocabulary["<s>"]
    for damaged in (
        b"",
        b"\0\xff",
        b"[]",
        b"{}",
        b"null",
        intact[: len(intact) // 2],
        intact.replace(b'"BPE"', b'"EPB"'),
        intact.replace(b'"merges"', b'"urges"'),
        json.dumps(shuffled).encode(),
    ):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="damaged") as caught:
            Tokenizer.load(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)


@settings(max_examples=100)
@given(data=st.data())
def test_a_changed_byte_is_harmless_or_an_error(tmp_path_factory, data):
    """After a changed byte, the file still loads, or a one-line error names it."""
    path = tmp_path_factory.getbasetemp() / "flipped.json"
    content = bytearray(TRAINED[data.draw(kinds)].to_json().encode())
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    message = ""
    try:
        Tokenizer.load(path)
    except ValueError as error:
        message = str(error)
    assert message == "" or (str(path) in message and "\n" not in message)


def test_a_missing_file(tmp_path):
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(ValueError, match="there is no such file"):
            Tokenizer.load(path)


def test_lone_surrogates_are_refused():
    for call in (TRAINED["bpe"].encode, lambda text: TRAINED["bpe"].encode_ids(["fine", text])):
        with pytest.raises(ValueError, match=r"character 1 is U\+D83D"):
            call("a\ud83d")


@pytest.mark.parametrize("form", ["NFC", "NFKC"])
@given(text=texts)
def test_normal_forms_match_unicodedata(form, text):
    tokenizer = train_tokenizer("characters", [text, "a"], 2000, normalize=form)
    assert tokenizer.decode(tokenizer.encode(text).ids) == unicodedata.normalize(form, text)


@given(text=texts, form=forms)
@example(text="J\u030c \u2122", form="NFKC")
def test_lower_case_is_idempotent(text, form):
    tokenizer = train_tokenizer("characters", [text, "a"], 2000, lower=True, normalize=form)
    once = tokenizer.decode(tokenizer.encode(text).ids)
    assert tokenizer.decode(tokenizer.encode(once).ids) == once
    if form is None:
        # Character by character: no final sigma.
        assert once == "".join(character.lower() for character in text)


def test_words_after_normalization():
    """Words are those of the original text, although NFKC turns one character into four words."""
    tokenizer = train_tokenizer("words", SENTENCES, 400, normalize="NFKC")
    encoding = tokenizer.encode("\ufdfa A")
    assert len(encoding.ids) == 5
    assert encoding.words == [0, 0, 0, 0, 1]
    assert all(a <= b for a, b in pairwise(encoding.words))
