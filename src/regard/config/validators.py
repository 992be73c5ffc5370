"""What parts of the settings of a task ask of each other."""

from typing import Any


def check_windows(settings: Any) -> None:
    """What a language model can read at a time, and carry on."""
    train, model = settings.train, settings.model
    if train.carry_state and model.kind != "rnnlm":
        raise ValueError(f"train.carry_state is for rnnlm: {model.kind} begins each window anew")
    if model.kind == "gpt2" and train.context_length > model.max_positions:
        limit = f"train.context_length = {train.context_length} is more than model.max_positions"
        raise ValueError(f"{limit} = {model.max_positions}: make one of them fit")


def check_joint_vocabulary(settings: Any) -> None:
    """One table of words, or one distribution, is of one vocabulary."""
    model = settings.model
    if settings.text.joint:
        return
    if model.kind == "pointer":
        raise ValueError("model.kind = 'pointer' needs one vocabulary: set text.joint = true")
    if model.kind == "transformer" and model.tie_embeddings == "all":
        raise ValueError("model.tie_embeddings = 'all' needs one vocabulary: set text.joint = true")


def check_word_tokenizer(settings: Any) -> None:
    """Letters are read of words."""
    kind = settings.model.kind
    if kind in ("elmo", "bilstm_crf", "bidaf") and settings.text.kind != "words":
        raise ValueError(f"model.kind = {kind!r} spells words: set text.kind = 'words'")
