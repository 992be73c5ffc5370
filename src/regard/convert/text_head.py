"""Heads of text encoders as transformers writes them: for sequences, tokens and answers."""

from collections.abc import Mapping
from typing import NamedTuple

from torch import Tensor

from regard.errors import InputError
from regard.files import JsonObject
from regard.tasks.exportable import ExportableHead


class HeadFormat(NamedTuple):
    """A class of transformers, and the name of its head."""

    architecture: str
    prefix: str
    has_pooler: bool


HEAD_FORMATS = {  # by `outputs` of an `ExportableHead`
    "sequence": HeadFormat("BertForSequenceClassification", "classifier", True),
    "tokens": HeadFormat("BertForTokenClassification", "classifier", False),
    "spans": HeadFormat("BertForQuestionAnswering", "qa_outputs", False),
}
HEAD_PREFIXES = tuple(sorted({f"{item.prefix}." for item in HEAD_FORMATS.values()}))
PRETRAINING_WEIGHTS = ("guess.", "guess_norm.", "following.", "words.bias")


def head_config(head: ExportableHead) -> JsonObject:
    """Return the part of config.json about the head."""
    if head.outputs == "sequence" and len(head.labels) < 2:
        raise InputError("a classifier with one class cannot be exported; it has nothing to choose")
    config: JsonObject = {"architectures": [HEAD_FORMATS[head.outputs].architecture]}
    if head.outputs != "spans":
        config |= {
            "id2label": {str(number): label for number, label in enumerate(head.labels)},
            "label2id": {label: number for number, label in enumerate(head.labels)},
        }
    if head.outputs == "sequence":
        config["problem_type"] = "single_label_classification"
    return config


def head_tensors(head: ExportableHead) -> dict[str, Tensor]:
    prefix = HEAD_FORMATS[head.outputs].prefix
    return {f"{prefix}.weight": head.weight.detach(), f"{prefix}.bias": head.bias.detach()}


def encoder_weights(head: ExportableHead, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights that the class of this head has."""
    unused = PRETRAINING_WEIGHTS
    if not HEAD_FORMATS[head.outputs].has_pooler:
        unused = (*unused, "pooler.")
    return {name: tensor for name, tensor in weights.items() if not name.startswith(unused)}


def pop_text_head(tensors: dict[str, Tensor]) -> tuple[str, ...]:
    """Remove the tensors of a head, and return their names."""
    names = tuple(sorted(name for name in tensors if name.startswith(HEAD_PREFIXES)))
    for name in names:
        del tensors[name]
    return names
