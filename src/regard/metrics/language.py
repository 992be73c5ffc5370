"""How well a model predicts text, from summed negative log-likelihoods (natural logarithms).

Sums and counts, not means of means: batches differ in size.
"""

import math


def perplexity(loss: float, tokens: int) -> float:
    """exp(loss / tokens): as uncertain as among so many equally likely tokens.

    Only comparable between models with the same tokens; `loss` is summed over exactly these.
    """
    check_sums(loss, "tokens", tokens)
    try:
        return math.exp(loss / tokens)
    except OverflowError:
        return math.inf


def bits_per_token(loss: float, tokens: int) -> float:
    """loss / (tokens ln 2), the binary logarithm of the perplexity."""
    check_sums(loss, "tokens", tokens)
    return loss / (tokens * math.log(2))


def bits_per_character(loss: float, characters: int) -> float:
    """loss / (characters ln 2): comparable between models whatever their tokens are.

    `characters` are those of the text, however it was cut into tokens.
    """
    check_sums(loss, "characters", characters)
    return loss / (characters * math.log(2))


def check_sums(loss: float, name: str, count: int) -> None:
    if count < 1:
        raise ValueError(f"{name} must be 1 or more, not {count}: there is nothing to average over")
    if not loss >= 0:
        raise ValueError(f"loss must be a sum of negative log-likelihoods, 0 or more, not {loss}")
