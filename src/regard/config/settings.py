"""All that a run is made from, as one frozen tree; TOML and Python say the same.

Each task has its own tree, with what makes sense for it.
"""

from typing import Any, Literal

from pydantic import Field, model_validator

from regard.config.answer import Answerer, AnswerHead, AnswerTrain, Bidaf, FactsData, Questions
from regard.config.bits import BitsTrain, CopyData, Learner, Ntm, RecallData
from regard.config.caption import (
    Captioner,
    Captions,
    CaptionTrain,
    DigitsData,
    ShowAttend,
    check_captioner,
    check_grid,
)
from regard.config.checks import check_joint, check_windows, check_words
from regard.config.data import (
    Conversations,
    DatesData,
    Documents,
    HeadlinesData,
    Labelled,
    NamedDialogues,
    NamedTags,
    NamedText,
    Pairs,
    PlantedData,
    Tags,
    Texts,
)
from regard.config.decode import Beam, Decode, Sample
from regard.config.encoder import (
    Bert,
    BilstmCrf,
    BiRnn,
    BiRnnAttention,
    Encoder,
    Pretrained,
    WordEncoder,
)
from regard.config.fewshot import (
    BLOCKS,
    Embed,
    FewshotTrain,
    PrototypesData,
    Recogniser,
    Shown,
    check_size,
)
from regard.config.fold import (
    FoldData,
    Folder,
    FoldHead,
    FoldTrain,
    Msa,
    NamedProteins,
    is_distance,
)
from regard.config.image import ImageTrain, Pictures, Reading, ShapesData, Vit, check_patches
from regard.config.model import Pointer, RnnSearch, Summariser, Translator
from regard.config.music import ROLLS, Music, Musician, MusicTrain, NamedMusic, RollRnn, is_rolls
from regard.config.table import Count, Part, Positive, Table
from regard.config.text import Text
from regard.config.train import (
    ChatTrain,
    ClassifyTrain,
    LanguageTrain,
    PretrainTrain,
    SummariseTrain,
    TagTrain,
    Train,
    TranslateTrain,
    UnderstandTrain,
)
from regard.config.worlds import Actor, BanditData, BanditTrain, Snail, World
from regard.config.writer import Gpt2, Writer

IDS = "How text becomes ids."
MODEL = "Which model; `regard list` shows them."
TRAIN = "How long, how fast, and what is kept."


class Settings(Table):
    """What all runs have; of which kind, each task says for itself."""

    task: Any = Field(description="What the model is to do.")
    seed: Count = Field(default=1, description="Of weights, dropout and the order of the data.")
    data: Any = Field(description="Where the examples come from.")
    text: Text = Field(default=Text(), description=IDS)
    model: Any = Field(description=MODEL)
    train: Any = Field(default=Train(), description=TRAIN)

    @property
    def run(self) -> str:
        """The kind of run that it makes: most tasks have one."""
        return self.task


class TranslateSettings(Settings):
    """A source text into a target text."""

    task: Literal["translate"] = Field(default="translate", description="What the model is to do.")
    data: Pairs = Field(default=DatesData(), description="dates, reorder, files, named or mix.")
    model: Translator = Field(default=RnnSearch(), description=MODEL)
    train: TranslateTrain = Field(default=TranslateTrain(), description=TRAIN)
    decode: Decode = Field(default=Beam(), description="greedy, beam or sample.")

    @model_validator(mode="after")
    def _agrees(self) -> "TranslateSettings":
        check_joint(self)
        if self.train.compile and self.model.kind != "transformer":
            why = "a recurrent loop would be compiled anew for every length"
            raise ValueError(f"train.compile is for the transformer: {why}; set it to false")
        return self


class SummariseSettings(Settings):
    """A document into its summary."""

    task: Literal["summarise"] = Field(default="summarise", description="What the model is to do.")
    data: Documents = Field(default=HeadlinesData(), description="headlines, summaries or named.")
    text: Text = Field(
        default=Text(kind="words", size=50_000, joint=True, apart=True, min_count=3),
        description=IDS,
    )
    model: Summariser = Field(default=Pointer(), description=MODEL)
    train: SummariseTrain = Field(default=SummariseTrain(), description=TRAIN)
    decode: Decode = Field(
        default=Beam(width=4, max_length=100), description="greedy, beam or sample."
    )

    @model_validator(mode="after")
    def _agrees(self) -> "SummariseSettings":
        check_joint(self)
        if self.model.kind == "pointer" and self.model.copying and self.train.label_smoothing:
            raise ValueError("train.label_smoothing is not for a pointer that copies: set it to 0")
        return self


class LanguageSettings(Settings):
    """How likely a text is, and how it goes on."""

    task: Literal["language"] = Field(default="language", description="What the model is to do.")
    data: Texts = Field(default=NamedText(), description="text or named.")
    model: Writer = Field(default=Gpt2(), description=MODEL)
    train: LanguageTrain = Field(default=LanguageTrain(), description=TRAIN)
    decode: Decode = Field(default=Sample(), description="greedy, beam or sample.")

    @model_validator(mode="after")
    def _agrees(self) -> "LanguageSettings":
        check_windows(self)
        return self


class Rank(Table):
    """Of several replies, the one that fits best (Li et al. 2016: MMI)."""

    backward: str | None = Field(
        default=None, description="The folder of a run that was trained with train.backwards."
    )
    candidates: Positive = Field(default=8, description="Replies to choose from.")
    weight: Part = Field(
        default=0.5, description="Of log p(history | reply); the rest is that of log p(reply)."
    )


class ChatSettings(Settings):
    """A conversation, turn by turn; about a database, if the data have one."""

    task: Literal["chat"] = Field(default="chat", description="What the model is to do.")
    data: Conversations = Field(default=NamedDialogues(), description="dialogues or named.")
    text: Text = Field(default=Text(kind="byte_bpe", size=2000, lower=True), description=IDS)
    model: Writer = Field(default=Gpt2(dim=128, heads=4, layers=4, context=512), description=MODEL)
    train: ChatTrain = Field(default=ChatTrain(), description=TRAIN)
    decode: Decode = Field(default=Sample(max_length=60), description="greedy, beam or sample.")
    rank: Rank = Field(default=Rank(), description="Which of several replies is given.")

    @model_validator(mode="after")
    def _agrees(self) -> "ChatSettings":
        if self.model.kind == "gpt2" and self.train.longest > self.model.context:
            limit = f"train.longest = {self.train.longest} is more than model.context"
            raise ValueError(f"{limit} = {self.model.context}: make one of them fit")
        return self


class Head(Table):
    """What stands between the encoder and the classes."""

    pooling: Literal["first", "last", "mean", "max", "attention"] | None = Field(
        default=None, description="One vector of all states; the encoder's own where not set."
    )
    hidden_dim: Positive | None = Field(
        default=None, description="Width of a layer before the classes; none where not set."
    )
    dropout: Part = Field(default=0.1, description="Share of values set to zero in training.")


class Start(Table):
    """What to begin with, other than chance."""

    run: str | None = Field(
        default=None,
        description="The folder of a run (pretrain, classify or imported) whose encoder and "
        "vocabulary are taken over; [model] and [text] are then as there.",
    )
    freeze: bool = Field(default=False, description="The encoder stays as it is.")
    lora: Count = Field(
        default=0, description="Rank of LoRA in the encoder, which else stays as it is; 0: none."
    )
    layer_decay: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="Learning rate of each layer of a transformer, as a share of the layer above.",
    )

    @model_validator(mode="after")
    def _agrees(self) -> "Start":
        if self.freeze and self.lora:
            raise ValueError("freeze and lora are both set: with lora the encoder rests anyway")
        return self


class ClassifySettings(Settings):
    """A text, or two, into one of some classes."""

    task: Literal["classify"] = Field(default="classify", description="What the model is to do.")
    data: Labelled = Field(default=PlantedData(), description="planted, labelled or named.")
    model: Encoder = Field(default=BiRnn(), description=MODEL)
    start: Start = Field(default=Start(), description="What to begin with, other than chance.")
    head: Head = Field(default=Head(), description="From the encoder to the classes.")
    train: ClassifyTrain = Field(default=ClassifyTrain(), description=TRAIN)

    @model_validator(mode="after")
    def _agrees(self) -> "ClassifySettings":
        check_words(self)
        return self


class PictureStart(Start):
    """What to begin with, other than chance."""

    run: str | None = Field(
        default=None,
        description="The folder of a run (image, or imported) whose encoder is taken over; [model] "
        "is then as there, and of [picture] what is not given; its size may be another.",
    )


class ImageSettings(Settings):
    """A picture into one of some classes."""

    task: Literal["image"] = Field(default="image", description="What the model is to do.")
    data: Pictures = Field(default=ShapesData(), description="shapes, pictures or named.")
    text: Text = Field(default=Text(), description="Not for pictures.")
    picture: Reading = Field(default=Reading(), description="How a picture becomes numbers.")
    model: Vit = Field(default=Vit(patch=4, dim=64, heads=4, layers=4), description=MODEL)
    start: PictureStart = Field(
        default=PictureStart(), description="What to begin with, other than chance."
    )
    head: Head = Field(default=Head(), description="From the encoder to the classes.")
    train: ImageTrain = Field(default=ImageTrain(), description=TRAIN)

    @model_validator(mode="after")
    def _agrees(self) -> "ImageSettings":
        if self.start.run is None:
            check_patches(self.picture.size, self.model.patch)
        return self


class CaptionSettings(Settings):
    """A picture into a sentence on it."""

    task: Literal["caption"] = Field(default="caption", description="What the model is to do.")
    data: Captions = Field(default=DigitsData(), description="digits, shapes or captions.")
    text: Text = Field(default=Text(kind="words", lower=True, apart=True), description=IDS)
    picture: Reading = Field(
        default=Reading(size=(48, 48)), description="How a picture becomes numbers."
    )
    model: Captioner = Field(default=ShowAttend(pools=3), description=MODEL)
    train: CaptionTrain = Field(default=CaptionTrain(), description=TRAIN)
    decode: Decode = Field(
        default=Beam(width=3, max_length=50), description="greedy, beam or sample."
    )

    @model_validator(mode="after")
    def _agrees(self) -> "CaptionSettings":
        check_captioner(self.model, self.train)
        check_grid(self.picture.size, self.model.pools)
        if isinstance(self.decode, Beam) and self.decode.coverage_penalty:
            raise ValueError("decode.coverage_penalty is for texts: set it to 0")
        return self


class TagHead(Table):
    """From the state of a word to its tag."""

    crf: bool = Field(default=True, description="Tags depend on each other (a CRF); else alone.")
    scheme: Literal["bio", "bioes"] = Field(
        default="bio", description="What the model is taught: bio, or bioes, which says more."
    )
    hidden_dim: Positive | None = Field(
        default=None, description="Width of a layer before the tags; none where not set."
    )
    dropout: Part = Field(default=0.1, description="Share of values set to zero in training.")


class WordSettings(Settings):
    """What tasks share that say something of each word."""

    text: Text = Field(default=Text(kind="words", min_count=2), description=IDS)
    start: Start = Field(default=Start(), description="What to begin with, other than chance.")
    head: TagHead = Field(default=TagHead(), description="From a word's state to its tag.")

    @model_validator(mode="after")
    def _agrees(self) -> "WordSettings":
        check_words(self)
        return self


class TagSettings(WordSettings):
    """Names for stretches of words: entities."""

    task: Literal["tag"] = Field(default="tag", description="What the model is to do.")
    data: Tags = Field(default=NamedTags(name="wnut17"), description="tagged or named.")
    model: WordEncoder = Field(default=BilstmCrf(), description=MODEL)
    train: TagTrain = Field(default=TagTrain(), description=TRAIN)


class UnderstandSettings(WordSettings):
    """What is wanted (an intent), and with what (slots)."""

    task: Literal["understand"] = Field(
        default="understand", description="What the model is to do."
    )
    data: Tags = Field(default=NamedTags(name="atis"), description="tagged or named.")
    model: WordEncoder = Field(default=BiRnnAttention(), description=MODEL)
    train: UnderstandTrain = Field(default=UnderstandTrain(), description=TRAIN)


class AnswerSettings(Settings):
    """A question, by a stretch of a context."""

    task: Literal["answer"] = Field(default="answer", description="What the model is to do.")
    data: Questions = Field(default=FactsData(), description="facts, questions or named.")
    text: Text = Field(default=Text(kind="words", size=20_000, lower=True), description=IDS)
    model: Answerer = Field(default=Bidaf(), description=MODEL)
    start: Start = Field(default=Start(), description="What to begin with, other than chance.")
    head: AnswerHead = Field(default=AnswerHead(), description="From states to a stretch of text.")
    train: AnswerTrain = Field(default=AnswerTrain(), description=TRAIN)

    @model_validator(mode="after")
    def _agrees(self) -> "AnswerSettings":
        check_words(self)
        return self


class Mask(Table):
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
    data: Texts = Field(default=NamedText(name="wikitext2"), description="text or named.")
    text: Text = Field(default=Text(kind="wordpiece", lower=True), description=IDS)
    model: Pretrained = Field(default=Bert(pretrain="both"), description="bert or elmo.")
    mask: Mask = Field(default=Mask(), description="What has to be told.")
    train: PretrainTrain = Field(default=PretrainTrain(), description=TRAIN)

    @model_validator(mode="after")
    def _agrees(self) -> "PretrainSettings":
        if self.mask.whole_words and self.text.kind != "wordpiece":
            raise ValueError("mask.whole_words needs text.kind = 'wordpiece'")
        check_words(self)
        if self.model.kind == "elmo" and "mask" in self.model_fields_set and self.mask != Mask():
            raise ValueError("mask is for bert: elmo tells every word, and hides none")
        return self


class MusicSettings(Settings):
    """How likely a piece of music is, and how it goes on."""

    task: Literal["music"] = Field(default="music", description="What the model is to do.")
    data: Music = Field(default=NamedMusic(), description="rolls, abc or named.")
    model: Musician = Field(default=RollRnn(), description=MODEL)
    train: MusicTrain = Field(default=MusicTrain(), description=TRAIN)
    decode: Sample = Field(default=Sample(max_length=64), description="How music is drawn.")

    @property
    def run(self) -> str:
        return "music" if is_rolls(self.data) else "tunes"

    @model_validator(mode="after")
    def _agrees(self) -> "MusicSettings":
        kind, rolls = self.model.kind, is_rolls(self.data)
        if rolls != (kind in ROLLS):
            fit = ROLLS if rolls else ("rnnlm", "gpt2", "lstmn")
            what = "piano rolls" if rolls else "tunes in ABC, which are text"
            raise ValueError(f"model.kind = {kind!r} does not read {what}: take {' or '.join(fit)}")
        if rolls:
            for name in ("top_k", "top_p", "min_p"):
                if getattr(self.decode, name) is not None:
                    raise ValueError(f"decode.{name} is for tunes: each key is drawn by itself")
        check_windows(self)
        return self


class FoldSettings(Settings):
    """A protein into the states of its residues, or some distances into the others."""

    task: Literal["fold"] = Field(default="fold", description="What the model is to do.")
    data: FoldData = Field(
        default=NamedProteins(), description="proteins, named, points or distances."
    )
    text: Text = Field(default=Text(), description="Not for proteins: letters are known.")
    model: Folder = Field(default=Msa(), description=MODEL)
    head: FoldHead = Field(
        default=FoldHead(), description="From residues or pairs to what is told."
    )
    train: FoldTrain = Field(default=FoldTrain(), description=TRAIN)

    @property
    def run(self) -> str:
        return "distance" if is_distance(self.data) else "fold"

    @model_validator(mode="after")
    def _agrees(self) -> "FoldSettings":
        distance, metric = is_distance(self.data), self.train.metric
        if distance and self.model.kind != "msa":
            raise ValueError(f"model.kind = {self.model.kind!r} knows no pairs: take 'msa'")
        if metric == ("accuracy" if distance else "mae"):
            raise ValueError(f"train.metric = {metric!r} is not for data.kind = {self.data.kind!r}")
        return self


class CopySettings(Settings):
    """A sequence of bits, told again after its end."""

    task: Literal["copy"] = Field(default="copy", description="What the model is to do.")
    data: CopyData = Field(default=CopyData(), description="Vectors of bits, made here.")
    model: Learner = Field(default=Ntm(), description=MODEL)
    train: BitsTrain = Field(default=BitsTrain(), description=TRAIN)


class RecallSettings(Settings):
    """The item that followed one which is shown again."""

    task: Literal["recall"] = Field(default="recall", description="What the model is to do.")
    data: RecallData = Field(default=RecallData(), description="Items of bits, made here.")
    model: Learner = Field(default=Ntm(), description=MODEL)
    train: BitsTrain = Field(default=BitsTrain(), description=TRAIN)


class BanditSettings(Settings):
    """Acting in worlds that are found out on the way."""

    task: Literal["bandit"] = Field(default="bandit", description="What the model is to do.")
    data: World = Field(default=BanditData(), description="bandit or mdp, made here.")
    model: Actor = Field(default=Snail(dim=32), description=MODEL)
    train: BanditTrain = Field(default=BanditTrain(), description=TRAIN)


class FewshotSettings(Settings):
    """A class from a few examples."""

    task: Literal["fewshot"] = Field(default="fewshot", description="What the model is to do.")
    data: Shown = Field(default=PrototypesData(), description="prototypes, classes or named.")
    embed: Embed = Field(default=Embed(), description="From a picture to a vector.")
    model: Recogniser = Field(default=Snail(blocks=BLOCKS, alike=True), description=MODEL)
    train: FewshotTrain = Field(default=FewshotTrain(), description=TRAIN)

    @model_validator(mode="after")
    def _agrees(self) -> "FewshotSettings":
        if self.data.kind != "prototypes":
            check_size(self.data.size, self.embed.layers)
        return self


TASKS: dict[str, type[Settings]] = {
    "translate": TranslateSettings,
    "language": LanguageSettings,
    "classify": ClassifySettings,
    "pretrain": PretrainSettings,
    "tag": TagSettings,
    "understand": UnderstandSettings,
    "chat": ChatSettings,
    "answer": AnswerSettings,
    "summarise": SummariseSettings,
    "music": MusicSettings,
    "image": ImageSettings,
    "copy": CopySettings,
    "recall": RecallSettings,
    "bandit": BanditSettings,
    "fewshot": FewshotSettings,
    "caption": CaptionSettings,
    "fold": FoldSettings,
}
