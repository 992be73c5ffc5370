"""The [data] of the settings -> a corpus."""

from regard.config.data import (
    DatesData,
    FilesData,
    LabelledData,
    MixData,
    NamedData,
    NamedLabelled,
    NamedTags,
    NamedText,
    PlantedData,
    ReorderData,
    TaggedData,
    TextData,
)
from regard.config.table import Table
from regard.corpora.corpus import Corpus
from regard.corpora.dates import Dates
from regard.corpora.documents import Documents
from regard.corpora.files import Files
from regard.corpora.labelled import Labelled
from regard.corpora.mix import Mix
from regard.corpora.named import Named
from regard.corpora.planted import Planted
from regard.corpora.published import Published
from regard.corpora.reorder import Reorder
from regard.corpora.tagged import Tagged
from regard.corpora.tagsets import TagSet


def build(data: Table) -> Corpus:
    match data:
        case DatesData():
            return Dates(
                data.size, seed=data.seed, languages=data.languages, held_out=data.held_out
            )
        case ReorderData():
            return Reorder(
                data.size,
                seed=data.seed,
                held_out=data.held_out,
                order=data.order,
                words=data.words,
                shortest=data.shortest,
                longest=data.longest,
                fertility=data.fertility,
            )
        case FilesData():
            return Files(
                data.train,
                data.dev,
                data.test,
                format=data.format,
                columns=data.columns,
                fields=data.fields,
            )
        case NamedData():
            return Named(data.name, data.source, data.target)
        case MixData():
            parts = [build(part.data) for part in data.parts]
            return Mix(parts, [part.weight for part in data.parts], seed=data.seed)
        case TextData():
            return Documents(
                data.train, data.dev, data.test, unit=data.unit, held_out=data.held_out
            )
        case LabelledData():
            return Labelled(
                data.train,
                data.dev,
                data.test,
                format=data.format,
                columns=data.columns,
                fields=data.fields,
                held_out=data.held_out,
            )
        case PlantedData():
            return Planted(**data.model_dump(exclude={"kind"}))
        case TaggedData():
            return Tagged(**data.model_dump(exclude={"kind"}))
        case NamedTags():
            return TagSet(data.name)
        case NamedText() | NamedLabelled():
            return Published(data.name)
        case _:
            raise ValueError(f"data of {type(data).__name__} cannot be built")
