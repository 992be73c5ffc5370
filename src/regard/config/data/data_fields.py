"""Types and help texts that several [data] tables share."""

from typing import Annotated

from pydantic import Field

from regard.config.base import NonEmptyTuple

LANGUAGES = (
    *("en", "de", "nl", "sv", "da", "nb", "fr", "es", "it", "pt"),
    *("ro", "pl", "cs", "ru", "uk", "el", "hu", "tr", "fi", "ja"),
)

HELD_OUT_HELP = "Share of train, 0 to 0.5, to hold out for each of dev and test that is not given."

PUBLIC_NAME_HELP = "Name of the data set; `regard list` describes each."

FilePaths = Annotated[str, Field(min_length=1)] | NonEmptyTuple[str]
