"""What the doctor found, as advice: each line says what is odd, where, and what to do about it."""

from collections.abc import Iterator, Mapping
from typing import Any

from regard.config.settings import Settings
from regard.train.run import places

SHARE = 0.01  # of pairs: below it, what also occurs in good data is not worth a line
UNKNOWN = 0.01  # of tokens
PADDING = 0.3
SMALL = 200  # pairs of dev or test: fewer say little
FEW = 5  # texts of a class

# field -> what it is called, from which share of the pairs on it is told, and what to do
ODD = {
    "empty_source": ("have an empty source", 0, "take them out"),
    "empty_target": ("have an empty target", 0, "take them out"),
    "identical": ("have a target that is their source", SHARE, "take them out, if not wanted"),
    "replacement_characters": (
        "hold U+FFFD, where text was decoded wrongly",
        0,
        "convert it again from its original, or take them out",
    ),
    "control_characters": ("hold control characters", 0, "take the characters out"),
    "ratio_outliers": (
        "have sides of very unequal length",
        0,
        "see whether the sides are still aligned there",
    ),
}


def advice(found: Mapping[str, Any], settings: Settings) -> Iterator[str]:
    for split, facts in found["splits"].items():
        yield from of_pairs(split, facts)
        yield from of_copies(split, facts)
        yield from of_tokens(split, facts, settings)
        yield from of_nfc(split, facts, "pairs", settings)
    yield from of_training(found, settings)


def of_pairs(split: str, facts: Mapping[str, Any]) -> Iterator[str]:
    for name, (what, least, remedy) in ODD.items():
        if facts.get(name, 0) > least * facts["pairs"]:
            places = ", ".join(facts["places"][name])
            yield f"{split}: {number(facts[name])} pairs {what} (first: {places}); {remedy}"


def of_copies(split: str, facts: Mapping[str, Any]) -> Iterator[str]:
    """Duplicates within a split, and between it and the training data."""
    pairs = facts["pairs"]
    if facts["duplicates"] > SHARE * pairs:
        again = number(facts["duplicates"])
        yield f"{split}: {again} pairs were there before; keep one of each, if not wanted"
    if facts.get("leaked_pairs"):
        known = f"{number(facts['leaked_pairs'])} of {number(facts['compared'])} pairs"
        yield f"{split}: {known} are also in train: scores will flatter; take them out of train"
    elif facts.get("leaked_sources"):
        known = f"{number(facts['leaked_sources'])} of {number(facts['compared'])} sources"
        yield f"{split}: {known} are also in train, with other targets; take them out of train"
    if split != "train" and pairs < SMALL:
        yield f"{split}: only {pairs} pairs: differences of its score may be chance; take more"


def of_tokens(split: str, facts: Mapping[str, Any], settings: Settings) -> Iterator[str]:
    if facts.get("shortened", 0) > SHARE and split == "train":
        share, longest = f"{facts['shortened']:.1%}", settings.train.longest
        which = f"train.longest = {longest} or longest_summary = {settings.train.longest_summary}"
        yield f"train: the end of {share} is cut off by {which}; raise them, if it matters"
    if facts.get("left_out", 0) > SHARE and split == "train":
        share, longest = f"{facts['left_out']:.1%}", settings.train.longest
        yield f"train: {share} is longer than train.longest = {longest}; raise it, or split texts"
    for side in ("source", "target"):
        if getattr(settings.model, "copying", False):  # what is unknown can be said all the same
            continue
        if facts[side]["unknown"] > UNKNOWN and split != "train":
            share = f"{facts[side]['unknown']:.1%}"
            yield (
                f"{split}: {share} of its {side} tokens are unknown to the vocabulary; raise "
                "text.size, or set text.kind = 'bpe'"
            )


def of_training(found: Mapping[str, Any], settings: Settings) -> Iterator[str]:
    if "dev" not in found["splits"]:
        yield "dev: there is none: training cannot choose its best weights; set data.dev"
    if found["batches"]["padding"] > PADDING:
        share = f"{found['batches']['padding']:.0%}"
        yield f"batches: {share} of them is padding; use train.tokens_per_batch, or lower longest"
    known, longest = places(settings.model), settings.train.longest
    if known <= longest:
        yield (
            f"model.longest = {known} leaves out texts of train.longest = {longest} tokens and an "
            "end; raise it, or lower the other"
        )


def of_nfc(split: str, facts: Mapping[str, Any], what: str, settings: Settings) -> Iterator[str]:
    if facts["not_nfc"] and settings.text.normalise is None:
        first = facts["places"]["not_nfc"][0]
        yield (
            f"{split}: {number(facts['not_nfc'])} {what} are not in the Unicode form NFC (first "
            f"{first}): the same letter may have two spellings; set text.normalise = 'NFC'"
        )


def on_texts(found: Mapping[str, Any], settings: Settings) -> Iterator[str]:
    """Of texts with classes."""
    known = found["splits"]["train"]["labels"]
    for split, facts in found["splits"].items():
        if facts["empty_text"]:
            many, first = number(facts["empty_text"]), facts["places"]["empty_text"][0]
            yield f"{split}: {many} texts are empty (first: {first}); take them out"
        yield from on_labels(split, facts, "texts", known)
        yield from on_characters(split, facts, "texts", settings)
        yield from on_copies(split, facts, "texts")
        if split != "train" and facts["texts"] < SMALL:
            few = f"only {facts['texts']} texts: differences of its score may be chance"
            yield f"{split}: {few}; take more"
    train = found["splits"]["train"]
    yield from on_rare(known, "texts")
    if train["shortened"] > SHARE:
        share, longest = f"{train['shortened']:.1%}", settings.train.longest
        yield f"train: the end of {share} is cut off by train.longest = {longest}; raise it"
    if "dev" not in found["splits"]:
        yield "dev: there is none: training cannot choose its best weights; set data.dev"


def on_questions(found: Mapping[str, Any], settings: Any) -> Iterator[str]:
    """Of questions with their contexts."""
    for split, facts in found["splits"].items():
        if facts["without_answer"] and not settings.head.no_answer:
            many = number(facts["without_answer"])
            yield f"{split}: {many} questions have no answer; set head.no_answer = true"
        if facts["long"] > SHARE:
            share, longest = f"{facts['long']:.1%}", settings.head.longest
            yield f"{split}: {share} of the answers are longer than head.longest = {longest}"
        yield from on_characters(split, facts, "questions", settings)
        yield from on_copies(split, facts, "questions")
        if facts.get("leaked_contexts"):
            many = f"{number(facts['leaked_contexts'])} of {number(facts['contexts'])} contexts"
            yield f"{split}: {many} are also in train: scores will flatter; split by contexts"
        if split != "train" and facts["questions"] < SMALL:
            few = f"only {facts['questions']} questions: differences of its score may be chance"
            yield f"{split}: {few}; take more"
    if "dev" not in found["splits"]:
        yield "dev: there is none: training cannot choose its best weights; set data.dev"


def on_documents(found: Mapping[str, Any], settings: Settings) -> Iterator[str]:
    """Of plain text."""
    for split, facts in found["splits"].items():
        yield from on_characters(split, facts, "documents", settings)
        yield from on_copies(split, facts, "documents")


def on_music(found: Mapping[str, Any]) -> Iterator[str]:
    """Of piano rolls; of tunes, what is not told of any text."""
    for split, facts in found["splits"].items():
        if "pieces" in facts:
            yield from on_copies(split, facts, "pieces")
        if facts.get("unplayable"):
            many, first = number(facts["unplayable"]), facts["places"]["unplayable"][0]
            yield f"{split}: {many} tunes cannot be played (first: {first}); mend them"
    if "dev" not in found["splits"]:
        yield "dev: there is none: training cannot choose its best weights; set data.dev"


def on_folds(found: Mapping[str, Any], settings: Any) -> Iterator[str]:
    """Of proteins, and of points."""
    for split, facts in found["splits"].items():
        yield from on_copies(split, facts, "texts")
        if facts.get("far", 0) > SHARE:
            share, far = f"{facts['far']:.1%}", settings.head.farthest
            yield f"{split}: {share} of its distances are beyond head.farthest = {far}; raise it"
        if facts.get("left_out", 0) > SHARE:
            share, most = f"{facts['left_out']:.1%}", settings.train.longest
            yield f"{split}: {share} has more points than train.longest = {most}; raise it"
        known = found["splits"]["train"].get("labels", {})
        if missing := [state for state in facts.get("labels", {}) if state not in known]:
            yield f"{split}: state {missing[0]!r} is not in train, where it would have to be learnt"
        if split == "train" and facts.get("aligned") and settings.model.kind != "msa":
            kind = settings.model.kind
            yield f"train: model.kind = {kind!r} reads no aligned sequences: take 'msa'"
    if "dev" not in found["splits"]:
        yield "dev: there is none: training cannot choose its best weights; set data.dev"


def on_pictures(found: Mapping[str, Any], settings: Any) -> Iterator[str]:
    """Of pictures with classes."""
    known = found["splits"]["train"]["labels"]
    for split, facts in found["splits"].items():
        if facts["broken"]:
            many, first = number(facts["broken"]), facts["places"]["broken"][0]
            yield f"{split}: {many} pictures cannot be read (first: {first})"
        yield from on_labels(split, facts, "pictures", known)
        yield from on_shapes(split, facts, settings)
    yield from on_rare(known, "pictures")
    if "dev" not in found["splits"]:
        yield "dev: there is none: training cannot choose its best weights; set data.dev"


def on_shapes(split: str, facts: Mapping[str, Any], settings: Any) -> Iterator[str]:
    """Of any pictures."""
    yield from on_copies(split, facts, "pictures")
    if split != "train" and facts["pictures"] < SMALL:
        few = f"only {facts['pictures']} pictures: differences of its score may be chance"
        yield f"{split}: {few}; take more"
    if facts["reshaped"] > SHARE and settings.picture.fit == "crop":
        share = f"{facts['reshaped']:.1%} of the pictures have another shape"
        yield f"{split}: {share}, and lose their borders; set picture.fit = 'pad' to keep them"
    if 0 < facts["usual_side"] < min(settings.picture.size) / 2:
        side = f"pictures are usually {facts['usual_side']} pixels on their shorter side"
        yield f"{split}: {side}, and are made much larger; lower picture.size"


def on_captions(found: Mapping[str, Any], settings: Any) -> Iterator[str]:
    """Of pictures with captions."""
    for split, facts in found["splits"].items():
        if facts["broken"]:
            many, first = number(facts["broken"]), facts["places"]["broken"][0]
            yield f"{split}: {many} pictures cannot be read (first: {first})"
        yield from on_shapes(split, facts, settings)
        if facts["left_out"] > SHARE and split == "train":
            share = f"{facts['left_out']:.1%} of the captions are longer"
            yield f"train: {share} than train.longest = {settings.train.longest}; raise it"
        if facts["caption"]["unknown"] > UNKNOWN and split != "train":
            share = f"{facts['caption']['unknown']:.1%} of the tokens of its captions"
            yield f"{split}: {share} are unknown to the vocabulary; raise text.size"
    if "dev" not in found["splits"]:
        yield "dev: there is none: training cannot choose its best weights; set data.dev"


def on_labels(
    split: str, facts: Mapping[str, Any], what: str, known: Mapping[str, int]
) -> Iterator[str]:
    if facts["several_labels"]:
        many = number(facts["several_labels"])
        yield f"{split}: {many} {what} are there with different labels; decide on one for each"
    if missing := [label for label in facts["labels"] if label not in known]:
        yield f"{split}: label {missing[0]!r} is not in train, where it would have to be learnt"


def on_rare(known: Mapping[str, int], what: str) -> Iterator[str]:
    if rare := [label for label, count in known.items() if count < FEW]:
        few = f"label {rare[0]!r} has only {known[rare[0]]} {what} to be learnt from"
        yield f"train: {few}; give more, or take it out"


def on_bits(found: Mapping[str, Any], settings: Any) -> Iterator[str]:
    """Of sequences that are made here: whether they can be learnt from, and remembered.

    Short ones are few and come again and again, in any split: that is no fault.
    """
    train = settings.train
    if found["left_out"] > SHARE:
        share = f"{found['left_out']:.1%}"
        yield f"train: {share} has more steps than train.longest = {train.longest}; raise it"
    slots = getattr(settings.model, "slots", None)
    for split, facts in found["splits"].items():
        if slots is not None and facts["shown"] > slots:
            long = f"sequences of up to {facts['shown']} vectors do not fit into model.slots"
            yield f"{split}: {long} = {slots}, one in each; raise it, or take shorter ones"


def on_characters(
    split: str, facts: Mapping[str, Any], what: str, settings: Settings
) -> Iterator[str]:
    for name in ("replacement_characters", "control_characters"):
        said, _, remedy = ODD[name]
        if facts[name]:
            first = facts["places"][name][0]
            yield f"{split}: {number(facts[name])} {what} {said} (first: {first}); {remedy}"
    yield from of_nfc(split, facts, what, settings)
    if facts["text"]["unknown"] > UNKNOWN and split != "train":
        share = f"{facts['text']['unknown']:.1%}"
        yield (
            f"{split}: {share} of its tokens are unknown to the vocabulary; raise text.size, or "
            "set text.kind = 'bpe'"
        )


def on_copies(split: str, facts: Mapping[str, Any], what: str) -> Iterator[str]:
    if facts[f"repeated_{what}"] > SHARE * facts[what]:
        again = number(facts[f"repeated_{what}"])
        yield f"{split}: {again} {what} were there before; keep one of each, if not wanted"
    if facts.get(f"leaked_{what}"):
        known = f"{number(facts[f'leaked_{what}'])} of {number(facts['compared'])} {what}"
        yield f"{split}: {known} are also in train: scores will flatter; take them out of train"


def number(count: int) -> str:
    return f"{count:,}"
