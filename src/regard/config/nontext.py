"""The settings of tasks whose data is not text: pictures, music, proteins, bits and worlds."""

from typing import Literal

from pydantic import Field, model_validator

from regard.config.bandit import (
    BanditDataConfig,
    BanditModelConfig,
    BanditTrainConfig,
    EnvironmentDataConfig,
    SnailConfig,
)
from regard.config.bits import (
    BitsModelConfig,
    BitsTrainConfig,
    CopyDataConfig,
    NtmConfig,
    RecallDataConfig,
)
from regard.config.caption import (
    CaptionDataConfig,
    CaptionModelConfig,
    CaptionTrainConfig,
    DigitsDataConfig,
    ShowAttendConfig,
    check_attention_settings,
    check_pooled_size,
)
from regard.config.decode import BeamConfig, DecodeConfig, SampleConfig
from regard.config.fewshot import (
    DEFAULT_BLOCKS,
    EmbedConfig,
    FewshotDataConfig,
    FewshotModelConfig,
    FewshotTrainConfig,
    PrototypesDataConfig,
    check_image_size,
)
from regard.config.fold import (
    FoldDataConfig,
    FoldHeadConfig,
    FoldModelConfig,
    FoldTrainConfig,
    MsaConfig,
    PublicProteinsDataConfig,
    is_distance_data,
)
from regard.config.image import (
    ImageConfig,
    ImageDataConfig,
    ImageTrainConfig,
    ShapesDataConfig,
    VitConfig,
    check_patch_size,
)
from regard.config.music import (
    ROLL_MODELS,
    MusicDataConfig,
    MusicModelConfig,
    MusicTrainConfig,
    PublicMusicDataConfig,
    RollRnnConfig,
    is_roll_data,
)
from regard.config.settings_base import (
    MODEL_HELP,
    TEXT_HELP,
    TRAIN_HELP,
    HeadConfig,
    Settings,
    StartConfig,
)
from regard.config.text import TextConfig
from regard.config.validators import check_windows


class ImageStartConfig(StartConfig):
    """What to begin with, other than chance."""

    run: str | None = Field(
        default=None,
        description="The folder of a run (image, or imported) whose encoder is taken over; [model] "
        "is then as there, and of [picture] what is not given; its size may be another.",
    )


class ImageSettings(Settings):
    """A picture into one of some classes."""

    task: Literal["image"] = Field(default="image", description="What the model is to do.")
    data: ImageDataConfig = Field(
        default=ShapesDataConfig(), description="shapes, pictures or public."
    )
    text: TextConfig = Field(default=TextConfig(), description="Not for pictures.")
    image: ImageConfig = Field(default=ImageConfig(), description="How a picture becomes numbers.")
    model: VitConfig = Field(
        default=VitConfig(patch_size=4, dim=64, heads=4, layers=4), description=MODEL_HELP
    )
    start: ImageStartConfig = Field(
        default=ImageStartConfig(), description="What to begin with, other than chance."
    )
    head: HeadConfig = Field(default=HeadConfig(), description="From the encoder to the classes.")
    train: ImageTrainConfig = Field(default=ImageTrainConfig(), description=TRAIN_HELP)

    @model_validator(mode="after")
    def _check_settings(self) -> "ImageSettings":
        if self.start.run is None:
            check_patch_size(self.image.size, self.model.patch_size)
        return self


class CaptionSettings(Settings):
    """A picture into a sentence on it."""

    task: Literal["caption"] = Field(default="caption", description="What the model is to do.")
    data: CaptionDataConfig = Field(
        default=DigitsDataConfig(), description="digits, shapes or captions."
    )
    text: TextConfig = Field(
        default=TextConfig(kind="words", lower=True, split_punctuation=True), description=TEXT_HELP
    )
    image: ImageConfig = Field(
        default=ImageConfig(size=(48, 48)), description="How a picture becomes numbers."
    )
    model: CaptionModelConfig = Field(
        default=ShowAttendConfig(pooling_layers=3), description=MODEL_HELP
    )
    train: CaptionTrainConfig = Field(default=CaptionTrainConfig(), description=TRAIN_HELP)
    decode: DecodeConfig = Field(
        default=BeamConfig(width=3, max_length=50), description="greedy, beam or sample."
    )

    @model_validator(mode="after")
    def _check_settings(self) -> "CaptionSettings":
        check_attention_settings(self.model, self.train)
        check_pooled_size(self.image.size, self.model.pooling_layers)
        if isinstance(self.decode, BeamConfig) and self.decode.coverage_penalty:
            raise ValueError("decode.coverage_penalty is for texts: set it to 0")
        return self


class MusicSettings(Settings):
    """How likely a piece of music is, and how it goes on."""

    task: Literal["music"] = Field(default="music", description="What the model is to do.")
    data: MusicDataConfig = Field(
        default=PublicMusicDataConfig(), description="rolls, abc or public."
    )
    model: MusicModelConfig = Field(default=RollRnnConfig(), description=MODEL_HELP)
    train: MusicTrainConfig = Field(default=MusicTrainConfig(), description=TRAIN_HELP)
    decode: SampleConfig = Field(
        default=SampleConfig(max_length=64), description="How music is drawn."
    )

    @property
    def run_kind(self) -> str:
        return "music" if is_roll_data(self.data) else "tunes"

    @model_validator(mode="after")
    def _check_settings(self) -> "MusicSettings":
        kind, has_rolls = self.model.kind, is_roll_data(self.data)
        if has_rolls != (kind in ROLL_MODELS):
            suitable_models = ROLL_MODELS if has_rolls else ("rnnlm", "gpt2", "lstmn")
            data_name = "piano rolls" if has_rolls else "tunes in ABC, which are text"
            raise ValueError(
                f"model.kind = {kind!r} does not read {data_name}: take "
                f"{' or '.join(suitable_models)}"
            )
        if has_rolls:
            for name in ("top_k", "top_p", "min_p"):
                if getattr(self.decode, name) is not None:
                    raise ValueError(f"decode.{name} is for tunes: each key is drawn by itself")
        check_windows(self)
        return self


class FoldSettings(Settings):
    """A protein into the states of its residues, or some distances into the others."""

    task: Literal["fold"] = Field(default="fold", description="What the model is to do.")
    data: FoldDataConfig = Field(
        default=PublicProteinsDataConfig(), description="proteins, public, points or distances."
    )
    text: TextConfig = Field(
        default=TextConfig(), description="Not for proteins: letters are known."
    )
    model: FoldModelConfig = Field(default=MsaConfig(), description=MODEL_HELP)
    head: FoldHeadConfig = Field(
        default=FoldHeadConfig(), description="From residues or pairs to what is told."
    )
    train: FoldTrainConfig = Field(default=FoldTrainConfig(), description=TRAIN_HELP)

    @property
    def run_kind(self) -> str:
        return "distance" if is_distance_data(self.data) else "fold"

    @model_validator(mode="after")
    def _check_settings(self) -> "FoldSettings":
        has_distances, metric = is_distance_data(self.data), self.train.metric
        if has_distances and self.model.kind != "msa":
            raise ValueError(f"model.kind = {self.model.kind!r} knows no pairs: take 'msa'")
        if metric == ("accuracy" if has_distances else "mae"):
            raise ValueError(f"train.metric = {metric!r} is not for data.kind = {self.data.kind!r}")
        return self


class CopySettings(Settings):
    """A sequence of bits, told again after its end."""

    task: Literal["copy"] = Field(default="copy", description="What the model is to do.")
    data: CopyDataConfig = Field(
        default=CopyDataConfig(), description="Vectors of bits, made here."
    )
    model: BitsModelConfig = Field(default=NtmConfig(), description=MODEL_HELP)
    train: BitsTrainConfig = Field(default=BitsTrainConfig(), description=TRAIN_HELP)


class RecallSettings(Settings):
    """The item that followed one which is shown again."""

    task: Literal["recall"] = Field(default="recall", description="What the model is to do.")
    data: RecallDataConfig = Field(
        default=RecallDataConfig(), description="Items of bits, made here."
    )
    model: BitsModelConfig = Field(default=NtmConfig(), description=MODEL_HELP)
    train: BitsTrainConfig = Field(default=BitsTrainConfig(), description=TRAIN_HELP)


class BanditSettings(Settings):
    """Acting in worlds that are found out on the way."""

    task: Literal["bandit"] = Field(default="bandit", description="What the model is to do.")
    data: EnvironmentDataConfig = Field(
        default=BanditDataConfig(), description="bandit or mdp, made here."
    )
    model: BanditModelConfig = Field(default=SnailConfig(dim=32), description=MODEL_HELP)
    train: BanditTrainConfig = Field(default=BanditTrainConfig(), description=TRAIN_HELP)


class FewshotSettings(Settings):
    """A class from a few examples."""

    task: Literal["fewshot"] = Field(default="fewshot", description="What the model is to do.")
    data: FewshotDataConfig = Field(
        default=PrototypesDataConfig(), description="prototypes, classes or public."
    )
    embed: EmbedConfig = Field(default=EmbedConfig(), description="From a picture to a vector.")
    model: FewshotModelConfig = Field(
        default=SnailConfig(blocks=DEFAULT_BLOCKS, tie_query_key_init=True), description=MODEL_HELP
    )
    train: FewshotTrainConfig = Field(default=FewshotTrainConfig(), description=TRAIN_HELP)

    @model_validator(mode="after")
    def _check_settings(self) -> "FewshotSettings":
        if self.data.kind != "prototypes":
            check_image_size(self.data.image_size, self.embed.layers)
        return self
