"""Every corpus by name: what it holds, under which licence. For `regard list`; imports nothing."""

from typing import NamedTuple


class Entry(NamedTuple):
    """The class behind a name, as `module.class` of this room."""

    made_by: str
    about: str
    languages: str
    licence: str


CORPORA = {
    "dates": Entry(
        "dates.Dates",
        "dates as people write them -> ISO 8601; made here, any number of them",
        "20 languages",
        "Unicode-3.0 (CLDR)",
    ),
    "reorder": Entry(
        "reorder.Reorder",
        "made-up sentences -> made-up sentences, with the true word alignment",
        "made up",
        "made here",
    ),
    "multi30k": Entry(
        "named.Named",
        "29,000 captions of pictures, with dev and test",
        "en, de, fr",
        "not stated",
    ),
    "multi30k_tok": Entry(
        "named.Named",
        "Multi30k in lower case, tokenised by its publishers",
        "en, de, fr",
        "not stated",
    ),
    "tatoeba": Entry(
        "named.Named",
        "short sentences for learners; split by the English side",
        "en with de, fr, pl",
        "CC BY 2.0",
    ),
    "files": Entry(
        "files.Files",
        "your own: TSV, parallel text, JSON lines, Parquet",
        "any",
        "yours",
    ),
    "mix": Entry("mix.Mix", "several of these, by weight", "any", "of its parts"),
}
