"""Text to ids and back: nothing is lost, words are kept, files are whole."""

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

# Any characters; and, more often than chance would have it, spaces of all kinds, controls, emoji
# with modifiers, combining marks, right-to-left text, and what has a meaning for a tokeniser.
ODD = [
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
texts = st.lists(st.one_of(st.text(max_size=6), st.sampled_from(ODD)), max_size=8).map("".join)
few = settings(max_examples=25)  # for tests of every kind
kinds = st.sampled_from(TOKENIZER_KINDS)
forms = st.sampled_from([None, "NFC", "NFKC"])

TRAINED = {kind: train_tokenizer(kind, SENTENCES, 400) for kind in TOKENIZER_KINDS}


def of(kind, text):
    """A tokeniser that has seen this text, so that nothing in it is unknown."""
    return train_tokenizer(kind, [text, "a"], 2000)


@given(texts)
def test_bytes_write_anything(text):
    tokeniser = TRAINED["byte_bpe"]
    encoding = tokeniser.encode(text)
    assert tokeniser.decode(encoding.ids) == text
    assert UNKNOWN not in encoding.ids


@given(texts)
def test_characters_write_all_that_they_have_seen(text):
    tokeniser = of("characters", text)
    encoding = tokeniser.encode(text)
    assert tokeniser.decode(encoding.ids) == text
    assert encoding.tokens == list(text)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@given(text=texts)
@example(text="<s> </s><unk> <<pad>>")
@example(text="a\t\tb\nc")
def test_pieces_write_all_that_they_have_seen(kind, text):
    """White space at the start, and the sign that stands for a space, are the exceptions."""
    text = text.replace("▁", "_").lstrip(" ")
    tokeniser = of(kind, text)
    ids = tokeniser.encode(text).ids
    assert tokeniser.decode(ids) == text
    assert UNKNOWN not in ids


@pytest.mark.parametrize("kind", ["words", "wordpiece"])
@given(text=texts)
def test_words_come_back_with_single_spaces(kind, text):
    text = text.replace(WORD_SIGN, "x")  # never a character
    tokeniser = of(kind, text)
    words = tokeniser.words(text)
    unknown = [word for word in words if word in SPECIALS]
    if not unknown and not any(word.startswith("##") for word in words):
        assert tokeniser.decode(tokeniser.encode(text).ids) == " ".join(words)


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
@pytest.mark.parametrize("form", [None, "NFC", "NFKC"])
@pytest.mark.parametrize("lower", [False, True])
def test_words_are_counted(kind, form, lower):
    """Every token is of a word, in order, and no word is left out; whatever was known or not."""
    tokeniser = train_tokenizer(kind, SENTENCES, 400, lower=lower, normalize=form)

    @few
    @given(texts)
    def law(text):
        encoding = tokeniser.encode(text)
        words = tokeniser.words(text)
        assert len(encoding.ids) == len(encoding.tokens) == len(encoding.words)
        if not words:
            assert set(encoding.words) <= {None}
            return
        assert encoding.words == sorted(encoding.words)
        assert sorted(set(encoding.words)) == list(range(len(words)))

    law()


@given(texts)
def test_words_stand_between_white_space(text):
    words = TRAINED["bpe"].words(text)
    # U+001C to U+001F are spaces to Python but not to Unicode.
    for control in "\x1c\x1d\x1e\x1f":
        text = text.replace(control, "x")
    assert [len(word) for word in words] == [len(word) for word in text.split()]


def test_words_by_hand():
    text = "A man\u00a0runs  ."
    assert TRAINED["bpe"].words(text) == ["A", "man", "runs", "."]
    assert TRAINED["words"].encode(text).words == [0, 1, 2, 3]
    # A, space, m, a, n, space, r, u, n, s, space, space, full stop
    assert TRAINED["characters"].encode(text).words == [0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3]
    assert TRAINED["byte_bpe"].encode("é A ").words[-1] == 1


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_a_text_that_was_trained_on(kind):
    for text in SENTENCES:
        encoding = TRAINED[kind].encode(text)
        assert TRAINED[kind].decode(encoding.ids) == text
        assert UNKNOWN not in encoding.ids
        assert [TRAINED[kind].token(n) for n in encoding.ids] == encoding.tokens


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
@few
@given(some=st.lists(texts, max_size=5))
def test_a_batch_is_as_its_rows(kind, some):
    tokeniser = TRAINED[kind]
    encodings = tokeniser.encode_batch(some)
    assert encodings == [tokeniser.encode(text) for text in some]
    assert tokeniser.encode_ids(some) == [encoding.ids for encoding in encodings]
    assert all(isinstance(encoding, Encoding) for encoding in encodings)


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
@few
@given(text=texts)
def test_no_text_is_a_special_token(kind, text):
    for one in (text, "<s>", " </s> x <pad>", "a<s>b"):
        ids = TRAINED[kind].encode(one).ids
        assert not ids or min(ids) > END
        seen = of(kind, one).encode(one).ids
        assert not seen or min(seen) > END


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_special_ids(kind):
    tokeniser = TRAINED[kind]
    assert [tokeniser.token(n) for n in (PAD, START, END, UNKNOWN)] == list(SPECIALS)
    ids = tokeniser.encode("A man").ids
    assert tokeniser.decode([START, *ids, END, PAD, PAD]) == "A man"
    assert "</s>" in tokeniser.decode([*ids, END], skip_specials=False)
    assert tokeniser.decode([UNKNOWN]) == "<unk>"
    assert tokeniser.decode([]) == ""
    assert tokeniser.encode("") == Encoding([], [], [])


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_ids_outside_the_vocabulary(kind):
    tokeniser = TRAINED[kind]
    for wrong in (-1, tokeniser.size):
        with pytest.raises(ValueError, match=rf"ids must be in \[0, \d+\), not {wrong}"):
            tokeniser.decode([5, wrong])
        with pytest.raises(ValueError, match=str(wrong)):
            tokeniser.token(wrong)
    assert tokeniser.token(tokeniser.size - 1)


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
@few
@given(text=texts)
def test_spelling_agrees_with_encoding(kind, text):
    """What a model might write, read back: the same tokens and words as from the text."""
    tokeniser = of(kind, text)
    encoding = tokeniser.encode(text.replace("▁", "_").strip())
    if UNKNOWN not in encoding.ids and not any("#" in token for token in encoding.tokens):
        assert tokeniser.encoding_from_ids(encoding.ids) == encoding


def test_spelling_of_what_no_text_gives():
    tokeniser = TRAINED["bpe"]
    man, comma = tokeniser.encode("A man").ids[-1], tokeniser.encode("a ,").ids[-1]
    spelt = tokeniser.encoding_from_ids([START, man, END, UNKNOWN, comma, PAD])
    assert spelt.words == [None, 0, None, 0, 1, None]
    assert tokeniser.encoding_from_ids([PAD]).words == [None]
    pieces = TRAINED["byte_bpe"].encode("é 日").ids
    assert (
        TRAINED["byte_bpe"].encoding_from_ids(pieces).words
        == TRAINED["byte_bpe"].encode("é 日").words
    )


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
@few
@given(text=texts, lower=st.booleans(), form=forms)
def test_a_file_holds_everything(tmp_path_factory, kind, text, lower, form):
    tokeniser = train_tokenizer(kind, [*SENTENCES, text], 400, lower=lower, normalize=form)
    path = tmp_path_factory.getbasetemp() / "tokenizer.json"
    tokeniser.save(path)
    loaded = Tokenizer.load(path)
    assert loaded.to_json() == tokeniser.to_json()
    assert loaded.size == tokeniser.size
    assert loaded.encode(text) == tokeniser.encode(text)
    ids = tokeniser.encode(text).ids
    assert loaded.decode(ids) == tokeniser.decode(ids)


def test_a_file_is_whole_or_not_there(tmp_path, monkeypatch):
    path = tmp_path / "tokenizer.json"
    TRAINED["words"].save(path)
    before = path.read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        TRAINED["bpe"].save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_damaged_files(tmp_path):
    path = tmp_path / "tokenizer.json"
    TRAINED["bpe"].save(path)
    whole = path.read_bytes()
    shuffled = json.loads(whole)
    vocabulary = shuffled["model"]["vocab"]
    vocabulary["<s>"], vocabulary["</s>"] = vocabulary["</s>"], vocabulary["<s>"]
    for damaged in (
        b"",
        b"\0\xff",
        b"[]",
        b"{}",
        b"null",
        whole[: len(whole) // 2],
        whole.replace(b'"BPE"', b'"EPB"'),
        whole.replace(b'"merges"', b'"urges"'),
        json.dumps(shuffled).encode(),
    ):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="damaged") as caught:
            Tokenizer.load(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)


@settings(max_examples=100)
@given(data=st.data())
def test_any_damage_is_found_or_harmless(tmp_path_factory, data):
    """A changed byte: either the file still loads, or the one-line error says which file."""
    path = tmp_path_factory.getbasetemp() / "flipped.json"
    whole = bytearray(TRAINED[data.draw(kinds)].to_json().encode())
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(whole)
    said = ""
    try:
        Tokenizer.load(path)
    except ValueError as error:
        said = str(error)
    assert said == "" or (str(path) in said and "\n" not in said)


def test_a_missing_file(tmp_path):
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(ValueError, match="there is no such file"):
            Tokenizer.load(path)


def test_half_a_surrogate_pair_is_no_text():
    for call in (TRAINED["bpe"].encode, lambda text: TRAINED["bpe"].encode_ids(["fine", text])):
        with pytest.raises(ValueError, match=r"character 1 is U\+D83D"):
            call("a\ud83d")


@pytest.mark.parametrize("form", ["NFC", "NFKC"])
@given(text=texts)
def test_normal_forms_are_those_of_unicode(form, text):
    tokeniser = train_tokenizer("characters", [text, "a"], 2000, normalize=form)
    assert tokeniser.decode(tokeniser.encode(text).ids) == unicodedata.normalize(form, text)


@given(text=texts, form=forms)
@example(text="J\u030c \u2122", form="NFKC")
def test_lowering_twice_is_lowering_once(text, form):
    tokeniser = train_tokenizer("characters", [text, "a"], 2000, lower=True, normalize=form)
    once = tokeniser.decode(tokeniser.encode(text).ids)
    assert tokeniser.decode(tokeniser.encode(once).ids) == once
    if form is None:
        # Character by character: no final sigma.
        assert once == "".join(character.lower() for character in text)


def test_offsets_survive_normalising():
    """The words are those of the text as given, though NFKC writes one character as four words."""
    tokeniser = train_tokenizer("words", SENTENCES, 400, normalize="NFKC")
    encoding = tokeniser.encode("\ufdfa A")
    assert len(encoding.ids) == 5
    assert encoding.words == [0, 0, 0, 0, 1]
    assert all(a <= b for a, b in pairwise(encoding.words))
