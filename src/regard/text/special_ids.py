"""The special ids of any tokenizer, trained here or external."""

from pathlib import Path
from typing import NamedTuple

from regard.errors import InputError
from regard.text.external import ExternalTokenizer
from regard.text.special import END, PAD, SPECIALS, START, UNKNOWN
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_files import load_inner_tokenizer

AnyTokenizer = Tokenizer | ExternalTokenizer


class SpecialIds(NamedTuple):
    """Special ids, and the number of ids that a model needs (`size`).

    A `Tokenizer` has no mask token, so its mask is an additional id after the vocabulary.
    """

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
        raise InputError(
            f"the vocabulary has no token for {', '.join(missing)}; use a vocabulary like BERT's"
        )
    specials = tuple(n for n in (pad, start, end, mask, unknown) if n is not None)
    return SpecialIds(start, end, mask, specials, tokenizer.size)


def load_tokenizer(path: Path | str) -> AnyTokenizer:
    """Load the tokenizer of a run, trained here or external."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    inner = load_inner_tokenizer(path)
    is_ours = all(inner.token_to_id(token) == number for number, token in enumerate(SPECIALS))
    # A tokenizer that was exported with a mask and imported again is external.
    is_ours = is_ours and inner.token_to_id("[MASK]") is None
    return Tokenizer(inner) if is_ours else ExternalTokenizer(inner, location=str(path))
