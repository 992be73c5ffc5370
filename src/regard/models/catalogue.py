"""Every model by name; a class is imported when it is needed, so this module needs no torch."""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from inspect import Parameter, signature
from typing import TYPE_CHECKING, NamedTuple

from regard.errors import InputError

if TYPE_CHECKING:
    from torch import nn


class ModelEntry(NamedTuple):
    """The class of a model as `module:class`, and its paper."""

    import_path: str
    paper: str


MODELS = {
    "encdec": ModelEntry("regard.models.encdec:EncoderDecoder", "Cho et al. 2014, 1406.1078"),
    "seq2seq": ModelEntry("regard.models.encdec:Seq2Seq", "Sutskever et al. 2014, 1409.3215"),
    "rnnsearch": ModelEntry("regard.models.rnnsearch:RnnSearch", "Bahdanau et al. 2015, 1409.0473"),
    "luong": ModelEntry("regard.models.luong:Luong", "Luong et al. 2015, 1508.04025"),
    "transformer": ModelEntry(
        "regard.models.transformer:Transformer", "Vaswani et al. 2017, 1706.03762"
    ),
    "rnmt": ModelEntry("regard.models.rnmt:Rnmt", "Chen et al. 2018, 1804.09849"),
    "lstmn_fusion": ModelEntry("regard.models.lstmn:LstmnFusion", "Cheng et al. 2016, 1601.06733"),
    "pointer": ModelEntry("regard.models.pointer:Pointer", "See et al. 2017, 1704.04368"),
    "gpt2": ModelEntry("regard.models.gpt2:Gpt2", "Radford et al. 2019"),
    "rnnlm": ModelEntry("regard.models.rnnlm:Rnnlm", "Elman 1990; Mikolov et al. 2010"),
    "lstmn": ModelEntry("regard.models.lstmn:Lstmn", "Cheng et al. 2016, 1601.06733"),
    "birnn": ModelEntry("regard.models.birnn:BiRnn", "Lin et al. 2017, 1703.03130"),
    "roll_rnn": ModelEntry(
        "regard.models.roll:RollRnn", "Boulanger-Lewandowski et al. 2012, 1206.6392"
    ),
    "roll_gpt": ModelEntry("regard.models.roll:RollGpt", "Radford et al. 2019"),
    "ntm": ModelEntry("regard.models.ntm:Ntm", "Graves et al. 2014, 1410.5401"),
    "lstm": ModelEntry("regard.models.lstm:Lstm", "Hochreiter & Schmidhuber 1997"),
    "snail": ModelEntry("regard.models.snail:Snail", "Mishra et al. 2018, 1707.03141"),
    "han": ModelEntry("regard.models.han:Han", "Yang et al. 2016, N16-1174"),
    "bert": ModelEntry("regard.models.bert:Bert", "Devlin et al. 2019, 1810.04805"),
    "msa": ModelEntry("regard.models.msa:Msa", "Jumper et al. 2021, AlphaFold 2"),
    "vit": ModelEntry("regard.models.vit:Vit", "Dosovitskiy et al. 2021, 2010.11929"),
    "show_tell": ModelEntry("regard.models.caption:ShowTell", "Vinyals et al. 2015, 1411.4555"),
    "show_attend": ModelEntry("regard.models.caption:ShowAttend", "Xu et al. 2015, 1502.03044"),
    "bilstm_crf": ModelEntry("regard.models.bilstm_crf:BilstmCrf", "Huang et al. 2015, 1508.01991"),
    "birnn_attention": ModelEntry(
        "regard.models.birnn_attention:BiRnnAttention", "Liu & Lane 2016, 1609.01454"
    ),
    "bidaf": ModelEntry("regard.models.bidaf:Bidaf", "Seo et al. 2017, 1611.01603"),
    "elmo": ModelEntry("regard.models.elmo:Elmo", "Peters et al. 2018, 1802.05365"),
}


def build_model(kind: str, settings: Mapping[str, object]) -> "nn.Module":
    """The model of this name with these settings, which are the keywords of its class."""
    model_type = model_class(kind)
    parameters = model_settings(kind)
    for name in settings:
        if name not in parameters:
            raise InputError(f"{kind}: unknown setting {name!r}; {suggestion(name, parameters)}")
    missing = [
        n for n, p in parameters.items() if p.default is Parameter.empty and n not in settings
    ]
    if missing:
        raise InputError(f"{kind}: {missing[0]} is missing from the settings")
    return model_type(**settings)


def model_class(kind: str) -> "type[nn.Module]":
    """The class of this name, imported now."""
    if kind not in MODELS:
        raise InputError(f"kind: there is no model {kind!r}; {suggestion(kind, MODELS)}")
    module, _, name = MODELS[kind].import_path.partition(":")
    return getattr(import_module(module), name)


def model_settings(kind: str) -> dict[str, Parameter]:
    """What can be set, with defaults and types, as the class's own signature says it."""
    return dict(signature(model_class(kind)).parameters)


def suggestion(name: str, names: Mapping[str, object]) -> str:
    near = get_close_matches(name, names, 1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
