"""Every corpus by name: its content and its license. For `regard list`; imports nothing."""

from typing import NamedTuple


class CorpusEntry(NamedTuple):
    """The class behind a name, as `module.class` of `regard.data`."""

    class_path: str
    description: str
    languages: str
    license: str


CORPORA = {
    "dates": CorpusEntry(
        "synthetic.dates.Dates",
        "written dates -> ISO 8601; any amount",
        "20 languages",
        "Unicode-3.0 (CLDR)",
    ),
    "reorder": CorpusEntry(
        "synthetic.reorder.ReorderedSentences",
        "artificial sentences -> artificial sentences, with the true word alignment",
        "artificial",
        "synthetic",
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
        "short sentences for learners; split by the English sentence",
        "en with de, fr, pl",
        "CC BY 2.0",
    ),
    "files": CorpusEntry(
        "formats.text_pairs.TextPairFiles",
        "your own pairs of texts: TSV, parallel text, JSON lines, Parquet",
        "any",
        "yours",
    ),
    "planted": CorpusEntry(
        "synthetic.planted.PlantedWords",
        "artificial documents whose class depends on one word; with its position",
        "artificial",
        "synthetic",
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
        "your own texts with classes: TSV, CSV, JSON lines, folders",
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
        "requests to an assistant: slots, intents",
        "en",
        "not stated",
    ),
    "tagged": CorpusEntry(
        "formats.tagged_texts.TaggedTextFiles",
        "your own texts with a tag for each word: CoNLL, JSON lines, folders",
        "any",
        "yours",
    ),
    "camrest676": CorpusEntry(
        "public.dialogues.PublicDialogues",
        "dialogues of people who look for a restaurant, with a database of 110 restaurants",
        "en",
        "Apache 2.0",
    ),
    "woz2": CorpusEntry(
        "public.dialogues.PublicDialogues", "more dialogues about restaurants", "en", "Apache 2.0"
    ),
    "dialogues": CorpusEntry(
        "formats.dialogues.DialogueFiles",
        "your own dialogues, optionally with a database",
        "any",
        "yours",
    ),
    "facts": CorpusEntry(
        "synthetic.facts.Facts",
        "artificial facts, and questions about one of them",
        "artificial",
        "synthetic",
    ),
    "squadshifts": CorpusEntry(
        "public.questions.PublicQuestions",
        "questions on Wikipedia, Reddit, Amazon; test: SQuAD dev",
        "en",
        "not stated; CC BY-SA 4.0",
    ),
    "squad_dev": CorpusEntry(
        "public.questions.PublicQuestions",
        "the dev set of SQuAD 1.1, split into train, dev and test",
        "en",
        "CC BY-SA 4.0",
    ),
    "questions": CorpusEntry(
        "formats.questions.QuestionFiles",
        "your own questions with contexts: JSON of SQuAD, JSON lines",
        "any",
        "yours",
    ),
    "headlines": CorpusEntry(
        "synthetic.headlines.Headlines",
        "artificial news with names that occur in one document only and must be copied",
        "artificial",
        "synthetic",
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
        "your own documents with summaries: TSV, JSON lines",
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
        "images of a colored shape, with its name, a caption and its box",
        "images",
        "synthetic",
    ),
    "digits": CorpusEntry(
        "synthetic.digits.Digits",
        "images of digits in a grid, with a caption and a box for each of its words",
        "images",
        "synthetic",
    ),
    "captions": CorpusEntry(
        "formats.captions.CaptionFiles",
        "your own images with captions: JSON lines, COCO",
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
        "Fashion-MNIST with a third of its training data",
        "images",
        "MIT",
    ),
    "images": CorpusEntry(
        "formats.image_files.ImageFiles",
        "your own images with classes: folders, tables, IDX files",
        "images",
        "yours",
    ),
    "copy": CorpusEntry(
        "synthetic.bits.Copy", "sequences of bit vectors to repeat", "bits", "synthetic"
    ),
    "recall": CorpusEntry(
        "synthetic.bits.Recall",
        "items of bit vectors; the target is the item after a given one",
        "bits",
        "synthetic",
    ),
    "cb513": CorpusEntry(
        "public.proteins.PublicProteins",
        "432 proteins with the states of DSSP",
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
        "your own proteins with states: FASTA, CSV, JSON lines",
        "proteins",
        "yours",
    ),
    "points": CorpusEntry(
        "synthetic.points.Points",
        "points in space, of which some distances are given",
        "distances",
        "synthetic",
    ),
    "distances": CorpusEntry(
        "synthetic.points.DistanceFiles",
        "your own points or distances: JSON lines",
        "distances",
        "yours",
    ),
    "bandit": CorpusEntry(
        "synthetic.environments.Bandits",
        "bandits whose arms have reward 0 or 1, with unknown probabilities",
        "environments",
        "synthetic",
    ),
    "mdp": CorpusEntry(
        "synthetic.environments.Mdps",
        "random Markov decision processes of a few states",
        "environments",
        "synthetic",
    ),
    "prototypes": CorpusEntry(
        "synthetic.episodes.Prototypes",
        "points around a prototype for each class",
        "points",
        "synthetic",
    ),
    "classes": CorpusEntry(
        "formats.class_folders.ClassFolders",
        "your own images, a folder for each class",
        "images",
        "yours",
    ),
    "omniglot": CorpusEntry(
        "formats.class_folders.PublicImageClasses",
        "1,623 characters of 50 alphabets, 20 images each",
        "images",
        "MIT",
    ),
    "mix": CorpusEntry(
        "mix.MixedCorpus", "several corpora, mixed by weight", "any", "of its parts"
    ),
}
