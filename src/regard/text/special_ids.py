"""The special ids of a vocabulary, ours or somebody else's."""

from pathlib import Path
from typing import NamedTuple

import tokenizers

from regard.text.external import ExternalTokenizer
from regard.text.special import END, PAD, SPECIALS, START, UNKNOWN
from regard.text.tokenizer import Tokenizer

AnyTokenizer = Tokenizer | ExternalTokenizer


class SpecialIds(NamedTuple):
    """`size` is how many ids a model needs for the vocabulary: ours has none that hides a word."""

    start: int
    end: int
    mask: int
    specials: tuple[int, ...]
    size: int


def special_ids(tokenizer: AnyTokenizer) -> SpecialIds:
    if isinstance(tokenizer, Tokenizer):
        return SpecialIds(
            START, END, tokenizer.size, (PAD, START, END, UNKNOWN), tokenizer.size + 1
        )
    pad, start, end, mask, unknown = tokenizer.special
    if start is None or end is None or mask is None:
        missing = [name for name, n in tokenizer.special._asdict().items() if n is None]
        raise ValueError(f"the vocabulary has no token for {', '.join(missing)}: it is not BERT's")
    specials = tuple(n for n in (pad, start, end, mask, unknown) if n is not None)
    return SpecialIds(start, end, mask, specials, tokenizer.size)


def load_tokenizer(path: Path | str) -> AnyTokenizer:
    """What a run folder holds, ours or somebody else's."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path}: there is no such file")
    try:
        inner = tokenizers.Tokenizer.from_str(path.read_text("utf-8"))
    except Exception as error:  # the library raises the base class for whatever it cannot read
        reason = " ".join(str(error).split())
        raise ValueError(f"{path}: not a tokeniser, or a damaged one ({reason})") from None
    is_ours = all(inner.token_to_id(token) == number for number, token in enumerate(SPECIALS))
    is_ours = (
        is_ours and inner.token_to_id("[MASK]") is None
    )  # else it was ours, and went out and back
    return Tokenizer(inner) if is_ours else ExternalTokenizer(inner)
