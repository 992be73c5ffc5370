"""All that a run is made from, as one frozen tree; TOML and Python say the same."""

from typing import Literal

from pydantic import Field, model_validator

from regard.config.data import Data, DatesData
from regard.config.decode import Beam, Decode
from regard.config.model import Model, RnnSearch
from regard.config.table import Count, Table
from regard.config.text import Text
from regard.config.train import Train


class Settings(Table):
    """The settings of a run."""

    task: Literal["translate"] = Field(default="translate", description="What the model is to do.")
    seed: Count = Field(default=1, description="Of weights, dropout and the order of the data.")
    data: Data = Field(default=DatesData(), description="dates, reorder, files, named or mix.")
    text: Text = Field(default=Text(), description="How text becomes ids.")
    model: Model = Field(
        default=RnnSearch(), description="encdec, seq2seq, rnnsearch, luong, transformer or rnmt."
    )
    train: Train = Field(default=Train(), description="How long, how fast, and what is kept.")
    decode: Decode = Field(default=Beam(), description="greedy, beam or sample.")

    @model_validator(mode="after")
    def _agrees(self) -> "Settings":
        if self.model.kind == "transformer" and self.model.shared == "all" and not self.text.joint:
            raise ValueError("model.shared = 'all' needs one vocabulary: set text.joint = true")
        if self.train.compile and self.model.kind != "transformer":
            why = "a recurrent loop would be compiled anew for every length"
            raise ValueError(f"train.compile is for the transformer: {why}; set it to false")
        return self
