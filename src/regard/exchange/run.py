"""Imported folders as runs, and runs as folders."""

from pathlib import Path

from regard.config.load import resolve
from regard.exchange.folder import Imported, read_folder, write_folder
from regard.exchange.sight import Sight
from regard.text.foreign import ForeignTokeniser
from regard.text.labels import Labels
from regard.train.classify import ClassifyRun
from regard.train.fit import check_free
from regard.train.image import ImageRun
from regard.train.language import LanguageRun
from regard.train.pretrain import PretrainRun
from regard.train.run import CONFIG, Run, find

TASKS = {"bert": "pretrain", "gpt2": "language", "vit": "image"}
UNTAUGHT = ("0", "1")  # classes of an encoder that came without any


def import_run(folder: Path | str, to: Path) -> tuple[Run, tuple[str, ...]]:
    """A run of the model in a folder, with its tokeniser; and lines on what was left behind."""
    found = read_folder(folder)
    if found.kind not in TASKS:
        raise ValueError(f"{folder}: a {found.format} has no task yet that it could be run for")
    if found.seen is None:
        check_words(folder, found)
    check_free(to)
    if (to / CONFIG).is_file():
        raise ValueError(f"{to}: holds a run already; take another folder")
    if found.seen is not None:
        run = made_to_see(folder, found, found.seen)
    else:
        run = made(found)
        run.model.load_state_dict(found.weights)
    run.save(to)
    return run, found.notes


def check_words(folder: Path | str, found: Imported) -> None:
    """A tokeniser that fits the table of words."""
    if found.tokeniser is None:
        raise ValueError(*found.notes)
    rows = found.settings["size"]
    if rows != found.tokeniser.size:
        raise ValueError(
            f"{folder}: the table of words has {rows} rows, but the tokeniser knows "
            f"{found.tokeniser.size}; the rows that nobody uses must be taken out first"
        )


def made_to_see(folder: Path | str, found: Imported, seen: Sight) -> Run:
    """A classifier of pictures; an encoder alone gets two classes that nobody has taught."""
    settings = {n: v for n, v in found.settings.items() if n not in ("size", "channels")}
    side, channels = found.settings["size"], found.settings["channels"]
    reading = {"size": (side, side), "channels": channels, "fit": "stretch"}
    raw = {
        "task": "image",
        "model": {"kind": found.kind, **settings},
        "picture": {**reading, "mean": seen.mean, "std": seen.std},
        "head": {"dropout": 0.0},
    }
    if len(set(seen.labels)) < len(seen.labels):
        twice = next(name for name in seen.labels if seen.labels.count(name) > 1)
        raise ValueError(f"{folder}: two classes are called {twice!r}; give them different names")
    resolved = resolve(raw)
    run = ImageRun(resolved, {"labels": Labels(seen.labels or UNTAUGHT)})
    run.task.model.encoder.load_state_dict(found.weights)
    if seen.head:
        run.task.model.head.output.load_state_dict(seen.head)
    return run


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
    if isinstance(run, ImageRun):
        export_seer(folder, run, to)
        return
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


def export_seer(folder: Path, run: ImageRun, to: Path) -> None:
    """A classifier of pictures, with its classes and its way of reading."""
    reading, head, start = run.settings.picture, run.settings.head, run.settings.start
    other = {
        "start.lora": start.lora > 0,
        "head.hidden_dim": head.hidden_dim is not None,
        "head.pooling": head.pooling not in (None, "first"),
        "picture.size, of two sides": reading.size[0] != reading.size[1],
    }
    if apart := [name for name, is_so in other.items() if is_so]:
        raise ValueError(f"{folder}: {apart[0]} has no form of Hugging Face's")
    model = run.task.model
    settings = run.settings.model.model_dump(exclude={"kind"})
    settings |= {"size": reading.size[0], "channels": reading.channels}
    mean, std = (one * (reading.channels // len(one)) for one in (reading.mean, reading.std))
    output = dict(model.head.output.state_dict())
    seen = Sight(tuple(run.task.labels.names), output, mean, std)
    write_folder(to, "vit", settings, dict(model.encoder.state_dict()), seen=seen)
