"""Text <-> ids, by one class for every kind of vocabulary.

Special tokens have no text of their own: "</s>" in a sentence is five letters, never the id END.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import tokenizers
from tokenizers import decoders

from regard.config.whole import write_whole
from regard.text.special import END, SPECIALS, UNKNOWN

# Unicode's White_Space, as the `tokenizers` library has it; Python's \s also has U+001C to U+001F.
WORD = re.compile(r"(?:\S|[\x1c-\x1f])+")


class Encoding(NamedTuple):
    """`words[i]` is the number of the word that token i belongs to; None for special tokens.

    A token of white space belongs to the word that follows, or to the last one.
    """

    ids: list[int]
    tokens: list[str]
    words: list[int | None]


class Vocabulary:
    """What all vocabularies share, whoever made them."""

    def __init__(self, inner: tokenizers.Tokenizer, size: int) -> None:
        self._inner, self.size = inner, size

    def encode(self, text: str) -> Encoding:
        """The ids of the text, with no special tokens added."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        """Several texts in parallel; each comes out as it would alone."""
        check_texts(texts)
        whole = self._inner.encode_batch(list(texts), add_special_tokens=False)
        found = []
        for text, one in zip(texts, whole, strict=True):
            words = words_of(text, [start for start, _ in one.offsets])
            found.append(Encoding(self._said(one.ids), one.tokens, words))
        return found

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Only the ids of `encode_batch`, which is quicker."""
        check_texts(texts)
        whole = self._inner.encode_batch_fast(list(texts), add_special_tokens=False)
        return [self._said(one.ids) for one in whole]

    def placed(self, texts: Sequence[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """The ids of each text, and the characters (from, to) that each of them stands for."""
        check_texts(texts)
        whole = self._inner.encode_batch(list(texts), add_special_tokens=False)
        return [(self._said(one.ids), one.offsets) for one in whole]

    def spelled(self, texts: Sequence[str]) -> list[list[tuple[int, str]]]:
        """Each token's id, and how the text has it if the vocabulary has not; else ""."""
        check_texts(texts)
        found = []
        for text, one in zip(
            texts, self._inner.encode_batch(list(texts), add_special_tokens=False), strict=True
        ):
            ids = self._said(one.ids)
            found.append(
                [
                    (number, self.normal(text[start:end]) if number == UNKNOWN else "")
                    for number, (start, end) in zip(ids, one.offsets, strict=True)
                ]
            )
        return found

    def words(self, text: str) -> list[str]:
        """What stands between white space: the words that `Encoding.words` counts."""
        return WORD.findall(text)

    def normal(self, text: str) -> str:
        """As the vocabulary reads it: perhaps in lower case, or in a normal form."""
        form = self._inner.normalizer
        return text if form is None else form.normalize_str(text)

    @property
    def in_bytes(self) -> bool:
        """Whether tokens are made of bytes, of which a character may have several."""
        return isinstance(self._inner.decoder, decoders.ByteLevel)

    @property
    def in_words(self) -> bool:
        """Whether tokens are whole words, which spaces join."""
        return self._inner.decoder is None

    def token(self, number: int) -> str:
        """The entry of the vocabulary with this id; "" where the vocabulary has a gap."""
        return self._inner.id_to_token(self._checked([number])[0]) or ""

    def save(self, path: Path | str) -> None:
        """Write a `tokenizer.json`, whole or not at all."""
        write_whole(Path(path), self.to_json().encode())

    def to_json(self) -> str:
        """What `save` writes. Two vocabularies with the same JSON are the same."""
        return self._inner.to_str(pretty=True)

    def _said(self, ids: list[int]) -> list[int]:
        """What a text may say of the ids that were found in it."""
        return ids

    def _checked(self, ids: Iterable[int]) -> list[int]:
        ids = list(ids)
        if ids and (min(ids) < 0 or max(ids) >= self.size):
            wrong = next(n for n in ids if not 0 <= n < self.size)
            raise ValueError(f"ids must be in [0, {self.size}), not {wrong}")
        return ids


class Tokeniser(Vocabulary):
    """A vocabulary with its way of cutting text. `train_tokeniser` makes one, `load` finds one."""

    def __init__(self, inner: tokenizers.Tokenizer) -> None:
        super().__init__(inner, inner.get_vocab_size())
        for number, token in enumerate(SPECIALS):
            if inner.token_to_id(token) != number:
                raise ValueError(f"token {token!r} must have id {number}: not made by regard")

    def decode(self, ids: Iterable[int], *, skip_specials: bool = True) -> str:
        """The text of the ids. An unknown token reads "<unk>"; the other specials are left out."""
        kept = [n for n in self._checked(ids) if not skip_specials or n > END]
        return self._inner.decode(kept, skip_special_tokens=False)

    def spell(self, ids: Iterable[int]) -> Encoding:
        """Tokens, and the words of `decode(ids)` that they are of: for ids that a model wrote."""
        ids = self._checked(ids)
        last = len(self.words(self.decode(ids))) - 1
        words: list[int | None] = []
        for end, number in enumerate(ids, 1):
            # Whatever were to follow this token: in which word would it be?
            here = len(self.words(self.decode(ids[:end]) + ".")) - 1
            words.append(None if number <= END or last < 0 else min(here, last))
        return Encoding(ids, [self.token(number) for number in ids], words)

    @classmethod
    def load(cls, path: Path | str) -> "Tokeniser":
        """Read what `save` wrote."""
        path = Path(path)
        if not path.is_file():
            raise ValueError(f"{path}: there is no such file; a run folder holds a tokenizer.json")
        try:
            return cls(tokenizers.Tokenizer.from_str(path.read_text("utf-8")))
        except Exception as error:  # the library raises the base class for whatever it cannot read
            reason = " ".join(str(error).split())
            raise ValueError(f"{path}: not a tokeniser, or a damaged one ({reason})") from None

    def _said(self, ids: list[int]) -> list[int]:
        """A word "</s>" of the text is unknown: only we end sentences."""
        if ids and min(ids) <= END:
            return [n if n > END else UNKNOWN for n in ids]
        return ids


def words_of(text: str, starts: list[int]) -> list[int | None]:
    ends = [match.end() for match in WORD.finditer(text)]
    if not ends:
        return [None] * len(starts)
    return [min(bisect_right(ends, start), len(ends) - 1) for start in starts]


def check_texts(texts: Sequence[str]) -> None:
    """Half of a surrogate pair is no character: it comes from broken JSON, and has no UTF-8."""
    for text in texts:
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                where = f"character {error.start} is U+{ord(text[error.start]):04X}"
                raise ValueError(f"text is not valid Unicode: {where}, half of a pair") from None
