"""Training a tokeniser. The same text gives the same tokeniser, whatever its kind."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers

from regard.text.special import SPECIALS, UNKNOWN
from regard.text.tokeniser import Tokeniser
from regard.text.unigram import learn_unigram

Kind = Literal["bpe", "byte_bpe", "wordpiece", "unigram", "words", "characters"]
Form = Literal["NFC", "NFKC"]
KINDS: tuple[Kind, ...] = ("bpe", "byte_bpe", "wordpiece", "unigram", "words", "characters")

SPACE = "▁"
SIGN = "\ufdd0"  # not a character: Unicode keeps it for uses like ours, inside a program
BYTES = 256
ANY = sys.maxunicode  # as a limit on the number of characters: none
# Letters and digits apart from punctuation, each with the space before; other white space alone.
# So no piece can be the name of a special token: "<" and "s" are never in one.
PIECES = r" ?[\p{L}\p{M}\p{N}]+| ?[^\s\p{L}\p{M}\p{N}]+|\s"

# Marks before a word, and each mark (or several of one kind) after it; none inside: "2.5", "don't".
ENDS = r"^[^\p{L}\p{M}\p{N}]+(?=[\p{L}\p{M}\p{N}])|([^\p{L}\p{M}\p{N}])\1*(?=[^\p{L}\p{M}\p{N}]*$)"


def train_tokeniser(
    kind: Kind,
    texts: Iterable[str],
    size: int,
    *,
    lower: bool = False,
    digits: bool = False,
    normalise: Form | None = None,
    min_count: int = 1,
    apart: bool = False,
) -> Tokeniser:
    """Learn a vocabulary of at most `size` entries, the four special ones included.

    `min_count` is how often a word or character must be seen to be kept; for bpe, byte_bpe and
    wordpiece how often two pieces must be seen side by side to be joined; for unigram how often a
    piece of several characters must be seen. With `digits`, each digit is read as 0; with `apart`,
    the marks before and after a word are words of their own: for kind words.
    """
    _check(kind, size, min_count)
    inner = _untrained(kind, _normaliser(lower, normalise, digits))
    if apart:
        inner.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(Regex(ENDS), "isolated")]
        )
    if kind in ("unigram", "words", "characters"):
        learn = _unigram if kind == "unigram" else _whole
        inner.model = learn(_counted(inner, texts), size - len(SPECIALS), min_count)
        return Tokeniser(inner)
    if kind == "wordpiece":
        inner.model = _wordpiece(texts, inner.normalizer, size, min_count)
        return Tokeniser(inner)
    _join(inner, texts, size, min_count)
    # The trainer would have "<s>" in a text read as the special token.
    parts = {**json.loads(inner.to_str()), "added_tokens": []}
    return Tokeniser(tokenizers.Tokenizer.from_str(json.dumps(parts)))


def _check(kind: str, size: int, min_count: int) -> None:
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {kind!r}")
    least = len(SPECIALS) + {"byte_bpe": BYTES, "wordpiece": 2}.get(kind, 1)
    if size < least:
        raise ValueError(f"size must be at least {least} for {kind}, not {size}")
    if min_count < 1:
        raise ValueError(f"min_count must be at least 1, not {min_count}")


def _normaliser(lower: bool, form: Form | None, digits: bool) -> normalizers.Normalizer | None:
    if form not in (None, "NFC", "NFKC"):
        raise ValueError(f"normalise must be NFC, NFKC or None, not {form!r}")
    steps: list[normalizers.Normalizer] = []
    if form:
        steps.append(normalizers.NFC() if form == "NFC" else normalizers.NFKC())
    if lower:
        # NFKC may bring capitals (U+2122), and lower-casing undo a normal form (J with a caron).
        steps = [*steps, normalizers.Lowercase(), *steps]
    if digits:
        steps.append(normalizers.Replace(Regex("[0-9]"), "0"))
    return normalizers.Sequence(steps) if steps else None


def _untrained(kind: Kind, normaliser: normalizers.Normalizer | None) -> tokenizers.Tokenizer:
    pieces = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), "isolated"),
            pre_tokenizers.Metaspace(SPACE, prepend_scheme="first", split=False),
        ]
    )
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False)
    every = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    at_spaces = pre_tokenizers.WhitespaceSplit()
    with_spaces = decoders.Metaspace(SPACE, prepend_scheme="first")
    unknown = SPECIALS[UNKNOWN]
    model, cut, join = {
        "bpe": (models.BPE(unk_token=unknown), pieces, with_spaces),
        "byte_bpe": (models.BPE(), to_bytes, decoders.ByteLevel()),
        "wordpiece": (
            models.WordPiece(unk_token=unknown),
            at_spaces,
            decoders.WordPiece(cleanup=False),
        ),
        "unigram": (models.Unigram(), pieces, with_spaces),
        "words": (models.WordLevel(unk_token=unknown), at_spaces, None),
        "characters": (models.WordLevel(unk_token=unknown), every, decoders.Fuse()),
    }[kind]
    inner = tokenizers.Tokenizer(model)
    inner.pre_tokenizer = cut
    if normaliser:
        inner.normalizer = normaliser
    if join:
        inner.decoder = join
    return inner


def _unigram(counts: Counter[str], room: int, min_count: int) -> models.Model:
    specials = [(token, 0.0) for token in SPECIALS]
    pieces = [*specials, *learn_unigram(counts, room, min_count)]
    return models.Unigram(pieces, unk_id=UNKNOWN, byte_fallback=False)


def _whole(counts: Counter[str], room: int, min_count: int) -> models.Model:
    """Words or characters as they are. A word "<s>" of the text stays out: it is none of ours."""
    kept = [word for word in _ranked(counts) if counts[word] >= min_count and word not in SPECIALS]
    numbers = {word: number for number, word in enumerate([*SPECIALS, *kept[:room]])}
    return models.WordLevel(numbers, unk_token=SPECIALS[UNKNOWN])


def _ranked(counts: Counter[str]) -> list[str]:
    """Frequent ones first, equals by the alphabet."""
    return sorted(counts, key=lambda key: (-counts[key], key))


def _join(inner: tokenizers.Tokenizer, texts: Iterable[str], size: int, min_count: int) -> None:
    """Byte pair encoding (Sennrich et al. 2016), of frequent characters where all are too many."""
    in_bytes = isinstance(inner.decoder, decoders.ByteLevel)
    alphabet = pre_tokenizers.ByteLevel.alphabet() if in_bytes else []
    inner.train_from_iterator(_not_empty(texts), _trainer(size, min_count, alphabet, ANY))
    if inner.get_vocab_size() > size:
        # The trainer can choose the frequent ones, but draws lots among equals.
        counts = _letters(inner, _again(texts, size))
        alphabet = _ranked(counts)[: size - len(SPECIALS)]
        trainer = _trainer(size, min_count, alphabet, len(alphabet))
        inner.train_from_iterator(_not_empty(texts), trainer)


def _trainer(size: int, min_count: int, alphabet: list[str], most: int) -> trainers.BpeTrainer:
    return trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=min_count,
        special_tokens=list(SPECIALS),
        show_progress=False,
        initial_alphabet=alphabet,
        limit_alphabet=most,
    )


def _wordpiece(
    texts: Iterable[str],
    normaliser: normalizers.Normalizer | None,
    size: int,
    min_count: int,
) -> models.Model:
    """Joins as in byte pair encoding of words that begin with a sign; what has it begins a word.

    The library's own trainer numbers "##a" in the order of a hash table, and breaks ties by it.
    """
    signed = _untrained("bpe", normaliser)
    signed.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Metaspace(SIGN, prepend_scheme="always", split=False),
        ]
    )
    room = size - len(SPECIALS)
    _join(signed, texts, size, min_count)
    learnt = sorted(signed.get_vocab().items(), key=lambda entry: entry[1])[len(SPECIALS) :]
    letters = [token for token, _ in learnt if len(token) == 1 and token != SIGN]
    if 2 * len(letters) > room:
        counts = _letters(signed, _again(texts, size))
        letters = [letter for letter in _ranked(counts) if letter != SIGN][: room // 2]
    spelt = [form for letter in letters for form in (letter, f"##{letter}")]
    joined = [
        token[1:] if token.startswith(SIGN) else f"##{token}"
        for token, _ in learnt
        if len(token) > 1 and set(token) <= {SIGN, *letters}
    ]
    kept = [token for token in dict.fromkeys([*spelt, *joined]) if token not in SPECIALS][:room]
    numbers = {token: number for number, token in enumerate([*SPECIALS, *kept])}
    return models.WordPiece(numbers, unk_token=SPECIALS[UNKNOWN])


def _not_empty(texts: Iterable[str]) -> Iterator[str]:
    something = False
    for text in texts:
        something = something or not (text == "" or text.isspace())
        yield text
    if not something:
        raise ValueError("texts are empty: there is nothing to learn a vocabulary from")


def _counted(inner: tokenizers.Tokenizer, texts: Iterable[str]) -> Counter[str]:
    """How often each pre-token is seen."""
    cut, counts = inner.pre_tokenizer, Counter[str]()
    for text in _not_empty(texts):
        normal = inner.normalizer.normalize_str(text) if inner.normalizer else text
        counts.update(piece for piece, _ in cut.pre_tokenize_str(normal))
    return counts


def _letters(inner: tokenizers.Tokenizer, texts: Iterable[str]) -> Counter[str]:
    counts = Counter[str]()
    for piece, count in _counted(inner, texts).items():
        for letter in piece:
            counts[letter] += count
    return counts


def _again(texts: Iterable[str], size: int) -> Iterable[str]:
    if iter(texts) is texts:
        raise ValueError(
            f"size {size} is less than the text has characters: use a larger size, byte_bpe, or "
            "texts that can be read twice (a list, not an iterator), to keep the frequent ones"
        )
    return texts
