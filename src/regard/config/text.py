"""[text]: how text becomes ids. `regard.text.train` makes a tokeniser of it."""

from typing import Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Positive

MIN_VOCABULARY_SIZES = {"byte_bpe": 260, "wordpiece": 6}


class TextConfig(Config):
    """The vocabulary."""

    kind: Literal["bpe", "byte_bpe", "wordpiece", "unigram", "words", "characters"] = Field(
        default="characters", description="bpe, byte_bpe, wordpiece, unigram, words or characters."
    )
    size: int = Field(default=8000, ge=5, description="Entries of a vocabulary, at most.")
    joint: bool = Field(default=False, description="One vocabulary for both sides.")
    lower: bool = Field(default=False, description="Everything in lower case.")
    zero_digits: bool = Field(default=False, description="Every digit is read as 0.")
    split_punctuation: bool = Field(
        default=False, description="Marks at the ends of a word are words of their own (words)."
    )
    normalize: Literal["NFC", "NFKC"] | None = Field(
        default=None, description="Unicode form: NFC or NFKC."
    )
    min_count: Positive = Field(default=1, description="What is seen less often stays out.")

    @model_validator(mode="after")
    def _check_text(self) -> "TextConfig":
        min_size = MIN_VOCABULARY_SIZES.get(self.kind, 5)
        if self.size < min_size:
            raise ValueError(f"size must be at least {min_size} for {self.kind}, not {self.size}")
        if self.split_punctuation and self.kind != "words":
            raise ValueError(
                f"split_punctuation is for kind = 'words': {self.kind} cuts words up by itself"
            )
        return self
