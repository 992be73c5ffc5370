"""Imported folders as runs, and runs as folders."""

from pathlib import Path

from regard.config.load import resolve
from regard.exchange.folder import Imported, read_folder, write_folder
from regard.text.foreign import ForeignTokeniser
from regard.train.classify import ClassifyRun
from regard.train.fit import check_free
from regard.train.language import LanguageRun
from regard.train.pretrain import PretrainRun
from regard.train.run import CONFIG, Run, find

TASKS = {"bert": "pretrain", "gpt2": "language"}


def import_run(folder: Path | str, to: Path) -> tuple[Run, tuple[str, ...]]:
    """A run of the model in a folder, with its tokeniser; and lines on what was left behind."""
    found = read_folder(folder)
    if found.kind not in TASKS:
        raise ValueError(f"{folder}: a {found.format} has no task yet that it could be run for")
    if found.tokeniser is None:
        raise ValueError(*found.notes)
    rows = found.settings["size"]
    if rows != found.tokeniser.size:
        raise ValueError(
            f"{folder}: the table of words has {rows} rows, but the tokeniser knows "
            f"{found.tokeniser.size}; the rows that nobody uses must be taken out first"
        )
    check_free(to)
    if (to / CONFIG).is_file():
        raise ValueError(f"{to}: holds a run already; take another folder")
    run = made(found)
    run.model.load_state_dict(found.weights)
    run.save(to)
    return run, found.notes


def made(found: Imported) -> Run:
    settings = {name: value for name, value in found.settings.items() if name != "size"}
    raw = {"task": TASKS[found.kind], "model": {"kind": found.kind, **settings}}
    if found.kind == "gpt2":
        raw["train"] = {"context": min(128, settings["context"])}
    resolved = resolve(raw)
    return find(resolved.run)(resolved, {"text": found.tokeniser})


def export_run(folder: Path, to: Path) -> None:
    """The model of a run; of a classifier, its encoder."""
    run = Run.load(folder)
    kind = run.settings.model.kind
    if kind not in TASKS:
        known = ", ".join(TASKS)
        raise ValueError(f"{folder}: a {kind} has no form of Hugging Face's; there are {known}")
    text = run.vocabularies["text"]
    if not isinstance(text, ForeignTokeniser):
        text = ForeignTokeniser.of(text, mask=kind == "bert")
    settings = run.settings.model.model_dump(exclude={"kind"})
    match run:
        case PretrainRun() | LanguageRun():
            model = run.model
        case ClassifyRun():
            if run.settings.start.lora:
                raise ValueError(f"{folder}: its weights are apart (lora), which has no form there")
            model = run.task.model.encoder
        case _:
            raise ValueError(f"{folder}: task {run.settings.task} has no form of Hugging Face's")
    size = len(model.words.weight)
    write_folder(to, kind, {**settings, "size": size}, dict(model.state_dict()), text)
