"""Every corpus by name: what it holds, under which license. For `regard list`; imports nothing."""

from typing import NamedTuple


class CorpusEntry(NamedTuple):
    """The class behind a name, as `module.class` of this room."""

    class_path: str
    description: str
    languages: str
    license: str


CORPORA = {
    "dates": CorpusEntry(
        "synthetic.dates.Dates",
        "dates as people write them -> ISO 8601; made here, any number of them",
        "20 languages",
        "Unicode-3.0 (CLDR)",
    ),
    "reorder": CorpusEntry(
        "synthetic.reorder.ReorderedSentences",
        "made-up sentences -> made-up sentences, with the true word alignment",
        "made up",
        "made here",
    ),
    "multi30k": CorpusEntry(
        "public.translation.PublicTranslation",
        "29,000 captions of images, with dev and test",
        "en, de, fr",
        "not stated",
    ),
    "multi30k_tok": CorpusEntry(
        "public.translation.PublicTranslation",
        "Multi30k in lower case, tokenized by its publishers",
        "en, de, fr",
        "not stated",
    ),
    "tatoeba": CorpusEntry(
        "public.translation.PublicTranslation",
        "short sentences for learners; split by the English side",
        "en with de, fr, pl",
        "CC BY 2.0",
    ),
    "files": CorpusEntry(
        "formats.text_pairs.TextPairFiles",
        "your own: TSV, parallel text, JSON lines, Parquet",
        "any",
        "yours",
    ),
    "planted": CorpusEntry(
        "synthetic.planted.PlantedWords",
        "made-up documents whose class hangs on one word, and where it stands",
        "made up",
        "made here",
    ),
    "sst2": CorpusEntry(
        "public.texts.PublicText", "sentences of film reviews, by sentiment", "en", "not stated"
    ),
    "imdb_sample": CorpusEntry(
        "public.texts.PublicText",
        "a fifth of IMDB's film reviews, by sentiment",
        "en",
        "not stated",
    ),
    "tweeteval_emotion": CorpusEntry(
        "public.texts.PublicText", "tweets by emotion", "en", "not restricted by its publishers"
    ),
    "labeled": CorpusEntry(
        "formats.labeled_texts.LabeledTextFiles",
        "your own, with classes: TSV, CSV, JSON lines, folders",
        "any",
        "yours",
    ),
    "wnut17": CorpusEntry(
        "public.tagged_texts.PublicTaggedTexts", "tweets with new and rare names", "en", "CC BY 4.0"
    ),
    "atis": CorpusEntry(
        "public.tagged_texts.PublicTaggedTexts",
        "questions about flights: slots, intents",
        "en",
        "not stated",
    ),
    "snips": CorpusEntry(
        "public.tagged_texts.PublicTaggedTexts",
        "requests to an assistant, the same",
        "en",
        "not stated",
    ),
    "tagged": CorpusEntry(
        "formats.tagged_texts.TaggedTextFiles",
        "your own, a tag for each word: CoNLL, JSON lines, folders",
        "any",
        "yours",
    ),
    "camrest676": CorpusEntry(
        "public.dialogues.PublicDialogues",
        "people who look for a restaurant, with 110 of them to look up",
        "en",
        "Apache 2.0",
    ),
    "woz2": CorpusEntry(
        "public.dialogues.PublicDialogues", "more of such conversations", "en", "Apache 2.0"
    ),
    "dialogues": CorpusEntry(
        "formats.dialogues.DialogueFiles",
        "your own conversations, and a table for them",
        "any",
        "yours",
    ),
    "facts": CorpusEntry(
        "synthetic.facts.Facts",
        "made-up facts, and questions for one of them",
        "made up",
        "made here",
    ),
    "squadshifts": CorpusEntry(
        "public.questions.PublicQuestions",
        "questions on Wikipedia, Reddit, Amazon; test: SQuAD dev",
        "en",
        "not stated; CC BY-SA 4.0",
    ),
    "squad_dev": CorpusEntry(
        "public.questions.PublicQuestions", "SQuAD 1.1's dev set, split by us", "en", "CC BY-SA 4.0"
    ),
    "questions": CorpusEntry(
        "formats.questions.QuestionFiles",
        "your own, with contexts: SQuAD's JSON, JSON lines",
        "any",
        "yours",
    ),
    "headlines": CorpusEntry(
        "synthetic.headlines.Headlines",
        "made-up news with names that are in one document only, and must be copied",
        "made up",
        "made here",
    ),
    "aeslc": CorpusEntry(
        "formats.summaries.PublicSummaries",
        "14,000 mails with their subjects",
        "en",
        "CC BY-NC-SA 4.0",
    ),
    "scitldr": CorpusEntry(
        "formats.summaries.PublicSummaries", "2,000 abstracts with summaries", "en", "Apache-2.0"
    ),
    "summaries": CorpusEntry(
        "formats.summaries.SummaryFiles",
        "your own, with summaries: TSV, JSON lines",
        "any",
        "yours",
    ),
    "wikitext2": CorpusEntry(
        "public.texts.PublicText", "two million words of Wikipedia", "en", "CC BY-SA"
    ),
    "tinyshakespeare": CorpusEntry(
        "public.texts.PublicText", "a million characters of Shakespeare", "en", "public domain"
    ),
    "text": CorpusEntry(
        "formats.documents.DocumentFiles",
        "your own texts: files, lines or paragraphs",
        "any",
        "yours",
    ),
    "jsb_chorales": CorpusEntry(
        "public.music.PublicMusic",
        "chorales by Bach, in quarter notes, as piano rolls",
        "music",
        "not stated",
    ),
    "nottingham": CorpusEntry(
        "public.music.PublicMusic", "folk tunes with chords, in ABC", "music", "GPL-3.0"
    ),
    "rolls": CorpusEntry(
        "formats.piano_rolls.PianoRollFiles",
        "your own piano rolls: JSON, JSON lines",
        "music",
        "yours",
    ),
    "abc": CorpusEntry(
        "formats.abc_files.AbcFiles", "your own tunes in ABC notation", "music", "yours"
    ),
    "shapes": CorpusEntry(
        "synthetic.shapes.Shapes",
        "images of a colored shape, with its name, a sentence on it and its place",
        "images",
        "made here",
    ),
    "digits": CorpusEntry(
        "synthetic.digits.Digits",
        "images of digits in a grid, with a caption, and where each word of it should look",
        "images",
        "made here",
    ),
    "captions": CorpusEntry(
        "formats.captions.CaptionFiles",
        "your own, with captions: JSON lines, COCO",
        "images",
        "yours",
    ),
    "fashion_mnist": CorpusEntry(
        "formats.image_files.PublicImages",
        "70,000 pieces of clothing, 28 x 28, ten classes",
        "images",
        "MIT",
    ),
    "fashion_mnist_20k": CorpusEntry(
        "formats.image_files.PublicImages",
        "the same, with a third of its training data",
        "images",
        "MIT",
    ),
    "images": CorpusEntry(
        "formats.image_files.ImageFiles",
        "your own: folders, tables, IDX files",
        "images",
        "yours",
    ),
    "copy": CorpusEntry(
        "synthetic.bits.Copy", "vectors of bits, to be told again", "bits", "made here"
    ),
    "recall": CorpusEntry(
        "synthetic.bits.Recall",
        "items of bits, of which the one after another is told",
        "bits",
        "made here",
    ),
    "cb513": CorpusEntry(
        "public.proteins.PublicProteins",
        "432 proteins with DSSP's states",
        "proteins",
        "not stated",
    ),
    "uci_structure": CorpusEntry(
        "public.proteins.PublicProteins",
        "128 proteins with helices and strands (Qian & Sejnowski 1988)",
        "proteins",
        "for non-commercial research",
    ),
    "proteins": CorpusEntry(
        "formats.proteins.ProteinFiles",
        "your own, with states: FASTA, CSV, JSON lines",
        "proteins",
        "yours",
    ),
    "points": CorpusEntry(
        "synthetic.points.Points",
        "points in space, by some of their distances",
        "distances",
        "made here",
    ),
    "distances": CorpusEntry(
        "synthetic.points.DistanceFiles",
        "your own points or distances: JSON lines",
        "distances",
        "yours",
    ),
    "bandit": CorpusEntry(
        "synthetic.environments.Bandits",
        "arms that pay 1 or nothing, to be found out",
        "worlds",
        "made here",
    ),
    "mdp": CorpusEntry(
        "synthetic.environments.Mdps",
        "random Markov decision processes of a few states",
        "worlds",
        "made here",
    ),
    "prototypes": CorpusEntry(
        "synthetic.episodes.Prototypes",
        "points around points, a few of each, to be told",
        "points",
        "made here",
    ),
    "classes": CorpusEntry(
        "formats.class_folders.ClassFolders",
        "your own, a folder of images for each class",
        "images",
        "yours",
    ),
    "omniglot": CorpusEntry(
        "formats.class_folders.PublicImageClasses",
        "1,623 characters of 50 alphabets, 20 times each",
        "images",
        "MIT",
    ),
    "mix": CorpusEntry("mix.MixedCorpus", "several of these, by weight", "any", "of its parts"),
}
