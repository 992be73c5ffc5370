"""Shares of the training data that are held out as dev and test."""

from collections.abc import Mapping
from hashlib import blake2b

from regard.errors import InputError


def held_out_shares(given_splits: Mapping[str, object], held_out: float) -> dict[str, float]:
    """Return the share of train for dev and for test, unless they are given."""
    if not 0 <= held_out < 0.5:
        raise InputError(f"held_out must be at least 0 and less than 0.5, not {held_out}")
    return {split: held_out for split in ("dev", "test") if split not in given_splits and held_out}


def hash_split(text: str, shares: Mapping[str, float]) -> str:
    """Return the split of a text by a stable hash; equal texts are in the same split."""
    position = int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) / 2**64
    for split, share in shares.items():
        if position < share:
            return split
        position -= share
    return "train"
