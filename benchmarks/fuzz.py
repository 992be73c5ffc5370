"""Give damaged files to every reader: each is read, or refused in one line.

    python benchmarks/fuzz.py [--files 5000] [--folders 1000] [--settings 1000] [--seed 0]

Small valid files of every format are changed at random: bytes are flipped, removed, repeated or
inserted, and values in JSON are replaced by those of another type. The folders are runs and a
model of Hugging Face, with checksums that fit; a run is also asked for a prediction. Settings are
changed by fuzz_settings.py. Anything but an `InputError` or an `OSError` is a failure. The longest
time and the memory are printed. Exits with 1 after a failure, after more than 10 s for one input,
or more than 2 GB.
"""

import argparse
import faulthandler
import gzip
import io
import json
import random
import resource
import shutil
import sqlite3
import sys
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from fuzz_settings import report_settings
from PIL import Image

from regard.data.database import Database
from regard.data.formats.abc_files import AbcFiles
from regard.data.formats.captions import CaptionFiles
from regard.data.formats.class_folders import ClassFolders
from regard.data.formats.dialogues import DialogueFiles
from regard.data.formats.documents import DocumentFiles
from regard.data.formats.image_files import ImageFiles
from regard.data.formats.images import ImageReader, image_size
from regard.data.formats.labeled_texts import LabeledTextFiles
from regard.data.formats.piano_rolls import PianoRollFiles
from regard.data.formats.proteins import ProteinFiles
from regard.data.formats.questions import QuestionFiles
from regard.data.formats.summaries import SummaryFiles
from regard.data.formats.tagged_texts import TaggedTextFiles
from regard.data.formats.text_pairs import TextPairFiles
from regard.data.synthetic.points import DistanceFiles
from regard.errors import InputError
from regard.files import digest_file
from regard.manifest import MANIFEST_FILE, Manifest, read_manifest
from regard.metrics.alignment_files import read_gold, read_links
from regard.tasks.load import load_settings
from regard.text.labels import Labels
from regard.text.special_ids import load_tokenizer
from regard.text.train import train_tokenizer
from regard.training.log import read_log
from regard.view.attention_map import AttentionMap

MAX_SECONDS, MAX_BYTES = 10.0, 2 << 30
PRINTED_FAILURES = 20
PIECES = [
    b"\x00", b"\xef\xbb\xbf", b"\xff\xfe", b"\\ud800", b"NaN", b"1e999", b"-1", b"9" * 40,
    b"9" * 5_000, b"[" * 3_000, b'{"a":' * 3_000, b"null", b'""', b"{}", b"[]", b"\r", b"\n", b"\t",
    b"\n\n", b"\x1b[2J", "\u202e".encode(), b"=", b'"', b",", b"|", b">", b"x" * 200_000,
]  # fmt: skip
DEEP: list[object] = []
for _ in range(150):
    DEEP = [DEEP]
VALUES: list[object] = [
    *(None, True, False, 0, -1, 5, 10**18, 10**40, 0.5, 1e308, float("nan"), float("inf")),
    *("", " ", "x", "\ud800", "a\nb", "\x00", "../../etc", [], [[]], [None], {}, {"a": 1}, DEEP),
]


class Reader(NamedTuple):
    """Valid files by name, and a function that reads all of a folder with them."""

    name: str
    files: dict[str, bytes]
    read: Callable[[Path], object]


def mutate(data: bytes, chance: random.Random) -> bytes:
    """Return data with one to four random changes."""
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        data = mutate_json(data, chance) if chance.random() < 0.5 else mutate_bytes(data, chance)
    return data


def mutate_bytes(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data) + 1)
    end = min(len(data), start + chance.choice((1, 2, 5, 20, 100)))
    match chance.randrange(6):
        case 0:
            return (
                data[:start]
                + bytes(b ^ 1 << chance.randrange(8) for b in data[start:end][:1])
                + data[start + 1 :]
            )
        case 1:
            return data[:start] + data[end:]
        case 2:
            return data[:start] + chance.randbytes(chance.randrange(1, 9)) + data[start:]
        case 3:
            return data[:end] + data[start:end] * chance.choice((1, 3, 50)) + data[end:]
        case 4:
            return data[:start]
        case _:
            return data[:start] + chance.choice(PIECES) + data[start:]


def mutate_json(data: bytes, chance: random.Random) -> bytes:
    """Replace, remove or rename a value of a JSON text, or of one of its lines."""
    lines = data.split(b"\n")
    for candidate in ([data], lines):
        number = chance.randrange(len(candidate))
        try:
            value = json.loads(candidate[number])
        except (ValueError, RecursionError):
            continue
        places = list(json_places(value))
        if not places:
            return json.dumps(chance.choice(VALUES)).encode()
        container, key = chance.choice(places)
        match chance.randrange(4):
            case 0:
                del container[key]
            case 1 if isinstance(container, dict):
                container[f"{key}x"] = container.pop(key)
            case _:
                container[key] = chance.choice(VALUES)
        text = json.dumps(value).encode()
        return (
            text
            if candidate is not lines
            else b"\n".join([*lines[:number], text, *lines[number + 1 :]])
        )
    return mutate_bytes(data, chance)


def json_places(value: object) -> Iterator[tuple[dict | list, str | int]]:
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, child in list(items):
        yield value, key  # type: ignore[misc]
        if child is not DEEP:
            yield from json_places(child)


# --- readers of data


def lines(*texts: str) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode()


def json_lines(*values: object) -> bytes:
    return lines(*(json.dumps(value) for value in values))


def png(side: int = 6, format: str = "PNG") -> bytes:  # noqa: A002
    buffer = io.BytesIO()
    pixels = np.arange(side * side * 3, dtype=np.uint8).reshape(side, side, 3)
    Image.fromarray(pixels).save(buffer, format)
    return buffer.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def sqlite_bytes() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder, "a.sqlite"))
        connection.execute("CREATE TABLE places (name TEXT, food TEXT)")
        connection.executemany(
            "INSERT INTO places VALUES (?, ?)", [("hut", "thai"), ("inn", "pub")]
        )
        connection.commit()
        connection.close()
        return Path(folder, "a.sqlite").read_bytes()


def read_all(corpus: object) -> None:
    """Read all splits of a corpus; decode its images."""
    decode = ImageReader((4, 4), 1)
    for split in corpus.splits:  # type: ignore[attr-defined]
        for record in corpus.read(split):  # type: ignore[attr-defined]
            if "image" in record:
                decode(record["image"])
                image_size(record["image"])


def corpus_reader(
    name: str, corpus_class: Callable[..., object], files: dict[str, bytes], **options: object
) -> Reader:
    """A reader of a corpus whose first file is its training data; options may name files by {}."""
    train = options.pop("train", next(iter(files)))

    def inside(folder: Path, value: object) -> object:
        if isinstance(value, list):
            return [inside(folder, item) for item in value]
        return str(folder / value) if isinstance(value, str) and value in names else value

    names = {*files, ".", "a"}
    held_out = {} if "held_out" in options else {"held_out": 0.0}
    return Reader(
        name,
        files,
        lambda folder: read_all(
            corpus_class(
                inside(folder, train),
                **{**held_out, **{k: inside(folder, v) for k, v in options.items()}},
            )
        ),
    )


EXCHANGES = {
    "exchanges": [{"user": "thai?", "wishes": {"food": "thai"}, "reply": "hut"}],
    "goal": {"food": "thai"},
}
COCO = {
    "images": [{"id": 1, "file_name": "1.png"}],
    "annotations": [{"image_id": 1, "caption": "a dot"}],
}
SQUAD = {
    "data": [
        {"paragraphs": [{"context": "Ada met Bob.", "qas": [
            {"id": "1", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 0}]},
            {"id": "2", "question": "Why?", "answers": [], "is_impossible": True},
        ]}]}
    ]
}  # fmt: skip
TUNES = lines("X:1", "T:a", "M:4/4", "L:1/8", "K:G", "GABc d2|", "", "X:2", "K:C", "cde|")


def data_readers() -> list[Reader]:
    pairs = lines("a b\tc d", "e\tf", "g h\ti")
    objects = json_lines(*({"source": a, "target": b} for a, b in ("ab", "cd", "ef")))
    labeled = [{"text": "good day", "label": "pos"}, {"text": "bad day", "label": 3}]
    tokens = [{"tokens": ["Ada", "met"], "tags": ["B-PER", "O"], "intent": "x"}]
    spans = [{"text": "Ada met Bob.", "spans": [{"start": 0, "end": 3, "label": "PER"}]}]
    idx = bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 4]) + bytes(range(32))
    folders = {f"{c}/{n}.png": png(5 + n) for c in "ab" for n in range(3)}
    proteins = [{"sequence": "ACDE", "states": "HHEC", "alignment": ["ACDE", "A-DE"]}]
    points = [
        {"points": [[0, 1, 2], [1, 2, 3.5]], "sequence": "AC"},
        {"distances": [[0, 3], [3, 0]]},
    ]
    table = lines("name,food", "hut,thai", "inn,pub")
    rows = json.dumps([{"name": "hut", "food": "thai"}, {"name": "inn", "food": "pub"}]).encode()
    slots = {"slot_columns": ("food",)}
    dialogue = json_lines(EXCHANGES, EXCHANGES)
    few = {"ways": 2, "shots": 1, "image_size": (4, 4), "eval_episodes": 2, "held_out": 0.0}
    readers = [
        corpus_reader("tsv", TextPairFiles, {"a.tsv": pairs}),
        corpus_reader("gzip", TextPairFiles, {"a.tsv.gz": gzip.compress(pairs)}),
        corpus_reader(
            "parallel",
            TextPairFiles,
            {"a.en": lines("a", "b"), "a.de": lines("c", "d")},
            train=["a.en", "a.de"],
        ),
        corpus_reader("jsonl", TextPairFiles, {"a.jsonl": objects}),
        corpus_reader("labeled tsv", LabeledTextFiles, {"a.tsv": lines("good\tpos", "bad\tneg")}),
        corpus_reader("labeled csv", LabeledTextFiles, {"a.csv": lines('"a, b",pos', "bad,neg")}),
        corpus_reader(
            "labeled header",
            LabeledTextFiles,
            {"a.csv": lines("t,l", "good,pos", "bad,neg")},
            fields={"text": "t", "label": "l"},
        ),
        corpus_reader("labeled jsonl", LabeledTextFiles, {"a.jsonl": json_lines(*labeled)}),
        corpus_reader(
            "labeled folder",
            LabeledTextFiles,
            {"a/x/1.txt": b"one", "a/y/1.txt": b"two"},
            train="a",
            format="folder",
        ),
        corpus_reader(
            "conll", TaggedTextFiles, {"a.conll": lines("Ada\tB-PER", "met\tO", "", "Bob\tB-PER")}
        ),
        corpus_reader("tokens", TaggedTextFiles, {"a.jsonl": json_lines(*tokens)}),
        corpus_reader("spans", TaggedTextFiles, {"a.jsonl": json_lines(*spans)}),
        corpus_reader(
            "tag folder",
            TaggedTextFiles,
            {"a/seq.in": b"a b\n", "a/seq.out": b"O O\n", "a/label": b"x\n"},
            train="a",
        ),
        corpus_reader(
            "summaries",
            SummaryFiles,
            {"a.jsonl": json_lines({"document": "a b", "summary": ["a", "b"]})},
        ),
        corpus_reader("squad", QuestionFiles, {"a.json": json.dumps(SQUAD).encode()}),
        corpus_reader(
            "questions",
            QuestionFiles,
            {
                "a.jsonl": json_lines(
                    {
                        "question": "who",
                        "context": "Ada.",
                        "answers": {"text": ["Ada"], "answer_start": [0]},
                    }
                )
            },
        ),
        corpus_reader(
            "dialogues txt", DialogueFiles, {"a.txt": lines("hello", "hi", "", "bye", "bye")}
        ),
        corpus_reader(
            "dialogues",
            DialogueFiles,
            {"a.jsonl": json_lines({"turns": ["hi", "ho"]}, {"turns": ["a", "b"]})},
        ),
        corpus_reader(
            "exchanges",
            DialogueFiles,
            {"a.jsonl": dialogue, "b.json": rows},
            database="b.json",
            **slots,
        ),
        corpus_reader(
            "database csv",
            DialogueFiles,
            {"a.jsonl": dialogue, "b.csv": table},
            database="b.csv",
            **slots,
        ),
        corpus_reader(
            "database sqlite",
            DialogueFiles,
            {"a.jsonl": dialogue, "b.sqlite": sqlite_bytes()},
            database="b.sqlite",
            **slots,
        ),
        corpus_reader(
            "captions",
            CaptionFiles,
            {"a.jsonl": json_lines({"image": "1.png", "caption": ["a", "b"]}), "1.png": png()},
        ),
        corpus_reader("coco", CaptionFiles, {"a.json": json.dumps(COCO).encode(), "1.png": png()}),
        corpus_reader(
            "image folder",
            ImageFiles,
            {
                **{f"a/{n}": d for n, d in folders.items()},
                "a/a/x.jpg": png(format="JPEG"),
                "a/b/y.gif": png(format="GIF"),
            },
            train="a",
        ),
        corpus_reader(
            "image table",
            ImageFiles,
            {"a.csv": lines("1.png,x", "2.tif,y"), "1.png": png(), "2.tif": png(format="TIFF")},
        ),
        corpus_reader(
            "idx",
            ImageFiles,
            {"a": idx, "b": bytes([0, 0, 8, 1, 0, 0, 0, 2, 1, 2])},
            train=["a", "b"],
            format="idx",
        ),
        corpus_reader(
            "rolls",
            PianoRollFiles,
            {"a.json": json.dumps({"train": [[[60, 64], []]], "valid": [[[61]]]}).encode()},
        ),
        corpus_reader("roll lines", PianoRollFiles, {"a.jsonl": json_lines([[60, 64], [], [62]])}),
        corpus_reader("abc", AbcFiles, {"a.abc": TUNES}),
        corpus_reader(
            "fasta", ProteinFiles, {"a.fasta": lines(">1", "ACDE", "HHEC", ">2", "AC", "HH")}
        ),
        corpus_reader("protein lines", ProteinFiles, {"a.jsonl": json_lines(*proteins)}),
        corpus_reader(
            "protein table", ProteinFiles, {"a.csv": lines("sequence,states", "ACDE,HHEC")}
        ),
        corpus_reader("distances", DistanceFiles, {"a.jsonl": json_lines(*points)}),
        corpus_reader(
            "documents", DocumentFiles, {"a.txt": lines("one two", "", "three")}, unit="paragraph"
        ),
        Reader(
            "class zip",
            {"a.zip": zipped(folders)},
            lambda folder: ClassFolders(folder / "a.zip", **few).class_images("train"),
        ),  # type: ignore[arg-type]
        Reader("links", {"a": lines("0-0 1-2", "1-1")}, lambda folder: read_links(folder / "a")),
        Reader(
            "gold", {"a": lines("1-1 2p3", "1-2")}, lambda folder: read_gold(folder / "a", base=1)
        ),
        Reader(
            "labels",
            {"labels.json": b'["a", "b"]'},
            lambda folder: Labels.load(folder / "labels.json"),
        ),
        Reader(
            "database",
            {"a.json": json.dumps({"asked": ["food"], "rows": json.loads(rows)}).encode()},
            lambda folder: Database.load(folder / "a.json"),
        ),
        Reader(
            "log",
            {
                "log.jsonl": json_lines(
                    {"kind": "step", "number": 1, "loss": 2.5},
                    {"kind": "dev", "step": 1, "loss": 2.0},
                )
            },
            read_log,
        ),
        Reader(
            "settings",
            {"a.toml": SETTINGS.encode()},
            lambda folder: load_settings(folder / "a.toml"),
        ),
        *map_readers(),
        *tokenizer_readers(),
    ]
    return readers + parquet_readers()


SETTINGS = """task = "translate"
seed = 3
[data]
kind = "files"
train = ["a.en", "a.de"]
columns = ["source", "target"]
[model]
kind = "transformer"
dim = 16
heads = 2
[train]
steps = 5
[train.optimizer]
kind = "adam"
[decode]
kind = "beam"
width = 3
"""


def map_readers() -> Iterator[Reader]:
    attention = AttentionMap({"one": [[[0.5, 0.5]]]}, ["a"], ["b", "c"], title="t")
    for suffix in (".json", ".npz"):
        with tempfile.TemporaryDirectory() as folder:
            attention.save(Path(folder, f"a{suffix}"))
            data = Path(folder, f"a{suffix}").read_bytes()
        yield Reader(
            f"map {suffix}",
            {f"a{suffix}": data},
            lambda folder, s=suffix: AttentionMap.load(folder / f"a{s}"),
        )


def tokenizer_readers() -> Iterator[Reader]:
    for kind in ("words", "byte_bpe", "unigram"):
        data = train_tokenizer(kind, ["one two three four", "two three"], 290).to_json().encode()
        yield Reader(
            f"tokenizer {kind}",
            {"a.json": data},
            lambda folder: load_tokenizer(folder / "a.json").encode("two \u00fc one"),
        )


def parquet_readers() -> list[Reader]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        return []
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"source": ["a", "b"], "target": ["c", "d"]}), buffer)
    return [corpus_reader("parquet", TextPairFiles, {"a.parquet": buffer.getvalue()})]


# --- readers of runs and models


def folder_readers(work: Path) -> list[Reader]:
    """Runs of three tasks, and a model of Hugging Face; they are trained for one step."""
    import regard

    encoder = {"kind": "bert", "dim": 8, "heads": 2, "layers": 1, "max_positions": 16}
    data: dict[str, tuple[list[dict[str, object]], dict[str, object]]] = {
        "translate": (
            [{"source": "one two", "target": "1 2"}],
            {"kind": "transformer", "dim": 8, "heads": 2, "layers": 1},
        ),
        "classify": ([{"text": "good", "label": "a"}, {"text": "bad", "label": "b"}], encoder),
        "pretrain": ([{"text": "one two three. two three four."}], encoder),
    }
    readers = []
    for task, (records, model) in data.items():
        folder = work / task
        regard.fit(task, records * 6, model, steps=1, folder=folder, progress=False)
        readers.append(Reader(f"run {task}", folder_files(folder), read_run))
    regard.export_run(work / "pretrain", work / "hub")
    readers.append(Reader("hub", folder_files(work / "hub"), read_model))
    return readers


def folder_files(folder: Path) -> dict[str, bytes]:
    """The files of a folder, without its data and checkpoints."""
    return {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.name.startswith(".")
    }


def read_run(folder: Path) -> None:
    import regard

    if MANIFEST_FILE in {path.name for path in folder.iterdir()}:
        try:
            manifest = read_manifest(folder)
        except InputError:
            pass
        else:
            files = {n: digest_file(folder / n) for n in manifest.files if (folder / n).is_file()}
            Manifest(files, manifest.facts).write(folder)
    run = regard.load(str(folder))
    read_log(folder)
    run.predict(["one [MASK] two"])


def read_model(folder: Path) -> None:
    import regard

    regard.import_run(folder, folder / "imported", on_message=lambda _: None)


# --- trying


class Trial(NamedTuple):
    reader: str
    seconds: float
    outcome: str  # read, refused, or the traceback
    file: str


def try_mutations(readers: list[Reader], count: int, seed: int) -> Iterator[Trial]:
    """Yield what happens to `count` mutated inputs, the readers in turn."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as work:
        for number in range(count):
            reader, folder = readers[number % len(readers)], Path(work, str(number))
            changed = chance.choice(sorted(reader.files))
            for name, data in reader.files.items():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(mutate(data, chance) if name == changed else data)
            started = time.monotonic()
            outcome = try_reader(reader, folder)
            yield Trial(reader.name, time.monotonic() - started, outcome, changed)
            shutil.rmtree(folder)


def try_reader(reader: Reader, folder: Path) -> str:
    faulthandler.dump_traceback_later(3 * MAX_SECONDS, exit=True)  # it hangs
    try:
        reader.read(folder)
    except (InputError, OSError) as error:
        return "refused" if "\n" not in str(error) else f"more than one line: {error}"
    except Exception:
        return traceback.format_exc()
    finally:
        faulthandler.cancel_dump_traceback_later()
    return "read"


def report(title: str, trials: Iterator[Trial]) -> bool:
    """Print the outcomes; return whether all were read or refused in time."""
    outcomes, slowest, failures = {"read": 0, "refused": 0}, Trial("", 0.0, "", ""), 0
    for trial in trials:
        slowest = max(slowest, trial, key=lambda t: t.seconds)
        if trial.outcome in outcomes:
            outcomes[trial.outcome] += 1
            continue
        failures += 1
        if failures <= PRINTED_FAILURES:
            print(f"--- {trial.reader}, {trial.file}\n{trial.outcome}", file=sys.stderr)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        f"{title}: {outcomes['read']} read, {outcomes['refused']} refused, {failures} failures; "
        f"slowest {slowest.seconds:.2f} s ({slowest.reader}); memory at most {memory >> 20} MB"
    )
    return not failures and slowest.seconds <= MAX_SECONDS and memory <= MAX_BYTES


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--folders", type=int, default=1000)
    parser.add_argument("--settings", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    is_good = report("files", try_mutations(data_readers(), options.files, options.seed))
    with tempfile.TemporaryDirectory() as work:
        readers = folder_readers(Path(work)) if options.folders else []
        if readers:
            is_good &= report("folders", try_mutations(readers, options.folders, options.seed))
    is_good &= report_settings(options.settings, options.seed) if options.settings else True
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
