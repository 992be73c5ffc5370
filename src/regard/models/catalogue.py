"""Every model by name: where it is, whose it is, what it can be asked. No torch here."""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from torch import nn


class ModelEntry(NamedTuple):
    """The class behind a name as `module:class`, its paper, and the tasks that it serves."""

    import_path: str
    paper: str
    tasks: tuple[str, ...]


TAGGING_TASKS = ("tag", "understand")
SEQ2SEQ_TASKS = ("translate", "summarize")
ENCODER_TASKS = ("classify", *TAGGING_TASKS)
MEMORY_TASKS = ("copy", "recall")
META_LEARNING_TASKS = ("bandit", "fewshot")
GENERATION_TASKS = ("language", "chat", "music")
MODELS = {
    "encdec": ModelEntry(
        "regard.models.encdec:EncoderDecoder", "Cho et al. 2014, 1406.1078", SEQ2SEQ_TASKS
    ),
    "seq2seq": ModelEntry(
        "regard.models.encdec:Seq2Seq", "Sutskever et al. 2014, 1409.3215", SEQ2SEQ_TASKS
    ),
    "rnnsearch": ModelEntry(
        "regard.models.rnnsearch:RnnSearch", "Bahdanau et al. 2015, 1409.0473", SEQ2SEQ_TASKS
    ),
    "luong": ModelEntry(
        "regard.models.luong:Luong", "Luong et al. 2015, 1508.04025", SEQ2SEQ_TASKS
    ),
    "transformer": ModelEntry(
        "regard.models.transformer:Transformer", "Vaswani et al. 2017, 1706.03762", SEQ2SEQ_TASKS
    ),
    "rnmt": ModelEntry("regard.models.rnmt:Rnmt", "Chen et al. 2018, 1804.09849", SEQ2SEQ_TASKS),
    "lstmn_fusion": ModelEntry(
        "regard.models.lstmn:LstmnFusion", "Cheng et al. 2016, 1601.06733", SEQ2SEQ_TASKS
    ),
    "pointer": ModelEntry(
        "regard.models.pointer:Pointer", "See et al. 2017, 1704.04368", ("summarize",)
    ),
    "gpt2": ModelEntry("regard.models.gpt2:Gpt2", "Radford et al. 2019", GENERATION_TASKS),
    "rnnlm": ModelEntry(
        "regard.models.rnnlm:Rnnlm", "Elman 1990; Mikolov et al. 2010", GENERATION_TASKS
    ),
    "lstmn": ModelEntry(
        "regard.models.lstmn:Lstmn", "Cheng et al. 2016, 1601.06733", GENERATION_TASKS
    ),
    "birnn": ModelEntry(
        "regard.models.birnn:BiRnn",
        "Lin et al. 2017, 1703.03130",
        (*ENCODER_TASKS, "answer", "fold"),
    ),
    "roll_rnn": ModelEntry(
        "regard.models.roll:RollRnn", "Boulanger-Lewandowski et al. 2012, 1206.6392", ("music",)
    ),
    "roll_gpt": ModelEntry("regard.models.roll:RollGpt", "Radford et al. 2019", ("music",)),
    "ntm": ModelEntry("regard.models.ntm:Ntm", "Graves et al. 2014, 1410.5401", MEMORY_TASKS),
    "lstm": ModelEntry(
        "regard.models.lstm:Lstm",
        "Hochreiter & Schmidhuber 1997",
        (*MEMORY_TASKS, *META_LEARNING_TASKS),
    ),
    "snail": ModelEntry(
        "regard.models.snail:Snail", "Mishra et al. 2018, 1707.03141", META_LEARNING_TASKS
    ),
    "han": ModelEntry("regard.models.han:Han", "Yang et al. 2016, N16-1174", ("classify",)),
    "bert": ModelEntry(
        "regard.models.bert:Bert",
        "Devlin et al. 2019, 1810.04805",
        (*ENCODER_TASKS, "answer", "pretrain", "fold"),
    ),
    "msa": ModelEntry("regard.models.msa:Msa", "Jumper et al. 2021, AlphaFold 2", ("fold",)),
    "vit": ModelEntry("regard.models.vit:Vit", "Dosovitskiy et al. 2021, 2010.11929", ("image",)),
    "show_tell": ModelEntry(
        "regard.models.caption:ShowTell", "Vinyals et al. 2015, 1411.4555", ("caption",)
    ),
    "show_attend": ModelEntry(
        "regard.models.caption:ShowAttend", "Xu et al. 2015, 1502.03044", ("caption",)
    ),
    "bilstm_crf": ModelEntry(
        "regard.models.bilstm_crf:BilstmCrf", "Huang et al. 2015, 1508.01991", TAGGING_TASKS
    ),
    "birnn_attention": ModelEntry(
        "regard.models.birnn_attention:BiRnnAttention", "Liu & Lane 2016, 1609.01454", TAGGING_TASKS
    ),
    "bidaf": ModelEntry("regard.models.bidaf:Bidaf", "Seo et al. 2017, 1611.01603", ("answer",)),
    "elmo": ModelEntry(
        "regard.models.elmo:Elmo", "Peters et al. 2018, 1802.05365", (*ENCODER_TASKS, "pretrain")
    ),
}


def build_model(kind: str, settings: Mapping[str, Any]) -> "nn.Module":
    """The model of this name with these settings, which are the keywords of its class."""
    model_type = model_class(kind)
    parameters = model_settings(kind)
    for name in settings:
        if name not in parameters:
            raise ValueError(f"{kind}: unknown setting {name!r}; {suggestion(name, parameters)}")
    missing = [
        n for n, p in parameters.items() if p.default is Parameter.empty and n not in settings
    ]
    if missing:
        raise ValueError(f"{kind}: {missing[0]} is missing from the settings")
    return model_type(**settings)


def model_class(kind: str) -> "type[nn.Module]":
    """The class of this name, imported now."""
    if kind not in MODELS:
        raise ValueError(f"kind: there is no model {kind!r}; {suggestion(kind, MODELS)}")
    module, _, name = MODELS[kind].import_path.partition(":")
    return getattr(import_module(module), name)


def model_settings(kind: str) -> dict[str, Parameter]:
    """What can be set, with defaults and types, as the class's own signature says it."""
    return dict(signature(model_class(kind)).parameters)


def suggestion(name: str, names: Mapping[str, Any]) -> str:
    near = get_close_matches(name, names, 1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
