"""Warnings of the data doctor: each line says what is wrong, where, and what to do."""

from collections.abc import Iterator, Mapping
from typing import Any

from regard.config.settings import Settings
from regard.files import JsonObject
from regard.tasks.building import max_positions

MIN_REPORTED_SHARE = 0.01  # of pairs: below it, what also occurs in good data is not worth a line
MAX_UNKNOWN_SHARE = 0.01  # of tokens
MAX_PADDING_SHARE = 0.3
MIN_HELD_OUT_RECORDS = 200  # pairs of dev or test: fewer say little
MIN_EXAMPLES_PER_LABEL = 5  # texts of a class

# field -> (description, share of pairs from which it is reported, advice)
ANOMALIES = {
    "empty_source": ("have an empty source", 0, "take them out"),
    "empty_target": ("have an empty target", 0, "take them out"),
    "identical": (
        "have a target that is their source",
        MIN_REPORTED_SHARE,
        "take them out, if not wanted",
    ),
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


def parallel_data_warnings(report: JsonObject, settings: Settings) -> Iterator[str]:
    for split, statistics in report["splits"].items():
        yield from anomaly_warnings(split, statistics)
        yield from pair_duplicate_warnings(split, statistics)
        yield from token_warnings(split, statistics, settings)
        yield from nfc_warnings(split, statistics, "pairs", settings)
    yield from training_warnings(report, settings)


def anomaly_warnings(split: str, statistics: JsonObject) -> Iterator[str]:
    for name, (description, min_share, remedy) in ANOMALIES.items():
        if statistics.get(name, 0) > min_share * statistics["pairs"]:
            locations = ", ".join(statistics["places"][name])
            yield (
                f"{split}: {format_count(statistics[name])} pairs {description} (first: "
                f"{locations}); {remedy}"
            )


def pair_duplicate_warnings(split: str, statistics: JsonObject) -> Iterator[str]:
    """Duplicates within a split, and between it and the training data."""
    pairs = statistics["pairs"]
    if statistics["duplicates"] > MIN_REPORTED_SHARE * pairs:
        repeated_count = format_count(statistics["duplicates"])
        yield f"{split}: {repeated_count} pairs are repeated; keep one of each, if not wanted"
    if statistics.get("leaked_pairs"):
        leaked = (
            f"{format_count(statistics['leaked_pairs'])} of "
            f"{format_count(statistics['compared'])} pairs"
        )
        yield f"{split}: {leaked} are also in train: scores will be too high; remove them there"
    elif statistics.get("leaked_sources"):
        leaked = (
            f"{format_count(statistics['leaked_sources'])} of "
            f"{format_count(statistics['compared'])} sources"
        )
        yield f"{split}: {leaked} are also in train, with other targets; take them out of train"
    if split != "train" and pairs < MIN_HELD_OUT_RECORDS:
        yield f"{split}: only {pairs} pairs: differences of its score may be chance; take more"


def token_warnings(split: str, statistics: JsonObject, settings: Settings) -> Iterator[str]:
    if statistics.get("shortened", 0) > MIN_REPORTED_SHARE and split == "train":
        share, max_tokens = f"{statistics['shortened']:.1%}", settings.train.max_tokens
        limits = (
            f"train.max_tokens = {max_tokens} or max_summary_tokens = "
            f"{settings.train.max_summary_tokens}"
        )
        yield f"train: the end of {share} is cut off by {limits}; raise them, if it matters"
    if statistics.get("left_out", 0) > MIN_REPORTED_SHARE and split == "train":
        share, max_tokens = f"{statistics['left_out']:.1%}", settings.train.max_tokens
        yield (
            f"train: {share} is longer than train.max_tokens = {max_tokens}; raise it, or "
            "split texts"
        )
    for side in ("source", "target"):
        if getattr(settings.model, "copying", False):  # what is unknown can be said all the same
            continue
        if statistics[side]["unknown"] > MAX_UNKNOWN_SHARE and split != "train":
            share = f"{statistics[side]['unknown']:.1%}"
            yield (
                f"{split}: {share} of its {side} tokens are unknown to the vocabulary; raise "
                "text.size, or set text.kind = 'bpe'"
            )


def training_warnings(report: JsonObject, settings: Settings) -> Iterator[str]:
    if "dev" not in report["splits"]:
        yield "dev: there is none: training cannot choose its best weights; set data.dev"
    if report["batches"]["padding"] > MAX_PADDING_SHARE:
        share = f"{report['batches']['padding']:.0%}"
        yield (
            f"batches: {share} of them is padding; use train.tokens_per_batch, or lower max_tokens"
        )
    position_limit, max_tokens = max_positions(settings.model) + 1, settings.train.max_tokens
    if position_limit <= max_tokens:
        yield (
            f"model.max_positions = {position_limit} leaves out texts of train.max_tokens = "
            f"{max_tokens} tokens and an "
            "end; raise it, or lower the other"
        )


def nfc_warnings(
    split: str, statistics: JsonObject, unit: str, settings: Settings
) -> Iterator[str]:
    if statistics["not_nfc"] and settings.text.normalize is None:
        first_location = statistics["places"]["not_nfc"][0]
        yield (
            f"{split}: {format_count(statistics['not_nfc'])} {unit} are not in the Unicode "
            "form NFC (first "
            f"{first_location}): the same letter may have two spellings; set text.normalize = 'NFC'"
        )


def labeled_text_warnings(report: JsonObject, settings: Settings) -> Iterator[str]:
    """Yield warnings on texts with classes."""
    train_labels = report["splits"]["train"]["labels"]
    for split, statistics in report["splits"].items():
        if statistics["empty_text"]:
            empty_count, first_location = (
                format_count(statistics["empty_text"]),
                statistics["places"]["empty_text"][0],
            )
            yield f"{split}: {empty_count} texts are empty (first: {first_location}); take them out"
        yield from label_warnings(split, statistics, "texts", train_labels)
        yield from character_warnings(split, statistics, "texts", settings)
        yield from duplicate_warnings(split, statistics, "texts")
        if split != "train" and statistics["texts"] < MIN_HELD_OUT_RECORDS:
            problem = f"only {statistics['texts']} texts: differences of its score may be chance"
            yield f"{split}: {problem}; take more"
    train = report["splits"]["train"]
    yield from rare_label_warnings(train_labels, "texts")
    if train["shortened"] > MIN_REPORTED_SHARE:
        share, max_tokens = f"{train['shortened']:.1%}", settings.train.max_tokens
        yield f"train: the end of {share} is cut off by train.max_tokens = {max_tokens}; raise it"
    if "dev" not in report["splits"]:
        yield "dev: there is none: training cannot choose its best weights; set data.dev"


def question_warnings(report: JsonObject, settings: Any) -> Iterator[str]:
    """Yield warnings on questions and their contexts."""
    for split, statistics in report["splits"].items():
        if statistics["without_answer"] and not settings.head.allow_no_answer:
            count = format_count(statistics["without_answer"])
            yield f"{split}: {count} questions have no answer; set head.allow_no_answer = true"
        if statistics["long"] > MIN_REPORTED_SHARE:
            share, limit = f"{statistics['long']:.1%}", settings.head.max_answer_tokens
            yield (
                f"{split}: {share} of the answers are longer than head.max_answer_tokens = {limit}"
            )
        yield from character_warnings(split, statistics, "questions", settings)
        yield from duplicate_warnings(split, statistics, "questions")
        if statistics.get("leaked_contexts"):
            count = (
                f"{format_count(statistics['leaked_contexts'])} of "
                f"{format_count(statistics['contexts'])} contexts"
            )
            yield f"{split}: {count} are also in train: scores will be too high; split by contexts"
        if split != "train" and statistics["questions"] < MIN_HELD_OUT_RECORDS:
            problem = (
                f"only {statistics['questions']} questions: differences of its score may be chance"
            )
            yield f"{split}: {problem}; take more"
    if "dev" not in report["splits"]:
        yield "dev: there is none: training cannot choose its best weights; set data.dev"


def document_warnings(report: JsonObject, settings: Settings) -> Iterator[str]:
    """Yield warnings on plain text."""
    for split, statistics in report["splits"].items():
        yield from character_warnings(split, statistics, "documents", settings)
        yield from duplicate_warnings(split, statistics, "documents")


def music_warnings(report: JsonObject) -> Iterator[str]:
    """Yield warnings on piano rolls, and on tunes beyond those on any text."""
    for split, statistics in report["splits"].items():
        if "pieces" in statistics:
            yield from duplicate_warnings(split, statistics, "pieces")
        if statistics.get("unplayable"):
            unplayable_count, first_location = (
                format_count(statistics["unplayable"]),
                statistics["places"]["unplayable"][0],
            )
            yield (
                f"{split}: {unplayable_count} tunes cannot be played (first: "
                f"{first_location}); mend them"
            )
    if "dev" not in report["splits"]:
        yield "dev: there is none: training cannot choose its best weights; set data.dev"


def fold_warnings(report: JsonObject, settings: Any) -> Iterator[str]:
    """Yield warnings on proteins and on points."""
    for split, statistics in report["splits"].items():
        yield from duplicate_warnings(split, statistics, "texts")
        if statistics.get("far", 0) > MIN_REPORTED_SHARE:
            share, limit = f"{statistics['far']:.1%}", settings.head.max_distance
            yield (
                f"{split}: {share} of its distances are beyond head.max_distance = {limit}; "
                "raise it"
            )
        if statistics.get("left_out", 0) > MIN_REPORTED_SHARE:
            share, max_tokens = f"{statistics['left_out']:.1%}", settings.train.max_tokens
            yield f"{split}: {share} has more points than train.max_tokens = {max_tokens}; raise it"
        train_labels = report["splits"]["train"].get("labels", {})
        if missing := [
            state for state in statistics.get("labels", {}) if state not in train_labels
        ]:
            yield f"{split}: state {missing[0]!r} is not in train; add examples of it"
        if split == "train" and statistics.get("aligned") and settings.model.kind != "msa":
            kind = settings.model.kind
            yield f"train: model.kind = {kind!r} reads no aligned sequences: take 'msa'"
    if "dev" not in report["splits"]:
        yield "dev: there is none: training cannot choose its best weights; set data.dev"


def image_warnings(report: JsonObject, settings: Any) -> Iterator[str]:
    """Yield warnings on images with classes."""
    train_labels = report["splits"]["train"]["labels"]
    for split, statistics in report["splits"].items():
        if statistics["broken"]:
            broken_count, first_location = (
                format_count(statistics["broken"]),
                statistics["places"]["broken"][0],
            )
            yield f"{split}: {broken_count} images cannot be read (first: {first_location})"
        yield from label_warnings(split, statistics, "images", train_labels)
        yield from image_size_warnings(split, statistics, settings)
    yield from rare_label_warnings(train_labels, "images")
    if "dev" not in report["splits"]:
        yield "dev: there is none: training cannot choose its best weights; set data.dev"


def image_size_warnings(split: str, statistics: JsonObject, settings: Any) -> Iterator[str]:
    """Yield warnings on the sizes of images."""
    yield from duplicate_warnings(split, statistics, "images")
    if split != "train" and statistics["images"] < MIN_HELD_OUT_RECORDS:
        problem = f"only {statistics['images']} images: differences of its score may be chance"
        yield f"{split}: {problem}; take more"
    if statistics["reshaped"] > MIN_REPORTED_SHARE and settings.image.fit == "crop":
        share = f"{statistics['reshaped']:.1%} of the images have another shape"
        yield f"{split}: {share}, and lose their borders; set image.fit = 'pad' to keep them"
    if 0 < statistics["usual_side"] < min(settings.image.size) / 2:
        side = f"images are usually {statistics['usual_side']} pixels on their shorter side"
        yield f"{split}: {side}, and are made much larger; lower image.size"


def caption_warnings(report: JsonObject, settings: Any) -> Iterator[str]:
    """Yield warnings on images with captions."""
    for split, statistics in report["splits"].items():
        if statistics["broken"]:
            broken_count, first_location = (
                format_count(statistics["broken"]),
                statistics["places"]["broken"][0],
            )
            yield f"{split}: {broken_count} images cannot be read (first: {first_location})"
        yield from image_size_warnings(split, statistics, settings)
        if statistics["left_out"] > MIN_REPORTED_SHARE and split == "train":
            share = f"{statistics['left_out']:.1%} of the captions are longer"
            yield f"train: {share} than train.max_tokens = {settings.train.max_tokens}; raise it"
        if statistics["caption"]["unknown"] > MAX_UNKNOWN_SHARE and split != "train":
            share = f"{statistics['caption']['unknown']:.1%} of the tokens of its captions"
            yield f"{split}: {share} are unknown to the vocabulary; raise text.size"
    if "dev" not in report["splits"]:
        yield "dev: there is none: training cannot choose its best weights; set data.dev"


def label_warnings(
    split: str, statistics: JsonObject, unit: str, train_labels: Mapping[str, int]
) -> Iterator[str]:
    if statistics["several_labels"]:
        ambiguous_count = format_count(statistics["several_labels"])
        yield (
            f"{split}: {ambiguous_count} {unit} are there with different labels; decide on one "
            "for each"
        )
    if missing := [label for label in statistics["labels"] if label not in train_labels]:
        yield f"{split}: label {missing[0]!r} is not in train, where it would have to be learned"


def rare_label_warnings(train_labels: Mapping[str, int], unit: str) -> Iterator[str]:
    if rare := [label for label, count in train_labels.items() if count < MIN_EXAMPLES_PER_LABEL]:
        problem = f"label {rare[0]!r} has only {train_labels[rare[0]]} {unit} to be learned from"
        yield f"train: {problem}; give more, or take it out"


def bit_sequence_warnings(report: JsonObject, settings: Any) -> Iterator[str]:
    """Yield warnings on synthetic sequences that are too long for training or for the memory.

    Short sequences are few, so they repeat in all splits; this is no fault.
    """
    train = settings.train
    if report["left_out"] > MIN_REPORTED_SHARE:
        share = f"{report['left_out']:.1%}"
        yield f"train: {share} has more steps than train.max_tokens = {train.max_tokens}; raise it"
    slots = getattr(settings.model, "slots", None)
    for split, statistics in report["splits"].items():
        if slots is not None and statistics["shown"] > slots:
            problem = (
                f"sequences of up to {statistics['shown']} vectors do not fit into model.slots"
            )
            yield f"{split}: {problem} = {slots}, one in each; raise it, or take shorter ones"


def character_warnings(
    split: str, statistics: JsonObject, unit: str, settings: Settings
) -> Iterator[str]:
    for name in ("replacement_characters", "control_characters"):
        description, _, remedy = ANOMALIES[name]
        if statistics[name]:
            first_location = statistics["places"][name][0]
            yield (
                f"{split}: {format_count(statistics[name])} {unit} {description} (first: "
                f"{first_location}); {remedy}"
            )
    yield from nfc_warnings(split, statistics, unit, settings)
    if statistics["text"]["unknown"] > MAX_UNKNOWN_SHARE and split != "train":
        share = f"{statistics['text']['unknown']:.1%}"
        yield (
            f"{split}: {share} of its tokens are unknown to the vocabulary; raise text.size, or "
            "set text.kind = 'bpe'"
        )


def duplicate_warnings(split: str, statistics: JsonObject, unit: str) -> Iterator[str]:
    if statistics[f"repeated_{unit}"] > MIN_REPORTED_SHARE * statistics[unit]:
        repeated_count = format_count(statistics[f"repeated_{unit}"])
        yield f"{split}: {repeated_count} {unit} are repeated; keep one of each, if not wanted"
    if statistics.get(f"leaked_{unit}"):
        leaked = (
            f"{format_count(statistics[f'leaked_{unit}'])} of "
            f"{format_count(statistics['compared'])} {unit}"
        )
        yield f"{split}: {leaked} are also in train: scores will be too high; remove them there"


def format_count(count: int) -> str:
    return f"{count:,}"
