"""[model] says what the constructors take: the same names, the same defaults, no more, no less."""

from inspect import Parameter
from typing import Literal, get_args, get_origin

import pytest

from regard.attention.catalogue import NORMALIZERS, SCORES
from regard.config.models.model_fields import SampledNormalizerName, ScoreName
from regard.models.catalogue import MODELS, build_model, model_settings
from regard.tasks.catalogue import TASKS, table_classes, tasks_of_model
from regard.tasks.load import parse_settings

KINDS = {kind: table for task in TASKS for kind, table in table_classes(task, "model").items()}
SIZES = {"source_size", "target_size", "size", "channels", "features", "steps"}


def test_every_model_has_one_table():
    assert set(KINDS) == set(MODELS)
    for task in TASKS:
        for kind, table in table_classes(task, "model").items():
            assert KINDS[kind] is table


@pytest.mark.parametrize("kind", MODELS)
def test_fields_are_the_keywords(kind):
    keywords = {name: p for name, p in model_settings(kind).items() if name not in SIZES}
    fields = {name: f for name, f in KINDS[kind].model_fields.items() if name != "kind"}
    assert list(fields) == list(keywords)
    for name, parameter in keywords.items():
        assert parameter.kind is Parameter.KEYWORD_ONLY
        assert fields[name].default == parameter.default, name
        assert type(fields[name].default) is type(parameter.default), name
        assert choices(fields[name].annotation) >= choices(parameter.annotation), name


def choices(annotation):
    if get_origin(annotation) is Literal:
        return set(get_args(annotation))
    return set().union(*(choices(part) for part in get_args(annotation)))


def test_choices_are_no_more_than_there_are():
    assert set(get_args(ScoreName)) == set(SCORES)
    assert set(get_args(SampledNormalizerName)) == set(NORMALIZERS)
    for kind in MODELS:
        for name, parameter in model_settings(kind).items():
            if name not in SIZES and choices(parameter.annotation):
                field = KINDS[kind].model_fields[name]
                assert choices(field.annotation) == choices(parameter.annotation)


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_is_built_from_its_table(kind):
    patch = "patch_size = 1\n" if "patch_size" in KINDS[kind].model_fields else ""
    heads = "heads = 2\n" if "heads" in KINDS[kind].model_fields else ""
    task = tasks_of_model(kind)[0]
    text = {
        "pointer": "text = { joint = true }\n",
        "bidaf": 'text = { kind = "words" }\n',
        "bilstm_crf": 'text = { kind = "words" }\n',
        "elmo": 'text = { kind = "words" }\n',
    }.get(kind, "")
    small = parse_settings(
        f'task = "{task}"\n{text}[model]\nkind = "{kind}"\ndim = 8\n{heads}{patch}'
    ).model
    sizes = dict.fromkeys(SIZES & set(model_settings(kind)), 9)
    made = build_model(kind, {**sizes, **small.model_dump(exclude={"kind"})})
    assert sum(weight.numel() for weight in made.parameters()) > 0
