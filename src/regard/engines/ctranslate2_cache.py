"""Models of CTranslate2 in the cache: each is written once, when it is first needed."""

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from regard.data.download import cache_folder
from regard.engines.ctranslate2_model import (
    SpecialTokens,
    SupportedModel,
    write_ctranslate2_model,
)
from regard.errors import InputError

FORMAT = 1  # a number for each change of what is written
MODEL_FILE = "model.bin"


class EngineModel(NamedTuple):
    """A model for CTranslate2, with the tokens of its vocabularies, and the special ones."""

    model: SupportedModel
    vocabularies: Sequence[Sequence[str]]
    special: SpecialTokens

    def write(self, folder: Path | str, *, int8: bool = False) -> None:
        """Write a new folder that CTranslate2 reads."""
        write_ctranslate2_model(folder, self.model, self.vocabularies, self.special, int8=int8)


def cached_model(parts: EngineModel, identity: Sequence[str]) -> Path:
    """Return the folder of a model in the format of CTranslate2; write it, if it is not there.

    `identity` are texts that differ for different models, such as the checksum of the weights.
    """
    key = [FORMAT, *identity, parts.vocabularies, parts.special]
    name = sha256(json.dumps(key).encode()).hexdigest()[:32]
    folder = cache_folder() / "ctranslate2" / name
    if not (folder / MODEL_FILE).is_file():
        try:
            parts.write(folder)
        except (InputError, OSError):
            if not (folder / MODEL_FILE).is_file():  # else another process was faster
                raise
    return folder
