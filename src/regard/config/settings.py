"""All that a run is made from, as one frozen tree; TOML and Python say the same.

Each task has its own tree, with what makes sense for it.
"""

from typing import Literal

from pydantic import Field, model_validator

from regard.config.answer import (
    AnswerDataConfig,
    AnswerHeadConfig,
    AnswerModelConfig,
    AnswerTrainConfig,
    BidafConfig,
    FactsDataConfig,
)
from regard.config.base import Config, Positive, Rate
from regard.config.data import (
    ChatDataConfig,
    ClassifyDataConfig,
    DatesDataConfig,
    HeadlinesDataConfig,
    LanguageDataConfig,
    PlantedDataConfig,
    PublicDialoguesDataConfig,
    PublicTagsDataConfig,
    PublicTextDataConfig,
    SummarizeDataConfig,
    TagDataConfig,
    TranslateDataConfig,
)
from regard.config.decode import BeamConfig, DecodeConfig, SampleConfig
from regard.config.encoder import (
    BertConfig,
    BilstmCrfConfig,
    BiRnnAttentionConfig,
    BiRnnConfig,
    ClassifyModelConfig,
    PretrainModelConfig,
    TagModelConfig,
)
from regard.config.language import Gpt2Config, LanguageModelConfig
from regard.config.model import (
    PointerConfig,
    RnnSearchConfig,
    SummarizeModelConfig,
    TranslateModelConfig,
)
from regard.config.nontext import (
    BanditSettings,
    CaptionSettings,
    CopySettings,
    FewshotSettings,
    FoldSettings,
    ImageSettings,
    MusicSettings,
    RecallSettings,
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
from regard.config.train import (
    ChatTrainConfig,
    ClassifyTrainConfig,
    LanguageTrainConfig,
    PretrainTrainConfig,
    SummarizeTrainConfig,
    TagTrainConfig,
    TranslateTrainConfig,
    UnderstandTrainConfig,
)
from regard.config.validators import check_joint_vocabulary, check_windows, check_word_tokenizer


class TranslateSettings(Settings):
    """A source text into a target text."""

    task: Literal["translate"] = Field(default="translate", description="What the model is to do.")
    data: TranslateDataConfig = Field(
        default=DatesDataConfig(), description="dates, reorder, files, public or mix."
    )
    model: TranslateModelConfig = Field(default=RnnSearchConfig(), description=MODEL_HELP)
    train: TranslateTrainConfig = Field(default=TranslateTrainConfig(), description=TRAIN_HELP)
    decode: DecodeConfig = Field(default=BeamConfig(), description="greedy, beam or sample.")

    @model_validator(mode="after")
    def _check_settings(self) -> "TranslateSettings":
        check_joint_vocabulary(self)
        if self.train.compile and self.model.kind != "transformer":
            reason = "a recurrent loop would be compiled anew for every length"
            raise ValueError(f"train.compile is for the transformer: {reason}; set it to false")
        return self


class SummarizeSettings(Settings):
    """A document into its summary."""

    task: Literal["summarize"] = Field(default="summarize", description="What the model is to do.")
    data: SummarizeDataConfig = Field(
        default=HeadlinesDataConfig(), description="headlines, summaries or public."
    )
    text: TextConfig = Field(
        default=TextConfig(
            kind="words", size=50_000, joint=True, split_punctuation=True, min_count=3
        ),
        description=TEXT_HELP,
    )
    model: SummarizeModelConfig = Field(default=PointerConfig(), description=MODEL_HELP)
    train: SummarizeTrainConfig = Field(default=SummarizeTrainConfig(), description=TRAIN_HELP)
    decode: DecodeConfig = Field(
        default=BeamConfig(width=4, max_length=100), description="greedy, beam or sample."
    )

    @model_validator(mode="after")
    def _check_settings(self) -> "SummarizeSettings":
        check_joint_vocabulary(self)
        if self.model.kind == "pointer" and self.model.copying and self.train.label_smoothing:
            raise ValueError("train.label_smoothing is not for a pointer that copies: set it to 0")
        return self


class LanguageSettings(Settings):
    """How likely a text is, and how it goes on."""

    task: Literal["language"] = Field(default="language", description="What the model is to do.")
    data: LanguageDataConfig = Field(default=PublicTextDataConfig(), description="text or public.")
    model: LanguageModelConfig = Field(default=Gpt2Config(), description=MODEL_HELP)
    train: LanguageTrainConfig = Field(default=LanguageTrainConfig(), description=TRAIN_HELP)
    decode: DecodeConfig = Field(default=SampleConfig(), description="greedy, beam or sample.")

    @model_validator(mode="after")
    def _check_settings(self) -> "LanguageSettings":
        check_windows(self)
        return self


class RerankConfig(Config):
    """Of several replies, the one that fits best (Li et al. 2016: MMI)."""

    backward_run: str | None = Field(
        default=None, description="The folder of a run that was trained with train.reverse_turns."
    )
    candidates: Positive = Field(default=8, description="Replies to choose from.")
    backward_weight: Rate = Field(
        default=0.5, description="Of log p(history | reply); the rest is that of log p(reply)."
    )


class ChatSettings(Settings):
    """A conversation, turn by turn; about a database, if the data have one."""

    task: Literal["chat"] = Field(default="chat", description="What the model is to do.")
    data: ChatDataConfig = Field(
        default=PublicDialoguesDataConfig(), description="dialogues or public."
    )
    text: TextConfig = Field(
        default=TextConfig(kind="byte_bpe", size=2000, lower=True), description=TEXT_HELP
    )
    model: LanguageModelConfig = Field(
        default=Gpt2Config(dim=128, heads=4, layers=4, max_positions=512), description=MODEL_HELP
    )
    train: ChatTrainConfig = Field(default=ChatTrainConfig(), description=TRAIN_HELP)
    decode: DecodeConfig = Field(
        default=SampleConfig(max_length=60), description="greedy, beam or sample."
    )
    rerank: RerankConfig = Field(
        default=RerankConfig(), description="Which of several replies is given."
    )

    @model_validator(mode="after")
    def _check_settings(self) -> "ChatSettings":
        if self.model.kind == "gpt2" and self.train.max_tokens > self.model.max_positions:
            limit = f"train.max_tokens = {self.train.max_tokens} is more than model.max_positions"
            raise ValueError(f"{limit} = {self.model.max_positions}: make one of them fit")
        return self


class ClassifySettings(Settings):
    """A text, or two, into one of some classes."""

    task: Literal["classify"] = Field(default="classify", description="What the model is to do.")
    data: ClassifyDataConfig = Field(
        default=PlantedDataConfig(), description="planted, labeled or public."
    )
    model: ClassifyModelConfig = Field(default=BiRnnConfig(), description=MODEL_HELP)
    start: StartConfig = Field(
        default=StartConfig(), description="What to begin with, other than chance."
    )
    head: HeadConfig = Field(default=HeadConfig(), description="From the encoder to the classes.")
    train: ClassifyTrainConfig = Field(default=ClassifyTrainConfig(), description=TRAIN_HELP)

    @model_validator(mode="after")
    def _check_settings(self) -> "ClassifySettings":
        check_word_tokenizer(self)
        return self


class TagHeadConfig(Config):
    """From the state of a word to its tag."""

    crf: bool = Field(default=True, description="Tags depend on each other (a CRF); else alone.")
    scheme: Literal["bio", "bioes"] = Field(
        default="bio", description="What the model is taught: bio, or bioes, which says more."
    )
    hidden_dim: Positive | None = Field(
        default=None, description="Width of a layer before the tags; none where not set."
    )
    dropout: Rate = Field(default=0.1, description="Share of values set to zero in training.")


class WordTaskSettings(Settings):
    """What tasks share that say something of each word."""

    text: TextConfig = Field(default=TextConfig(kind="words", min_count=2), description=TEXT_HELP)
    start: StartConfig = Field(
        default=StartConfig(), description="What to begin with, other than chance."
    )
    head: TagHeadConfig = Field(
        default=TagHeadConfig(), description="From a word's state to its tag."
    )

    @model_validator(mode="after")
    def _check_settings(self) -> "WordTaskSettings":
        check_word_tokenizer(self)
        return self


class TagSettings(WordTaskSettings):
    """Names for stretches of words: entities."""

    task: Literal["tag"] = Field(default="tag", description="What the model is to do.")
    data: TagDataConfig = Field(
        default=PublicTagsDataConfig(name="wnut17"), description="tagged or public."
    )
    model: TagModelConfig = Field(default=BilstmCrfConfig(), description=MODEL_HELP)
    train: TagTrainConfig = Field(default=TagTrainConfig(), description=TRAIN_HELP)


class UnderstandSettings(WordTaskSettings):
    """What is wanted (an intent), and with what (slots)."""

    task: Literal["understand"] = Field(
        default="understand", description="What the model is to do."
    )
    data: TagDataConfig = Field(
        default=PublicTagsDataConfig(name="atis"), description="tagged or public."
    )
    model: TagModelConfig = Field(default=BiRnnAttentionConfig(), description=MODEL_HELP)
    train: UnderstandTrainConfig = Field(default=UnderstandTrainConfig(), description=TRAIN_HELP)


class AnswerSettings(Settings):
    """A question, by a stretch of a context."""

    task: Literal["answer"] = Field(default="answer", description="What the model is to do.")
    data: AnswerDataConfig = Field(
        default=FactsDataConfig(), description="facts, questions or public."
    )
    text: TextConfig = Field(
        default=TextConfig(kind="words", size=20_000, lower=True), description=TEXT_HELP
    )
    model: AnswerModelConfig = Field(default=BidafConfig(), description=MODEL_HELP)
    start: StartConfig = Field(
        default=StartConfig(), description="What to begin with, other than chance."
    )
    head: AnswerHeadConfig = Field(
        default=AnswerHeadConfig(), description="From states to a stretch of text."
    )
    train: AnswerTrainConfig = Field(default=AnswerTrainConfig(), description=TRAIN_HELP)

    @model_validator(mode="after")
    def _check_settings(self) -> "AnswerSettings":
        check_word_tokenizer(self)
        return self


class MaskConfig(Config):
    """What has to be told."""

    rate: float = Field(default=0.15, gt=0, lt=1, description="Share of the words that are hidden.")
    whole_words: bool = Field(
        default=False, description="Hide all pieces of a word together (wordpiece)."
    )
    next_sentence: bool = Field(
        default=True, description="Also tell whether one stretch of text follows the other."
    )


class PretrainSettings(Settings):
    """An encoder that learns from plain text, to be built on."""

    task: Literal["pretrain"] = Field(default="pretrain", description="What the model is to do.")
    data: LanguageDataConfig = Field(
        default=PublicTextDataConfig(name="wikitext2"), description="text or public."
    )
    text: TextConfig = Field(
        default=TextConfig(kind="wordpiece", lower=True), description=TEXT_HELP
    )
    model: PretrainModelConfig = Field(
        default=BertConfig(pretrain="both"), description="bert or elmo."
    )
    mask: MaskConfig = Field(default=MaskConfig(), description="What has to be told.")
    train: PretrainTrainConfig = Field(default=PretrainTrainConfig(), description=TRAIN_HELP)

    @model_validator(mode="after")
    def _check_settings(self) -> "PretrainSettings":
        if self.mask.whole_words and self.text.kind != "wordpiece":
            raise ValueError("mask.whole_words needs text.kind = 'wordpiece'")
        check_word_tokenizer(self)
        if (
            self.model.kind == "elmo"
            and "mask" in self.model_fields_set
            and self.mask != MaskConfig()
        ):
            raise ValueError("mask is for bert: elmo tells every word, and hides none")
        return self


SETTINGS_BY_TASK: dict[str, type[Settings]] = {
    "translate": TranslateSettings,
    "language": LanguageSettings,
    "classify": ClassifySettings,
    "pretrain": PretrainSettings,
    "tag": TagSettings,
    "understand": UnderstandSettings,
    "chat": ChatSettings,
    "answer": AnswerSettings,
    "summarize": SummarizeSettings,
    "music": MusicSettings,
    "image": ImageSettings,
    "copy": CopySettings,
    "recall": RecallSettings,
    "bandit": BanditSettings,
    "fewshot": FewshotSettings,
    "caption": CaptionSettings,
    "fold": FoldSettings,
}
