"""Every task by name: the only table of tasks. A task is found when it is needed; no torch here."""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from regard.config.base import Config
from regard.config.errors import choice_message, classes_by_kind
from regard.config.settings import Settings
from regard.errors import InputError

if TYPE_CHECKING:
    from regard.tasks.base import AnyTaskBuilder

DEFAULT_TASK = "translate"


class TaskEntry(NamedTuple):
    """The package of a task, the class in its `settings.py`, and a line for `regard list`."""

    package: str
    settings: str
    description: str

    def settings_class(self) -> type[Settings]:
        return getattr(import_module(f"{self.package}.settings"), self.settings)

    def builder(self) -> "AnyTaskBuilder":
        return import_module(f"{self.package}.build").BUILDER


TASKS = {
    "translate": TaskEntry(
        "regard.tasks.translate",
        "TranslateSettings",
        "Translate a source text into a target text, with alignments.",
    ),
    "summarize": TaskEntry(
        "regard.tasks.summarize",
        "SummarizeSettings",
        "Write the summary of a document, and copy words from it.",
    ),
    "language": TaskEntry(
        "regard.tasks.language",
        "LanguageSettings",
        "Model a language: score texts, complete them, suggest words.",
    ),
    "chat": TaskEntry(
        "regard.tasks.chat",
        "ChatSettings",
        "Hold a conversation, about anything or about rows of a table.",
    ),
    "classify": TaskEntry(
        "regard.tasks.classify",
        "ClassifySettings",
        "Assign a class to a text or a pair of texts.",
    ),
    "tag": TaskEntry(
        "regard.tasks.tag",
        "TagSettings",
        "Label spans of words: people, places, products.",
    ),
    "understand": TaskEntry(
        "regard.tasks.tag",
        "UnderstandSettings",
        "Find the intent of a request and its slots.",
    ),
    "answer": TaskEntry(
        "regard.tasks.answer",
        "AnswerSettings",
        "Answer a question by a span of its context.",
    ),
    "pretrain": TaskEntry(
        "regard.tasks.pretrain",
        "PretrainSettings",
        "Pretrain an encoder on plain text: BERT's objectives or ELMo's.",
    ),
    "image": TaskEntry("regard.tasks.image", "ImageSettings", "Assign a class to an image."),
    "caption": TaskEntry(
        "regard.tasks.caption", "CaptionSettings", "Describe an image in a sentence."
    ),
    "music": TaskEntry(
        "regard.tasks.music",
        "MusicSettings",
        "Model and compose music: piano rolls or ABC tunes.",
    ),
    "copy": TaskEntry(
        "regard.tasks.bits", "CopySettings", "Repeat a sequence of bits after its end."
    ),
    "recall": TaskEntry(
        "regard.tasks.bits",
        "RecallSettings",
        "Recall the item that followed a given one.",
    ),
    "bandit": TaskEntry(
        "regard.tasks.bandit",
        "BanditSettings",
        "Learn to act in unknown bandits and MDPs.",
    ),
    "fewshot": TaskEntry(
        "regard.tasks.fewshot",
        "FewshotSettings",
        "Recognize classes from a few examples of each.",
    ),
    "fold": TaskEntry(
        "regard.tasks.fold",
        "FoldSettings",
        "Predict the states of a protein's residues, or their distances.",
    ),
}


@cache
def model_kinds(task: str) -> tuple[str, ...]:
    """Return the kinds of models that a task can use, as its settings name them."""
    return tuple(table_classes(task, "model"))


def table_classes(task: str, table: str) -> dict[str, type[Config]]:
    """Return the classes of a table of the settings, such as `model`, by their kind."""
    field = find_task(task).settings_class().model_fields[table]
    return dict(classes_by_kind(field.annotation))


def tasks_of_model(kind: str) -> tuple[str, ...]:
    """Return the tasks that can use a model."""
    return tuple(task for task in TASKS if kind in model_kinds(task))


def find_task(name: str) -> TaskEntry:
    """Return the entry of a task; an unknown name is an error with the nearest one."""
    if name not in TASKS:
        raise InputError(f"task: {choice_message(list(TASKS), name)}")
    return TASKS[name]


# The task of a model that was trained elsewhere, by the kind of the model.
TASK_OF_IMPORTED_MODEL = {"bert": "pretrain", "gpt2": "language", "vit": "image"}
