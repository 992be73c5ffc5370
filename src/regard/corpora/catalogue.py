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
    "planted": Entry(
        "planted.Planted",
        "made-up documents whose class hangs on one word, and where it stands",
        "made up",
        "made here",
    ),
    "sst2": Entry(
        "published.Published", "sentences of film reviews, by sentiment", "en", "not stated"
    ),
    "imdb_sample": Entry(
        "published.Published", "a fifth of IMDB's film reviews, by sentiment", "en", "not stated"
    ),
    "tweeteval_emotion": Entry(
        "published.Published", "tweets by emotion", "en", "not restricted by its publishers"
    ),
    "labelled": Entry(
        "labelled.Labelled", "your own, with classes: TSV, CSV, JSON lines, folders", "any", "yours"
    ),
    "wnut17": Entry("tagsets.TagSet", "tweets with new and rare names", "en", "CC BY 4.0"),
    "atis": Entry("tagsets.TagSet", "questions about flights: slots, intents", "en", "not stated"),
    "snips": Entry("tagsets.TagSet", "requests to an assistant, the same", "en", "not stated"),
    "tagged": Entry(
        "tagged.Tagged", "your own, a tag for each word: CoNLL, JSON lines, folders", "any", "yours"
    ),
    "camrest676": Entry(
        "dialoguesets.DialogueSet",
        "people who look for a restaurant, with 110 of them to look up",
        "en",
        "Apache 2.0",
    ),
    "woz2": Entry("dialoguesets.DialogueSet", "more of such conversations", "en", "Apache 2.0"),
    "dialogues": Entry(
        "dialogues.Dialogues", "your own conversations, and a table for them", "any", "yours"
    ),
    "facts": Entry(
        "facts.Facts", "made-up facts, and questions for one of them", "made up", "made here"
    ),
    "squadshifts": Entry(
        "questionsets.QuestionSet",
        "questions on Wikipedia, Reddit, Amazon; test: SQuAD dev",
        "en",
        "not stated; CC BY-SA 4.0",
    ),
    "squad_dev": Entry(
        "questionsets.QuestionSet", "SQuAD 1.1's dev set, split by us", "en", "CC BY-SA 4.0"
    ),
    "questions": Entry(
        "questions.Questions", "your own, with contexts: SQuAD's JSON, JSON lines", "any", "yours"
    ),
    "headlines": Entry(
        "headlines.Headlines",
        "made-up news with names that are in one document only, and must be copied",
        "made up",
        "made here",
    ),
    "aeslc": Entry(
        "summaries.SummarySet", "14,000 mails with their subjects", "en", "CC BY-NC-SA 4.0"
    ),
    "scitldr": Entry("summaries.SummarySet", "2,000 abstracts with summaries", "en", "Apache-2.0"),
    "summaries": Entry(
        "summaries.Summaries", "your own, with summaries: TSV, JSON lines", "any", "yours"
    ),
    "wikitext2": Entry("published.Published", "two million words of Wikipedia", "en", "CC BY-SA"),
    "tinyshakespeare": Entry(
        "published.Published", "a million characters of Shakespeare", "en", "public domain"
    ),
    "text": Entry(
        "documents.Documents", "your own texts: files, lines or paragraphs", "any", "yours"
    ),
    "jsb_chorales": Entry(
        "scores.Score", "chorales by Bach, in quarter notes, as piano rolls", "music", "not stated"
    ),
    "nottingham": Entry("scores.Score", "folk tunes with chords, in ABC", "music", "GPL-3.0"),
    "rolls": Entry("rolls.Rolls", "your own piano rolls: JSON, JSON lines", "music", "yours"),
    "abc": Entry("tunes.Tunes", "your own tunes in ABC notation", "music", "yours"),
    "shapes": Entry(
        "shapes.Shapes",
        "pictures of a coloured shape, with its name, a sentence on it and its place",
        "pictures",
        "made here",
    ),
    "digits": Entry(
        "digits.Digits",
        "pictures of digits in a grid, with a caption, and where each word of it should look",
        "pictures",
        "made here",
    ),
    "captions": Entry(
        "captions.CaptionFiles", "your own, with captions: JSON lines, COCO", "pictures", "yours"
    ),
    "fashion_mnist": Entry(
        "picturesets.PictureSet",
        "70,000 pieces of clothing, 28 x 28, ten classes",
        "pictures",
        "MIT",
    ),
    "fashion_mnist_20k": Entry(
        "picturesets.PictureSet", "the same, with a third of its training data", "pictures", "MIT"
    ),
    "pictures": Entry(
        "picturesets.PictureFiles", "your own: folders, tables, IDX files", "pictures", "yours"
    ),
    "copy": Entry("bits.Copy", "vectors of bits, to be told again", "bits", "made here"),
    "recall": Entry(
        "bits.Recall", "items of bits, of which the one after another is told", "bits", "made here"
    ),
    "cb513": Entry(
        "proteinsets.ProteinSet", "432 proteins with DSSP's states", "proteins", "not stated"
    ),
    "uci_structure": Entry(
        "proteinsets.ProteinSet",
        "128 proteins with helices and strands (Qian & Sejnowski 1988)",
        "proteins",
        "for non-commercial research",
    ),
    "proteins": Entry(
        "proteins.Proteins", "your own, with states: FASTA, CSV, JSON lines", "proteins", "yours"
    ),
    "points": Entry(
        "points.Points", "points in space, by some of their distances", "distances", "made here"
    ),
    "distances": Entry(
        "points.DistanceFiles", "your own points or distances: JSON lines", "distances", "yours"
    ),
    "bandit": Entry(
        "worlds.Bandits", "arms that pay 1 or nothing, to be found out", "worlds", "made here"
    ),
    "mdp": Entry(
        "worlds.Mdps", "random Markov decision processes of a few states", "worlds", "made here"
    ),
    "prototypes": Entry(
        "episodes.Prototypes",
        "points around points, a few of each, to be told",
        "points",
        "made here",
    ),
    "classes": Entry(
        "gallery.ClassFolders", "your own, a folder of pictures for each class", "pictures", "yours"
    ),
    "omniglot": Entry(
        "gallery.GallerySet", "1,623 characters of 50 alphabets, 20 times each", "pictures", "MIT"
    ),
    "mix": Entry("mix.Mix", "several of these, by weight", "any", "of its parts"),
}
