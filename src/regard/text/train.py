"""Train tokenizers. Equal texts give equal tokenizers, for every kind."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers

from regard.errors import InputError
from regard.text.special import SPECIALS, UNKNOWN
from regard.text.tokenizer import Tokenizer
from regard.text.unigram import train_unigram

TokenizerKind = Literal["bpe", "byte_bpe", "wordpiece", "unigram", "words", "characters"]
NormalForm = Literal["NFC", "NFKC"]
TOKENIZER_KINDS: tuple[TokenizerKind, ...] = (
    "bpe",
    "byte_bpe",
    "wordpiece",
    "unigram",
    "words",
    "characters",
)

SPACE = "▁"
WORD_SIGN = "\ufdd0"  # a noncharacter, which Unicode reserves for internal use
BYTE_COUNT = 256
NO_CHARACTER_LIMIT = sys.maxunicode
# Letters and digits, or punctuation, each with the space before it; other white space alone. So no
# piece can be the name of a special token: "<" and "s" are never in one piece.
PIECE_PATTERN = r" ?[\p{L}\p{M}\p{N}]+| ?[^\s\p{L}\p{M}\p{N}]+|\s"

# Punctuation before a word, and each mark (or repeated mark) after it; not inside: "2.5", "don't"
PUNCTUATION_PATTERN = (
    r"^[^\p{L}\p{M}\p{N}]+(?=[\p{L}\p{M}\p{N}])|([^\p{L}\p{M}\p{N}])\1*(?=[^\p{L}\p{M}\p{N}]*$)"
)


def train_tokenizer(
    kind: TokenizerKind,
    texts: Iterable[str],
    size: int,
    *,
    lower: bool = False,
    zero_digits: bool = False,
    normalize: NormalForm | None = None,
    min_count: int = 1,
    split_punctuation: bool = False,
) -> Tokenizer:
    """Learn a vocabulary of at most `size` entries, including the four special tokens.

    `min_count` is the minimum frequency of a word or character. For bpe, byte_bpe and wordpiece it
    is that of two adjacent pieces to be joined; for unigram, that of a piece of several characters.
    `zero_digits` replaces each digit by 0. `split_punctuation` makes punctuation before and after a
    word separate words; it is for the kind words.
    """
    _check_arguments(kind, size, min_count)
    inner = _build_untrained(kind, _build_normalizer(lower, normalize, zero_digits))
    if split_punctuation:
        inner.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.WhitespaceSplit(),
                pre_tokenizers.Split(Regex(PUNCTUATION_PATTERN), "isolated"),
            ]
        )
    if kind in ("unigram", "words", "characters"):
        build_model = _unigram_model if kind == "unigram" else _word_level_model
        inner.model = build_model(_pretoken_counts(inner, texts), size - len(SPECIALS), min_count)
        return Tokenizer(inner)
    if kind == "wordpiece":
        inner.model = _wordpiece_model(texts, inner.normalizer, size, min_count)
        return Tokenizer(inner)
    _train_bpe(inner, texts, size, min_count)
    # The trainer registers special tokens so that "<s>" in a text would be one.
    parts = {**json.loads(inner.to_str()), "added_tokens": []}
    return Tokenizer(tokenizers.Tokenizer.from_str(json.dumps(parts)))


def _check_arguments(kind: str, size: int, min_count: int) -> None:
    if kind not in TOKENIZER_KINDS:
        raise InputError(f"kind must be one of {', '.join(TOKENIZER_KINDS)}, not {kind!r}")
    min_size = len(SPECIALS) + {"byte_bpe": BYTE_COUNT, "wordpiece": 2}.get(kind, 1)
    if size < min_size:
        raise InputError(f"size must be at least {min_size} for {kind}, not {size}")
    if min_count < 1:
        raise InputError(f"min_count must be at least 1, not {min_count}")


def _build_normalizer(
    lower: bool, form: NormalForm | None, zero_digits: bool
) -> normalizers.Normalizer | None:
    if form not in (None, "NFC", "NFKC"):
        raise InputError(f"normalize must be NFC, NFKC or None, not {form!r}")
    steps: list[normalizers.Normalizer] = []
    if form:
        steps.append(normalizers.NFC() if form == "NFC" else normalizers.NFKC())
    if lower:
        # NFKC may create capitals (U+2122), and lower-casing may undo a normal form (J with caron).
        steps = [*steps, normalizers.Lowercase(), *steps]
    if zero_digits:
        steps.append(normalizers.Replace(Regex("[0-9]"), "0"))
    return normalizers.Sequence(steps) if steps else None


def _build_untrained(
    kind: TokenizerKind, normalizer: normalizers.Normalizer | None
) -> tokenizers.Tokenizer:
    pieces = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECE_PATTERN), "isolated"),
            pre_tokenizers.Metaspace(SPACE, prepend_scheme="first", split=False),
        ]
    )
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False)
    each_character = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    at_spaces = pre_tokenizers.WhitespaceSplit()
    with_spaces = decoders.Metaspace(SPACE, prepend_scheme="first")
    unknown = SPECIALS[UNKNOWN]
    model, pre_tokenizer, decoder = {
        "bpe": (models.BPE(unk_token=unknown), pieces, with_spaces),
        "byte_bpe": (models.BPE(), to_bytes, decoders.ByteLevel()),
        "wordpiece": (
            models.WordPiece(unk_token=unknown),
            at_spaces,
            decoders.WordPiece(cleanup=False),
        ),
        "unigram": (models.Unigram(), pieces, with_spaces),
        "words": (models.WordLevel(unk_token=unknown), at_spaces, None),
        "characters": (models.WordLevel(unk_token=unknown), each_character, decoders.Fuse()),
    }[kind]
    inner = tokenizers.Tokenizer(model)
    inner.pre_tokenizer = pre_tokenizer
    if normalizer:
        inner.normalizer = normalizer
    if decoder:
        inner.decoder = decoder
    return inner


def _unigram_model(counts: Counter[str], max_entries: int, min_count: int) -> models.Model:
    specials = [(token, 0.0) for token in SPECIALS]
    pieces = [*specials, *train_unigram(counts, max_entries, min_count)]
    return models.Unigram(pieces, unk_id=UNKNOWN, byte_fallback=False)


def _word_level_model(counts: Counter[str], max_entries: int, min_count: int) -> models.Model:
    """Build a vocabulary of frequent words or characters; a word "<s>" of the text is left out."""
    words = [
        word for word in _by_frequency(counts) if counts[word] >= min_count and word not in SPECIALS
    ]
    ids = {word: token_id for token_id, word in enumerate([*SPECIALS, *words[:max_entries]])}
    return models.WordLevel(ids, unk_token=SPECIALS[UNKNOWN])


def _by_frequency(counts: Counter[str]) -> list[str]:
    """Sort by descending frequency, then alphabetically."""
    return sorted(counts, key=lambda key: (-counts[key], key))


def _train_bpe(
    inner: tokenizers.Tokenizer, texts: Iterable[str], size: int, min_count: int
) -> None:
    """Train byte pair encoding (Sennrich et al. 2016).

    If `size` is less than the number of characters, only the frequent ones are kept.
    """
    in_bytes = isinstance(inner.decoder, decoders.ByteLevel)
    alphabet = pre_tokenizers.ByteLevel.alphabet() if in_bytes else []
    inner.train_from_iterator(
        _require_text(texts), _build_bpe_trainer(size, min_count, alphabet, NO_CHARACTER_LIMIT)
    )
    if inner.get_vocab_size() > size:
        # The trainer could select frequent characters, but breaks ties at random.
        counts = _character_counts(inner, _require_rereadable(texts, size))
        alphabet = _by_frequency(counts)[: size - len(SPECIALS)]
        trainer = _build_bpe_trainer(size, min_count, alphabet, len(alphabet))
        inner.train_from_iterator(_require_text(texts), trainer)


def _build_bpe_trainer(
    size: int, min_count: int, alphabet: list[str], max_alphabet: int
) -> trainers.BpeTrainer:
    return trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=min_count,
        special_tokens=list(SPECIALS),
        show_progress=False,
        initial_alphabet=alphabet,
        limit_alphabet=max_alphabet,
    )


def _wordpiece_model(
    texts: Iterable[str],
    normalizer: normalizers.Normalizer | None,
    size: int,
    min_count: int,
) -> models.Model:
    """Train byte pair encoding on words with a sign in front, and convert it to WordPiece.

    Pieces with the sign begin a word; the others get "##". The library's trainer numbers "##a" in
    the order of a hash table, and breaks ties by it.
    """
    tokenizer = _build_untrained("bpe", normalizer)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Metaspace(WORD_SIGN, prepend_scheme="always", split=False),
        ]
    )
    max_entries = size - len(SPECIALS)
    _train_bpe(tokenizer, texts, size, min_count)
    learned = sorted(tokenizer.get_vocab().items(), key=lambda entry: entry[1])[len(SPECIALS) :]
    letters = [token for token, _ in learned if len(token) == 1 and token != WORD_SIGN]
    if 2 * len(letters) > max_entries:
        counts = _character_counts(tokenizer, _require_rereadable(texts, size))
        letters = [letter for letter in _by_frequency(counts) if letter != WORD_SIGN][
            : max_entries // 2
        ]
    letter_tokens = [form for letter in letters for form in (letter, f"##{letter}")]
    joined_tokens = [
        token[1:] if token.startswith(WORD_SIGN) else f"##{token}"
        for token, _ in learned
        if len(token) > 1 and set(token) <= {WORD_SIGN, *letters}
    ]
    tokens = [
        token for token in dict.fromkeys([*letter_tokens, *joined_tokens]) if token not in SPECIALS
    ][:max_entries]
    ids = {token: token_id for token_id, token in enumerate([*SPECIALS, *tokens])}
    return models.WordPiece(ids, unk_token=SPECIALS[UNKNOWN])


def _require_text(texts: Iterable[str]) -> Iterator[str]:
    has_text = False
    for text in texts:
        has_text = has_text or not (text == "" or text.isspace())
        yield text
    if not has_text:
        raise InputError("texts are empty; give text to learn a vocabulary from")


def _pretoken_counts(inner: tokenizers.Tokenizer, texts: Iterable[str]) -> Counter[str]:
    pre_tokenizer, counts = inner.pre_tokenizer, Counter[str]()
    for text in _require_text(texts):
        normalized = inner.normalizer.normalize_str(text) if inner.normalizer else text
        counts.update(piece for piece, _ in pre_tokenizer.pre_tokenize_str(normalized))
    return counts


def _character_counts(inner: tokenizers.Tokenizer, texts: Iterable[str]) -> Counter[str]:
    counts = Counter[str]()
    for piece, count in _pretoken_counts(inner, texts).items():
        for letter in piece:
            counts[letter] += count
    return counts


def _require_rereadable(texts: Iterable[str], size: int) -> Iterable[str]:
    if iter(texts) is texts:
        raise InputError(
            f"size {size} is less than the number of characters; use a larger size, byte_bpe, or "
            "texts that can be read twice (a list, not an iterator)"
        )
    return texts
