"""Tokenizers of pretrained models, which have other special ids.

Unlike in vocabularies trained here, special tokens are recognized in texts: "[MASK]" is the mask,
as it was when the tokenizer was trained.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from regard.errors import InputError
from regard.files import JsonObject
from regard.parsing import read_json_object
from regard.text.special import END, SPECIALS, START
from regard.text.tokenizer import ENCODING_PROBLEM, Tokenizer, Vocabulary, check_texts
from regard.text.tokenizer_files import (
    MAX_TOKEN_ID,
    explain_tokenizer_errors,
    load_inner_tokenizer,
)

# Role -> names of the role in Hugging Face's configs, and the usual tokens
SPECIAL_ROLES = {
    "pad": (("pad_token",), ("[PAD]", "<pad>")),
    "start": (("cls_token", "bos_token"), ("[CLS]", "<s>", "<|endoftext|>")),
    "end": (("sep_token", "eos_token"), ("[SEP]", "</s>", "<|endoftext|>")),
    "mask": (("mask_token",), ("[MASK]", "<mask>")),
    "unknown": (("unk_token",), ("[UNK]", "<unk>")),
}
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json")


class ExternalSpecialIds(NamedTuple):
    """The ids of special tokens; None for a role without a token."""

    pad: int | None
    start: int | None
    end: int | None
    mask: int | None
    unknown: int | None


class SpecialEncoding(NamedTuple):
    """A text or a pair of texts, with special tokens; `segments` is 1 for the second text."""

    ids: list[int]
    segments: list[int]


class ExternalTokenizer(Vocabulary):
    """The interface of `Tokenizer` for a vocabulary that was not trained here."""

    def __init__(
        self,
        inner: tokenizers.Tokenizer,
        special_tokens: Mapping[str, str] | None = None,
        location: str = "tokenizer",
    ) -> None:
        inner.no_padding()
        inner.no_truncation()
        largest_id = max(inner.get_vocab().values(), default=-1)
        if not 0 <= largest_id <= MAX_TOKEN_ID:
            raise InputError(f"{location}: the largest id of a token is {largest_id}")
        super().__init__(inner, largest_id + 1)
        ids_by_role = {}
        for role, (names, usual) in SPECIAL_ROLES.items():
            tokens = [
                special_tokens[name] for name in names if special_tokens and name in special_tokens
            ] or usual
            ids = (inner.token_to_id(token) for token in tokens)
            ids_by_role[role] = next((token_id for token_id in ids if token_id is not None), None)
        self.special = ExternalSpecialIds(**ids_by_role)

    @classmethod
    def from_tokenizer(cls, tokenizer: Tokenizer, *, mask: bool = False) -> "ExternalTokenizer":
        """Convert a `Tokenizer`; `mask` adds a [MASK] token with the last id, as BERT needs it.

        With `mask`, `encode_with_specials` of the result adds START and END, else nothing.
        """
        inner = tokenizers.Tokenizer.from_str(tokenizer.to_json())
        if mask:
            inner.add_special_tokens(["[MASK]"])
            inner.post_processor = processors.BertProcessing(
                (SPECIALS[END], END), (SPECIALS[START], START)
            )
        return cls(inner)

    def encode_with_specials(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None
    ) -> list[SpecialEncoding]:
        """Encode with special tokens: [CLS] text [SEP], or [CLS] text [SEP] pair [SEP]."""
        check_texts(texts)
        check_texts(pairs or [])
        inputs = list(texts) if pairs is None else list(zip(texts, pairs, strict=True))
        with explain_tokenizer_errors(ENCODING_PROBLEM):
            encodings = self._inner.encode_batch(inputs)
        return [SpecialEncoding(encoding.ids, encoding.type_ids) for encoding in encodings]

    def decode(self, ids: Iterable[int], *, skip_specials: bool = True) -> str:
        return self._inner.decode(self._check_ids(ids), skip_special_tokens=skip_specials)

    def tokenizer_config(self) -> dict[str, str]:
        """Return the contents of tokenizer_config.json."""
        config = {"tokenizer_class": "PreTrainedTokenizerFast"}
        for role, token_id in self.special._asdict().items():
            if token_id is not None:
                config |= dict.fromkeys(SPECIAL_ROLES[role][0], self.token(token_id))
        return config


def read_tokenizer(folder: Path, model_type: str) -> ExternalTokenizer | None:
    """Read the tokenizer of a Hugging Face folder, or return None if it has no known file.

    The file is tokenizer.json, or vocab.txt, or vocab.json with merges.txt. `model_type` is
    Hugging Face's name of the model.
    """
    special_tokens: dict[str, str] = {}
    options: JsonObject = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        if (folder / name).is_file():
            options = read_json_object(folder / name)
            special_tokens |= {
                key: token_text(value) for key, value in options.items() if token_text(value)
            }
    path = next((p for name in TOKENIZER_FILES if (p := folder / name).is_file()), None)
    merges = folder / "merges.txt"
    if path is None or (path.name == "vocab.json" and not merges.is_file()):
        return None
    if path.name == "tokenizer.json":
        return ExternalTokenizer(load_inner_tokenizer(path), special_tokens, str(path))
    with explain_tokenizer_errors(f"{path}: not a tokenizer, or a damaged one"):
        if path.name == "vocab.txt":
            inner = build_wordpiece(path, options)
        else:
            inner = build_byte_bpe(path, merges, with_specials=model_type == "roberta")
    return ExternalTokenizer(inner, special_tokens, str(path))


def build_wordpiece(vocabulary: Path, options: JsonObject) -> tokenizers.Tokenizer:
    """Build BERT's tokenizer: words are cut into the longest known pieces (Wu et al. 2016)."""
    pieces = models.WordPiece.from_file(str(vocabulary))  # its unknown token is [UNK]
    inner = tokenizers.Tokenizer(pieces)
    inner.normalizer = normalizers.BertNormalizer(
        lowercase=options.get("do_lower_case", True),
        strip_accents=options.get("strip_accents"),
        handle_chinese_chars=options.get("tokenize_chinese_chars", True),
    )
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.decoder = decoders.WordPiece()
    usual = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    inner.add_special_tokens([token for token in usual if inner.token_to_id(token) is not None])
    inner.post_processor = processors.BertProcessing(
        token_with_id(inner, "[SEP]"), token_with_id(inner, "[CLS]")
    )
    return inner


def build_byte_bpe(
    vocabulary: Path, merges: Path, *, with_specials: bool = False
) -> tokenizers.Tokenizer:
    """Build GPT-2's tokenizer: bytes joined by a list of merges (Radford et al. 2019, 2.2).

    `with_specials` adds <s> and </s> around each text, as RoBERTa does.
    """
    inner = tokenizers.Tokenizer(models.BPE.from_file(str(vocabulary), str(merges)))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    usual = ("<|endoftext|>", "<s>", "<pad>", "</s>", "<unk>", "<mask>")
    inner.add_special_tokens([token for token in usual if inner.token_to_id(token) is not None])
    if with_specials:
        end, start = token_with_id(inner, "</s>"), token_with_id(inner, "<s>")
        inner.post_processor = processors.RobertaProcessing(end, start, add_prefix_space=False)
    else:
        inner.post_processor = processors.ByteLevel(trim_offsets=False)
    return inner


def token_with_id(inner: tokenizers.Tokenizer, token: str) -> tuple[str, int]:
    token_id = inner.token_to_id(token)
    if token_id is None:
        raise InputError(f"no token {token}")
    return token, token_id


def token_text(value: object) -> str:
    """Return a token, which is a string or an object with `content`, or ""."""
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else ""
