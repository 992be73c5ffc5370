"""[text]: the tokenizer. `regard.text.train` trains it."""

from typing import Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Fraction, Positive
from regard.errors import InputError

MIN_VOCABULARY_SIZES = {"byte_bpe": 260, "wordpiece": 6}


class TextConfig(Config):
    """The tokenizer and its vocabulary."""

    kind: Literal["auto", "bpe", "byte_bpe", "wordpiece", "unigram", "words", "characters"] = Field(
        default="auto",
        description="Kind of tokenizer: bpe, byte_bpe, wordpiece, unigram, words, characters, or "
        "auto (by the data: words if they are few, else bpe).",
    )
    size: Positive = Field(
        default=8000,
        ge=5,
        description="Maximum size of the vocabulary; auto chooses one unless it is set.",
    )
    joint: bool = Field(default=False, description="Use one vocabulary for source and target.")
    lower: bool = Field(default=False, description="Convert texts to lower case.")
    zero_digits: bool = Field(default=False, description="Replace every digit by 0.")
    split_punctuation: bool = Field(
        default=False, description='Split punctuation from words; for kind = "words" only.'
    )
    normalize: Literal["NFC", "NFKC"] | None = Field(
        default=None, description="Unicode normalization: NFC or NFKC. Default: none."
    )
    min_count: Positive = Field(
        default=1, description="Minimum count of a token in the training data."
    )
    unknown_singletons: Fraction = Field(
        default=0.5,
        description="Probability, 0 to 1, that a word seen once is unknown in training; for words "
        "that an encoder reads.",
    )

    @model_validator(mode="after")
    def _check_text(self) -> "TextConfig":
        min_size = MIN_VOCABULARY_SIZES.get(self.kind, 5)
        if self.size < min_size:
            raise InputError(f"size must be at least {min_size} for {self.kind}, not {self.size}")
        if self.split_punctuation and self.kind not in ("auto", "words"):
            raise InputError(
                f"split_punctuation is for kind = 'words': {self.kind} cuts words up by itself"
            )
        return self
