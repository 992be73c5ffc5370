"""The special ids of a vocabulary, ours or somebody else's."""

from pathlib import Path
from typing import NamedTuple

import tokenizers

from regard.text.foreign import ForeignTokeniser
from regard.text.special import END, PAD, SPECIALS, START, UNKNOWN
from regard.text.tokeniser import Tokeniser

AnyTokeniser = Tokeniser | ForeignTokeniser


class Marks(NamedTuple):
    """`size` is how many ids a model needs for the vocabulary: ours has none that hides a word."""

    start: int
    end: int
    mask: int
    specials: tuple[int, ...]
    size: int


def marks_of(text: AnyTokeniser) -> Marks:
    if isinstance(text, Tokeniser):
        return Marks(START, END, text.size, (PAD, START, END, UNKNOWN), text.size + 1)
    pad, start, end, mask, unknown = text.special
    if start is None or end is None or mask is None:
        missing = [name for name, n in text.special._asdict().items() if n is None]
        raise ValueError(f"the vocabulary has no token for {', '.join(missing)}: it is not BERT's")
    specials = tuple(n for n in (pad, start, end, mask, unknown) if n is not None)
    return Marks(start, end, mask, specials, text.size)


def load_tokeniser(path: Path | str) -> AnyTokeniser:
    """What a run folder holds, ours or somebody else's."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path}: there is no such file")
    try:
        inner = tokenizers.Tokenizer.from_str(path.read_text("utf-8"))
    except Exception as error:  # the library raises the base class for whatever it cannot read
        reason = " ".join(str(error).split())
        raise ValueError(f"{path}: not a tokeniser, or a damaged one ({reason})") from None
    ours = all(inner.token_to_id(token) == number for number, token in enumerate(SPECIALS))
    ours = ours and inner.token_to_id("[MASK]") is None  # else it was ours, and went out and back
    return Tokeniser(inner) if ours else ForeignTokeniser(inner)
