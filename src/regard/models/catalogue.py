"""Every model by name: where it is, whose it is, what it can be asked. No torch here."""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from torch import nn


class Entry(NamedTuple):
    """The class behind a name as `module:class`, its paper, and the tasks that it serves."""

    place: str
    paper: str
    tasks: tuple[str, ...]


NAMES = ("tag", "understand")
TURNS = ("translate", "summarise")
ENCODES = ("classify", *NAMES)
LEARNS = ("copy", "recall")
ACTS = ("bandit", "fewshot")
WRITES = ("language", "chat", "music")
MODELS = {
    "encdec": Entry("regard.models.encdec:EncoderDecoder", "Cho et al. 2014, 1406.1078", TURNS),
    "seq2seq": Entry("regard.models.encdec:Seq2Seq", "Sutskever et al. 2014, 1409.3215", TURNS),
    "rnnsearch": Entry(
        "regard.models.rnnsearch:RnnSearch", "Bahdanau et al. 2015, 1409.0473", TURNS
    ),
    "luong": Entry("regard.models.luong:Luong", "Luong et al. 2015, 1508.04025", TURNS),
    "transformer": Entry(
        "regard.models.transformer:Transformer", "Vaswani et al. 2017, 1706.03762", TURNS
    ),
    "rnmt": Entry("regard.models.rnmt:Rnmt", "Chen et al. 2018, 1804.09849", TURNS),
    "lstmn_fusion": Entry(
        "regard.models.lstmn:LstmnFusion", "Cheng et al. 2016, 1601.06733", TURNS
    ),
    "pointer": Entry(
        "regard.models.pointer:Pointer", "See et al. 2017, 1704.04368", ("summarise",)
    ),
    "gpt2": Entry("regard.models.gpt2:Gpt2", "Radford et al. 2019", WRITES),
    "rnnlm": Entry("regard.models.rnnlm:Rnnlm", "Elman 1990; Mikolov et al. 2010", WRITES),
    "lstmn": Entry("regard.models.lstmn:Lstmn", "Cheng et al. 2016, 1601.06733", WRITES),
    "birnn": Entry(
        "regard.models.birnn:BiRnn", "Lin et al. 2017, 1703.03130", (*ENCODES, "answer", "fold")
    ),
    "roll_rnn": Entry(
        "regard.models.roll:RollRnn", "Boulanger-Lewandowski et al. 2012, 1206.6392", ("music",)
    ),
    "roll_gpt": Entry("regard.models.roll:RollGpt", "Radford et al. 2019", ("music",)),
    "ntm": Entry("regard.models.ntm:Ntm", "Graves et al. 2014, 1410.5401", LEARNS),
    "lstm": Entry("regard.models.lstm:Lstm", "Hochreiter & Schmidhuber 1997", (*LEARNS, *ACTS)),
    "snail": Entry("regard.models.snail:Snail", "Mishra et al. 2018, 1707.03141", ACTS),
    "han": Entry("regard.models.han:Han", "Yang et al. 2016, N16-1174", ("classify",)),
    "bert": Entry(
        "regard.models.bert:Bert",
        "Devlin et al. 2019, 1810.04805",
        (*ENCODES, "answer", "pretrain", "fold"),
    ),
    "msa": Entry("regard.models.msa:Msa", "Jumper et al. 2021, AlphaFold 2", ("fold",)),
    "vit": Entry("regard.models.vit:Vit", "Dosovitskiy et al. 2021, 2010.11929", ("image",)),
    "show_tell": Entry(
        "regard.models.caption:ShowTell", "Vinyals et al. 2015, 1411.4555", ("caption",)
    ),
    "show_attend": Entry(
        "regard.models.caption:ShowAttend", "Xu et al. 2015, 1502.03044", ("caption",)
    ),
    "bilstm_crf": Entry(
        "regard.models.bilstm_crf:BilstmCrf", "Huang et al. 2015, 1508.01991", NAMES
    ),
    "birnn_attention": Entry(
        "regard.models.birnn_attention:BiRnnAttention", "Liu & Lane 2016, 1609.01454", NAMES
    ),
    "bidaf": Entry("regard.models.bidaf:Bidaf", "Seo et al. 2017, 1611.01603", ("answer",)),
    "elmo": Entry(
        "regard.models.elmo:Elmo", "Peters et al. 2018, 1802.05365", (*ENCODES, "pretrain")
    ),
}


def build(kind: str, settings: Mapping[str, Any]) -> "nn.Module":
    """The model of this name with these settings, which are the keywords of its class."""
    made = find(kind)
    known = settings_of(kind)
    for name in settings:
        if name not in known:
            raise ValueError(f"{kind}: unknown setting {name!r}; {hint(name, known)}")
    missing = [n for n, p in known.items() if p.default is Parameter.empty and n not in settings]
    if missing:
        raise ValueError(f"{kind}: {missing[0]} is missing from the settings")
    return made(**settings)


def find(kind: str) -> "type[nn.Module]":
    """The class of this name, imported now."""
    if kind not in MODELS:
        raise ValueError(f"kind: there is no model {kind!r}; {hint(kind, MODELS)}")
    module, _, name = MODELS[kind].place.partition(":")
    return getattr(import_module(module), name)


def settings_of(kind: str) -> dict[str, Parameter]:
    """What can be set, with defaults and types, as the class's own signature says it."""
    return dict(signature(find(kind)).parameters)


def hint(name: str, names: Mapping[str, Any]) -> str:
    near = get_close_matches(name, names, 1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
