"""[text]: how text becomes ids. `regard.text.learn` makes a tokeniser of it."""

from typing import Literal

from pydantic import Field, model_validator

from regard.config.table import Positive, Table

LEAST = {"byte_bpe": 260, "wordpiece": 6}


class Text(Table):
    """The vocabulary."""

    kind: Literal["bpe", "byte_bpe", "wordpiece", "unigram", "words", "characters"] = Field(
        default="characters", description="bpe, byte_bpe, wordpiece, unigram, words or characters."
    )
    size: int = Field(default=8000, ge=5, description="Entries of a vocabulary, at most.")
    joint: bool = Field(default=False, description="One vocabulary for both sides.")
    lower: bool = Field(default=False, description="Everything in lower case.")
    digits: bool = Field(default=False, description="Every digit is read as 0.")
    apart: bool = Field(
        default=False, description="Marks at the ends of a word are words of their own (words)."
    )
    normalise: Literal["NFC", "NFKC"] | None = Field(
        default=None, description="Unicode form: NFC or NFKC."
    )
    min_count: Positive = Field(default=1, description="What is seen less often stays out.")

    @model_validator(mode="after")
    def _is_large_enough(self) -> "Text":
        least = LEAST.get(self.kind, 5)
        if self.size < least:
            raise ValueError(f"size must be at least {least} for {self.kind}, not {self.size}")
        if self.apart and self.kind != "words":
            raise ValueError(f"apart is for kind = 'words': {self.kind} cuts words up by itself")
        return self
