"""Settings that are chosen by the data: tokenizer, length of the training, validations.

They are chosen once, when a run is created, and saved with the run. A setting that is given wins.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

from regard.batching.source import BatchSource
from regard.config.base import DataConfig
from regard.config.data.text_pairs import MixDataConfig
from regard.config.settings import Settings
from regard.config.text import TextConfig
from regard.config.validators import WORD_MODELS
from regard.data.corpus import Corpus, Record
from regard.files import JsonObject
from regard.tasks.base import BatchT
from regard.text.train import TokenizerKind

EPOCHS, MAX_EPOCHS = 40, 200
FEW_STEPS, MAX_STEPS = 1_000, 20_000
MIN_STEPS_PER_WARMUP = 3  # the training is at least so many times as long as the warmup
VALIDATIONS = 20  # of a training
PATIENCE = 7  # validations: about a third of the training

MAX_COUNTED_RECORDS = 1_000_000
MAX_WORDS = 2_000  # different words; more are cut into pieces
MAX_WORD_CHARACTERS = 15  # mean; longer "words" are text without spaces
SIZES_BY_WORD_COUNT = ((500_000, 4_000), (5_000_000, 8_000))  # up to so many words: pieces
LARGEST_SIZE = 32_000


def resolve_text(settings: Settings, corpus: Corpus) -> Settings:
    """Return settings whose tokenizer is chosen by the training data, if it is `auto`."""
    text: TextConfig = settings.text
    if text.kind != "auto" or "text" in settings.unused_settings():
        return settings
    values: JsonObject = {"kind": settings.data.tokenizer_kind}
    if text.split_punctuation or settings.model.kind in WORD_MODELS:
        values["kind"] = "words"
    if values["kind"] is None:
        texts = record_texts(islice(corpus.read("train"), MAX_COUNTED_RECORDS))
        kind, size = suitable_tokenizer(texts)
        values = {"kind": kind} if "size" in text.model_fields_set else {"kind": kind, "size": size}
    return settings.model_copy(update={"text": text.model_copy(update=values)})


def record_texts(records: Iterable[Record]) -> Iterator[str]:
    """Yield the texts of records."""
    for record in records:
        yield from (value for value in record.values() if isinstance(value, str))


def suitable_tokenizer(texts: Iterable[str]) -> tuple[TokenizerKind, int]:
    """Return words for texts with a small vocabulary, else BPE with a size for these texts."""
    words: set[str] = set()
    word_count = character_count = 0
    for text in texts:
        parts = text.split()
        word_count += len(parts)
        character_count += sum(map(len, parts))
        if len(words) <= MAX_WORDS:
            words.update(parts)
    if len(words) <= MAX_WORDS and character_count <= MAX_WORD_CHARACTERS * word_count:
        return "words", TextConfig().size
    sizes = (size for limit, size in SIZES_BY_WORD_COUNT if word_count <= limit)
    return "bpe", next(sizes, LARGEST_SIZE)


def resolve_training(
    settings: Settings, batches: BatchSource[BatchT], best_resets_after: int = 0
) -> Settings:
    """Return settings whose length and validations are chosen by the number of batches.

    `best_resets_after` is the step after which the objective changes: no early stop before it.
    """
    train, values = settings.train, JsonObject()
    steps = train.steps
    if steps is None and train.epochs is None:
        steps = suitable_steps(batches.batches_per_epoch, train.accumulate)
        steps = max(steps, MIN_STEPS_PER_WARMUP * train.schedule.warmup, 2 * best_resets_after)
        values["steps"] = steps
        if train.patience is None and not best_resets_after:
            values["patience"] = PATIENCE
    if train.validate_every is None:
        batches_per_epoch = 0 if steps else batches.batches_per_epoch or MAX_STEPS
        steps = steps or (train.epochs or 1) * batches_per_epoch // train.accumulate
        values["validate_every"] = max(1, steps // VALIDATIONS)
    if not values:
        return settings
    return settings.model_copy(update={"train": train.model_copy(update=values)})


def suitable_steps(batches_per_epoch: int | None, accumulate: int = 1) -> int:
    """Return the steps of a training: 40 epochs, or up to 200 where these are few steps."""
    if batches_per_epoch is None:
        return MAX_STEPS
    few_steps = min(FEW_STEPS, MAX_EPOCHS * batches_per_epoch // accumulate)
    return min(max(EPOCHS * batches_per_epoch // accumulate, few_steps, 1), MAX_STEPS)


def with_saved_choices(settings: Settings, saved: Settings) -> Settings:
    """Return settings that take what the data had chosen from those of a saved run."""
    train, values = settings.train, JsonObject()
    if train.steps is None and train.epochs is None:
        values |= {"steps": saved.train.steps, "epochs": saved.train.epochs}
        values["patience"] = train.patience or saved.train.patience
    for name in ("validate_every", "metric"):
        if getattr(train, name) is None:
            values[name] = getattr(saved.train, name)
    data: DataConfig = settings.data
    if type(data) is type(saved.data):
        data = with_saved_shares(data, saved.data)
    text: TextConfig = settings.text
    if text.kind == "auto":
        has_size = "size" in text.model_fields_set
        size = text.size if has_size else saved.text.size
        text = text.model_copy(update={"kind": saved.text.kind, "size": size})
    train = train.model_copy(update=values)
    return settings.model_copy(update={"data": data, "text": text, "train": train})


def with_saved_shares(data: DataConfig, saved: DataConfig) -> DataConfig:
    """Return a [data] table that takes the held-out share from a saved one, if it is automatic."""
    if isinstance(data, MixDataConfig) and isinstance(saved, MixDataConfig):
        parts = tuple(
            part.model_copy(update={"data": with_saved_shares(part.data, saved_part.data)})
            for part, saved_part in zip(data.parts, saved.parts, strict=False)
        )
        return data.model_copy(update={"parts": (*parts, *data.parts[len(parts) :])})
    if getattr(data, "held_out", 0.0) is not None:
        return data
    return data.model_copy(update={"held_out": getattr(saved, "held_out", None)})


def describe_choices(given: Settings, chosen: Settings) -> str | None:
    """Return one line with what was chosen by the data; None if nothing was."""
    train, parts = chosen.train, list[str]()
    if given.train.steps is None and given.train.epochs is None:
        parts.append(f"train.steps = {train.steps}")
        if given.train.patience is None and train.patience is not None:
            parts.append(f"train.patience = {train.patience}")
        if given.train.validate_every is None:
            parts.append(f"train.validate_every = {train.validate_every}")
    if given.text.kind != chosen.text.kind and given.data.tokenizer_kind is None:
        parts.append(f'text.kind = "{chosen.text.kind}"')
    if getattr(given.data, "held_out", 0.0) is None and given.data.dev is None:
        reason = "" if chosen.data.held_out else " (too few for a validation; give data.dev)"
        parts.append(f"data.held_out = {chosen.data.held_out:g}{reason}")
    return f"chosen by the size of the data: {', '.join(parts)}" if parts else None
