"""Types and help texts that several [data] tables share."""

from typing import Annotated

from pydantic import Field

from regard.config.base import NonEmptyTuple

LANGUAGES = (
    *("en", "de", "nl", "sv", "da", "nb", "fr", "es", "it", "pt"),
    *("ro", "pl", "cs", "ru", "uk", "el", "hu", "tr", "fi", "ja"),
)

HELD_OUT_HELP = "Share of train, 0 to 0.5, to hold out for each of dev and test that is not given."

AUTOMATIC_HELD_OUT_HELP = (
    "Share of train, 0 to 0.5, to hold out for each of dev and test that is not given. Default: "
    "by the number of records: 0.1, or 0.05 from 20,000 on; 0 below 100, or if dev is given."
)

SKIP_BAD_HELP = "Skip rows that cannot be read, and count them."

PUBLIC_NAME_HELP = "Name of the data set; `regard list` describes each."

FilePaths = Annotated[str, Field(min_length=1)] | NonEmptyTuple[str]

HeldOutShare = Annotated[float, Field(ge=0, lt=0.5)]
