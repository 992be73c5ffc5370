"""What parts of the settings of a task ask of each other."""

from typing import Any


def check_windows(settings: Any) -> None:
    """What a language model can read at a time, and carry on."""
    train, model = settings.train, settings.model
    if train.carry and model.kind != "rnnlm":
        raise ValueError(f"train.carry is for rnnlm: {model.kind} begins each window anew")
    if model.kind == "gpt2" and train.context > model.context:
        limit = f"train.context = {train.context} is more than model.context"
        raise ValueError(f"{limit} = {model.context}: make one of them fit")


def check_joint(settings: Any) -> None:
    """One table of words, or one distribution, is of one vocabulary."""
    model = settings.model
    if settings.text.joint:
        return
    if model.kind == "pointer":
        raise ValueError("model.kind = 'pointer' needs one vocabulary: set text.joint = true")
    if model.kind == "transformer" and model.shared == "all":
        raise ValueError("model.shared = 'all' needs one vocabulary: set text.joint = true")


def check_words(settings: Any) -> None:
    """Letters are read of words."""
    kind = settings.model.kind
    if kind in ("elmo", "bilstm_crf", "bidaf") and settings.text.kind != "words":
        raise ValueError(f"model.kind = {kind!r} spells words: set text.kind = 'words'")
