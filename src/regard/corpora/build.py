"""The [data] of the settings -> a corpus, whose keywords are the fields of its table."""

from collections.abc import Callable
from importlib import import_module

from regard.config import answer as questions
from regard.config import bits, caption, fewshot, fold, image, music, worlds
from regard.config import data as tables
from regard.config.table import Table
from regard.corpora.bits import Copy, Recall
from regard.corpora.corpus import Corpus
from regard.corpora.dates import Dates
from regard.corpora.dialogues import Dialogues
from regard.corpora.dialoguesets import DialogueSet
from regard.corpora.documents import Documents
from regard.corpora.facts import Facts
from regard.corpora.files import Files
from regard.corpora.headlines import Headlines
from regard.corpora.labelled import Labelled
from regard.corpora.mix import Mix
from regard.corpora.named import Named
from regard.corpora.planted import Planted
from regard.corpora.points import DistanceFiles, Points
from regard.corpora.proteins import Proteins
from regard.corpora.proteinsets import ProteinSet
from regard.corpora.published import Published
from regard.corpora.questions import Questions
from regard.corpora.questionsets import QuestionSet
from regard.corpora.reorder import Reorder
from regard.corpora.rolls import Rolls
from regard.corpora.scores import Score
from regard.corpora.summaries import Summaries, SummarySet
from regard.corpora.tagged import Tagged
from regard.corpora.tagsets import TagSet
from regard.corpora.tunes import Tunes

MADE: dict[type[Table], Callable[..., Corpus]] = {
    tables.DatesData: Dates,
    tables.ReorderData: Reorder,
    tables.FilesData: Files,
    tables.NamedData: Named,
    tables.TextData: Documents,
    tables.NamedText: Published,
    tables.LabelledData: Labelled,
    tables.NamedLabelled: Published,
    tables.PlantedData: Planted,
    tables.TaggedData: Tagged,
    tables.NamedTags: TagSet,
    tables.DialogueData: Dialogues,
    tables.NamedDialogues: DialogueSet,
    questions.FactsData: Facts,
    questions.QuestionsData: Questions,
    questions.NamedQuestions: QuestionSet,
    tables.SummariesData: Summaries,
    tables.NamedSummaries: SummarySet,
    tables.HeadlinesData: Headlines,
    music.RollsData: Rolls,
    music.AbcData: Tunes,
    music.NamedMusic: Score,
    fold.ProteinsData: Proteins,
    fold.NamedProteins: ProteinSet,
    fold.PointsData: Points,
    fold.DistancesData: DistanceFiles,
    bits.CopyData: Copy,
    bits.RecallData: Recall,
}
LATE = {  # these need numpy, for which nobody else should wait
    caption.DigitsData: "digits:Digits",
    caption.CaptionsData: "captions:CaptionFiles",
    image.ShapesData: "shapes:Shapes",
    fewshot.PrototypesData: "episodes:Prototypes",
    fewshot.ClassesData: "gallery:ClassFolders",
    fewshot.NamedClasses: "gallery:GallerySet",
    worlds.BanditData: "worlds:Bandits",
    worlds.MdpData: "worlds:Mdps",
    image.PicturesData: "picturesets:PictureFiles",
    image.NamedPictures: "picturesets:PictureSet",
}


def build(data: Table) -> Corpus:
    if isinstance(data, tables.MixData):
        parts = [build(part.data) for part in data.parts]
        return Mix(parts, [part.weight for part in data.parts], seed=data.seed)
    made = MADE.get(type(data))
    if type(data) in LATE:
        module, _, name = LATE[type(data)].partition(":")
        made = getattr(import_module(f"regard.corpora.{module}"), name)
    if made is None:
        raise ValueError(f"data of {type(data).__name__} cannot be built")
    return made(**data.model_dump(exclude={"kind"}))
