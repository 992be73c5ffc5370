"""Checks of settings that depend on each other."""

from regard.config.settings import Settings
from regard.errors import InputError

WORD_MODELS = ("elmo", "bilstm_crf", "bidaf")  # models that read the characters of words

STRIDE_HELP = (
    "Number of new tokens in each window of an evaluation, at most context_length; the window "
    "begins with what stands before them. Fewer: more context for each token, and more time. "
    "Default: context_length, windows side by side."
)


def check_windows(settings: Settings) -> None:
    """Check that a language model can read windows of the length that it is trained on."""
    train, model = settings.train, settings.model
    if train.carry_state and model.kind != "rnnlm":
        raise InputError(
            f"train.carry_state is for rnnlm; {model.kind} cannot carry its state to the next "
            "window"
        )
    stride = train.evaluation_stride
    if stride is not None and train.carry_state:
        raise InputError(
            "train.evaluation_stride has no effect with train.carry_state, which reads a text in "
            "one piece: remove it"
        )
    if stride is not None and stride > train.context_length:
        raise InputError(
            f"train.evaluation_stride = {stride} is more than train.context_length = "
            f"{train.context_length}: some tokens would be left out"
        )
    if model.kind == "gpt2" and train.context_length > model.max_positions:
        limit = f"train.context_length = {train.context_length} is more than model.max_positions"
        raise InputError(f"{limit} = {model.max_positions}: make one of them fit")


def check_joint_vocabulary(settings: Settings) -> None:
    """Check that source and target share a vocabulary where the model needs it."""
    model = settings.model
    if settings.text.joint:
        return
    if model.kind == "pointer":
        raise InputError("model.kind = 'pointer' needs one vocabulary: set text.joint = true")
    if model.kind == "transformer" and model.tie_embeddings == "all":
        raise InputError("model.tie_embeddings = 'all' needs one vocabulary: set text.joint = true")


def check_word_tokenizer(settings: Settings) -> None:
    """Check that a model that reads characters gets complete words."""
    kind = settings.model.kind
    if kind in WORD_MODELS and settings.text.kind not in ("auto", "words"):
        raise InputError(
            f"model.kind = {kind!r} reads the characters of words: set text.kind = 'words'"
        )
    if kind in WORD_MODELS and settings.text.split_punctuation:
        raise InputError(
            f"text.split_punctuation is not for {kind}, which reads words as spaces separate them: "
            "set it to false"
        )
