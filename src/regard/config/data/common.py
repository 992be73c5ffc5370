"""TODO regard.config.data.common."""

from typing import Annotated

from pydantic import Field

from regard.config.base import NonEmptyTuple

LANGUAGES = (
    *("en", "de", "nl", "sv", "da", "nb", "fr", "es", "it", "pt"),
    *("ro", "pl", "cs", "ru", "uk", "el", "hu", "tr", "fi", "ja"),
)

HELD_OUT_HELP = "Share of train that is held out for a dev or test that is not given."

PUBLIC_NAME_HELP = "Which one; `regard list` describes them."

FilePaths = Annotated[str, Field(min_length=1)] | NonEmptyTuple[str]
