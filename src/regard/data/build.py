"""The [data] of the settings -> a corpus, whose keywords are the fields of its table."""

from collections.abc import Callable
from importlib import import_module

from regard.config import answer as questions
from regard.config import bandit as worlds
from regard.config import bits, caption, fewshot, fold, image, music
from regard.config import data as tables
from regard.config.base import Config
from regard.data.corpus import Corpus
from regard.data.formats.abc_files import AbcFiles
from regard.data.formats.dialogues import DialogueFiles
from regard.data.formats.documents import DocumentFiles
from regard.data.formats.labeled_texts import LabeledTextFiles
from regard.data.formats.piano_rolls import PianoRollFiles
from regard.data.formats.proteins import ProteinFiles
from regard.data.formats.questions import QuestionFiles
from regard.data.formats.summaries import PublicSummaries, SummaryFiles
from regard.data.formats.tagged_texts import TaggedTextFiles
from regard.data.formats.text_pairs import TextPairFiles
from regard.data.mix import MixedCorpus
from regard.data.public.dialogues import PublicDialogues
from regard.data.public.music import PublicMusic
from regard.data.public.proteins import PublicProteins
from regard.data.public.questions import PublicQuestions
from regard.data.public.tagged_texts import PublicTaggedTexts
from regard.data.public.texts import PublicText
from regard.data.public.translation import PublicTranslation
from regard.data.synthetic.bits import Copy, Recall
from regard.data.synthetic.dates import Dates
from regard.data.synthetic.facts import Facts
from regard.data.synthetic.headlines import Headlines
from regard.data.synthetic.planted import PlantedWords
from regard.data.synthetic.points import DistanceFiles, Points
from regard.data.synthetic.reorder import ReorderedSentences

CORPUS_CLASSES: dict[type[Config], Callable[..., Corpus]] = {
    tables.DatesDataConfig: Dates,
    tables.ReorderDataConfig: ReorderedSentences,
    tables.FilesDataConfig: TextPairFiles,
    tables.PublicTranslationDataConfig: PublicTranslation,
    tables.TextDataConfig: DocumentFiles,
    tables.PublicTextDataConfig: PublicText,
    tables.LabeledDataConfig: LabeledTextFiles,
    tables.PublicLabeledDataConfig: PublicText,
    tables.PlantedDataConfig: PlantedWords,
    tables.TaggedDataConfig: TaggedTextFiles,
    tables.PublicTagsDataConfig: PublicTaggedTexts,
    tables.DialoguesDataConfig: DialogueFiles,
    tables.PublicDialoguesDataConfig: PublicDialogues,
    questions.FactsDataConfig: Facts,
    questions.QuestionsDataConfig: QuestionFiles,
    questions.PublicQuestionsDataConfig: PublicQuestions,
    tables.SummariesDataConfig: SummaryFiles,
    tables.PublicSummariesDataConfig: PublicSummaries,
    tables.HeadlinesDataConfig: Headlines,
    music.RollsDataConfig: PianoRollFiles,
    music.AbcDataConfig: AbcFiles,
    music.PublicMusicDataConfig: PublicMusic,
    fold.ProteinsDataConfig: ProteinFiles,
    fold.PublicProteinsDataConfig: PublicProteins,
    fold.PointsDataConfig: Points,
    fold.DistancesDataConfig: DistanceFiles,
    bits.CopyDataConfig: Copy,
    bits.RecallDataConfig: Recall,
}
LAZY_CORPUS_CLASSES = {  # these need numpy, for which nobody else should wait
    caption.DigitsDataConfig: "synthetic.digits:Digits",
    caption.CaptionFilesDataConfig: "formats.captions:CaptionFiles",
    image.ShapesDataConfig: "synthetic.shapes:Shapes",
    fewshot.PrototypesDataConfig: "synthetic.episodes:Prototypes",
    fewshot.ClassesDataConfig: "formats.class_folders:ClassFolders",
    fewshot.PublicClassesDataConfig: "formats.class_folders:PublicImageClasses",
    worlds.BanditDataConfig: "synthetic.environments:Bandits",
    worlds.MdpDataConfig: "synthetic.environments:Mdps",
    image.ImagesDataConfig: "formats.image_files:ImageFiles",
    image.PublicImagesDataConfig: "formats.image_files:PublicImages",
}


def build_corpus(data: Config) -> Corpus:
    if isinstance(data, tables.MixDataConfig):
        corpora = [build_corpus(portion.data) for portion in data.parts]
        return MixedCorpus(corpora, [portion.weight for portion in data.parts], seed=data.seed)
    corpus_class = CORPUS_CLASSES.get(type(data))
    if type(data) in LAZY_CORPUS_CLASSES:
        module, _, name = LAZY_CORPUS_CLASSES[type(data)].partition(":")
        corpus_class = getattr(import_module(f"regard.data.{module}"), name)
    if corpus_class is None:
        raise ValueError(f"data of {type(data).__name__} cannot be built")
    return corpus_class(**data.model_dump(exclude={"kind"}))
