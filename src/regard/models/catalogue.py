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
    """The class of a model as `module:class`, its paper, and a line for the catalogue page."""

    import_path: str
    paper: str
    description: str


MODELS = {
    "encdec": ModelEntry(
        "regard.models.encdec:EncoderDecoder",
        "Cho et al. 2014, 1406.1078",
        "one vector for the whole source, read at every step",
    ),
    "seq2seq": ModelEntry(
        "regard.models.encdec:Seq2Seq",
        "Sutskever et al. 2014, 1409.3215",
        "stacked LSTMs; reversed source; the state is copied to the decoder",
    ),
    "rnnsearch": ModelEntry(
        "regard.models.rnnsearch:RnnSearch",
        "Bahdanau et al. 2015, 1409.0473",
        "the first attention over the states of an encoder",
    ),
    "luong": ModelEntry(
        "regard.models.luong:Luong",
        "Luong et al. 2015, 1508.04025",
        "global, local-m and local-p attention, every score, input feeding",
    ),
    "transformer": ModelEntry(
        "regard.models.transformer:Transformer",
        "Vaswani et al. 2017, 1706.03762",
        "attention only, with post- or pre-normalization",
    ),
    "rnmt": ModelEntry(
        "regard.models.rnmt:Rnmt",
        "Chen et al. 2018, 1804.09849",
        "RNMT+: multi-head additive attention over deep LSTMs",
    ),
    "lstmn_fusion": ModelEntry(
        "regard.models.lstmn:LstmnFusion",
        "Cheng et al. 2016, 1601.06733",
        "LSTMN encoder and decoder, with attention to the source",
    ),
    "pointer": ModelEntry(
        "regard.models.pointer:Pointer",
        "See et al. 2017, 1704.04368",
        "generates words or copies them, with coverage",
    ),
    "gpt2": ModelEntry(
        "regard.models.gpt2:Gpt2",
        "Radford et al. 2019",
        "causal transformer language model",
    ),
    "rnnlm": ModelEntry(
        "regard.models.rnnlm:Rnnlm",
        "Elman 1990; Mikolov et al. 2010",
        "recurrent language model: Elman, LSTM or GRU",
    ),
    "lstmn": ModelEntry(
        "regard.models.lstmn:Lstmn",
        "Cheng et al. 2016, 1601.06733",
        "LSTM with attention to its own past states",
    ),
    "birnn": ModelEntry(
        "regard.models.birnn:BiRnn",
        "Lin et al. 2017, 1703.03130",
        "bidirectional recurrent encoder with attention pooling",
    ),
    "roll_rnn": ModelEntry(
        "regard.models.roll:RollRnn",
        "Boulanger-Lewandowski et al. 2012, 1206.6392",
        "recurrent model of piano rolls: Elman, LSTM or GRU",
    ),
    "roll_gpt": ModelEntry(
        "regard.models.roll:RollGpt",
        "Radford et al. 2019",
        "causal transformer over piano rolls",
    ),
    "ntm": ModelEntry(
        "regard.models.ntm:Ntm",
        "Graves et al. 2014, 1410.5401",
        "Neural Turing Machine: a controller, heads and a memory",
    ),
    "lstm": ModelEntry(
        "regard.models.lstm:Lstm",
        "Hochreiter & Schmidhuber 1997",
        "LSTM without any other memory, as a baseline",
    ),
    "snail": ModelEntry(
        "regard.models.snail:Snail",
        "Mishra et al. 2018, 1707.03141",
        "dilated convolutions and attention over an episode",
    ),
    "han": ModelEntry(
        "regard.models.han:Han",
        "Yang et al. 2016, N16-1174",
        "attention over words, then over sentences",
    ),
    "bert": ModelEntry(
        "regard.models.bert:Bert",
        "Devlin et al. 2019, 1810.04805",
        "bidirectional transformer encoder",
    ),
    "msa": ModelEntry(
        "regard.models.msa:Msa",
        "Jumper et al. 2021, AlphaFold 2",
        "the Evoformer: aligned sequences and pairs of residues, with triangles",
    ),
    "vit": ModelEntry(
        "regard.models.vit:Vit",
        "Dosovitskiy et al. 2021, 2010.11929",
        "transformer over the patches of an image",
    ),
    "show_tell": ModelEntry(
        "regard.models.caption:ShowTell",
        "Vinyals et al. 2015, 1411.4555",
        "one vector of the image, then an LSTM that writes the caption",
    ),
    "show_attend": ModelEntry(
        "regard.models.caption:ShowAttend",
        "Xu et al. 2015, 1502.03044",
        "soft or hard attention to the image, for each word",
    ),
    "bilstm_crf": ModelEntry(
        "regard.models.bilstm_crf:BilstmCrf",
        "Huang et al. 2015, 1508.01991",
        "bidirectional LSTM over words and letters, with a CRF",
    ),
    "birnn_attention": ModelEntry(
        "regard.models.birnn_attention:BiRnnAttention",
        "Liu & Lane 2016, 1609.01454",
        "bidirectional RNN with attention, for slots and intents",
    ),
    "bidaf": ModelEntry(
        "regard.models.bidaf:Bidaf",
        "Seo et al. 2017, 1611.01603",
        "bidirectional attention between context and question",
    ),
    "elmo": ModelEntry(
        "regard.models.elmo:Elmo",
        "Peters et al. 2018, 1802.05365",
        "character convolutions and two language models, mixed",
    ),
}


def build_model(kind: str, settings: Mapping[str, object]) -> "nn.Module":
    """Return the model of this name with these settings, the keywords of its class."""
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
    """Import and return the class of this name."""
    if kind not in MODELS:
        raise InputError(f"kind: there is no model {kind!r}; {suggestion(kind, MODELS)}")
    module, _, name = MODELS[kind].import_path.partition(":")
    return getattr(import_module(module), name)


def model_settings(kind: str) -> dict[str, Parameter]:
    """Return the settings of a model, with defaults and types: the signature of its class."""
    return dict(signature(model_class(kind)).parameters)


def suggestion(name: str, names: Mapping[str, object]) -> str:
    near = get_close_matches(name, names, 1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
