"""Metrics of language models, from summed negative log-likelihoods (natural logarithms).

The functions take sums and counts, because a mean of means is wrong for batches of different size.
"""

import math

from regard.errors import InputError


def perplexity(loss: float, tokens: int) -> float:
    """exp(loss / tokens): the number of equally likely tokens with the same uncertainty.

    It is comparable only between models with the same tokens; `loss` is the sum over these tokens.
    """
    check_sums(loss, "tokens", tokens)
    try:
        return math.exp(loss / tokens)
    except OverflowError:
        return math.inf


def bits_per_token(loss: float, tokens: int) -> float:
    """loss / (tokens ln 2) = log2 perplexity"""
    check_sums(loss, "tokens", tokens)
    return loss / (tokens * math.log(2))


def bits_per_character(loss: float, characters: int) -> float:
    """loss / (characters ln 2): comparable between models with different tokens.

    `characters` counts those of the original text.
    """
    check_sums(loss, "characters", characters)
    return loss / (characters * math.log(2))


def check_sums(loss: float, name: str, count: int) -> None:
    if count < 1:
        raise InputError(f"{name} must be at least 1, not {count}")
    if not loss >= 0:
        raise InputError(f"loss must be a sum of negative log-likelihoods, at least 0, not {loss}")
