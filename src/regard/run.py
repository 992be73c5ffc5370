"""A run: a trained model with its task, vocabularies and settings, in one folder.

config.toml  weights.safetensors  manifest.json, and NAME.json for each vocabulary
"""

import platform
import shutil
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

import regard
from regard.batching.device import find_device
from regard.config.base import DataConfig
from regard.config.dump import dumps
from regard.config.settings import Settings
from regard.data.build import build_corpus
from regard.data.corpus import SPLITS, Corpus, CorpusRecord, Record, check_split
from regard.data.records import RecordData, matches_fields, to_records, write_records
from regard.decoding.replicas import replica_count
from regard.errors import InputError
from regard.files import FileDigest, JsonObject, draft_path, explain_write_errors, write_synced
from regard.kernels.int8 import HAS_INT8, mark_int8
from regard.kernels.linear import release_packed_weights
from regard.manifest import (
    DamagedFileError,
    Manifest,
    digests_to_json,
    read_manifest,
    replace_files,
)
from regard.tasks.automatic import resolve_text
from regard.tasks.base import AnyTask, Metrics, Prediction, ProgressCallback
from regard.tasks.catalogue import find_task, table_classes
from regard.tasks.engine_choice import EngineName, check_engine_name, use_engine
from regard.tasks.load import load_settings, override_settings
from regard.tasks.protocols import TextEmbedder
from regard.tasks.run_folder import (
    CONFIG_FILE,
    WEIGHTS_FILE,
    check_run_files,
    to_portable,
    verify_weights,
)
from regard.tasks.run_weights import (
    SkipInitialization,
    check_settings_limits,
    check_weights,
    read_weights,
)
from regard.tasks.tensor_file import write_tensors
from regard.view.attention_map import AttentionMap

if TYPE_CHECKING:
    from regard.batch_prediction.file_prediction import FileSummary

SERVER_PACKAGES = ("fastapi", "uvicorn", "prometheus_client", "py3langid")
Input = str | Record
"""A line of text as the command line takes it, or a record with the fields of the task's data."""


class Run:
    """A model with its task, vocabularies and settings: it predicts, scores and shows attention.

    `regard.fit` trains a run, `regard.load` loads one. Several threads may use a run at once. The
    examples of the methods use the run of the example of `regard.fit`.

    >>> import regard
    >>> run = regard.load("runs/numbers")
    >>> run.settings.task, run.settings.model.kind
    ('translate', 'rnnsearch')
    """

    task: AnyTask

    def __init__(
        self, settings: Settings, vocabularies: Mapping[str, Any], model: nn.Module | None = None
    ):
        """Build the task of the settings around `model`, or around a new one.

        The weights of a new model depend on `settings.seed` alone. torch's global random generator
        is left as it was.
        """
        self.settings, self.vocabularies = settings, dict(vocabularies)
        self.state_after_weights: Tensor | None = None
        model = self.draw_model() if model is None else model
        self.task = find_task(settings.task).builder().build_task(settings, vocabularies, model)
        self.weights_path: Path | None = None  # where the weights were read from
        self.chosen_engine: EngineName = "built-in"
        self.is_int8 = False

    @property
    def model(self) -> Any:
        return self.task.model

    @classmethod
    def create(cls, settings: Settings, corpus: Corpus) -> "Run":
        """Return an untrained run, with vocabularies from the training data."""
        builder = find_task(settings.task).builder()
        settings = resolve_text(builder.resolve_settings(settings), corpus)
        run = cls(settings, builder.build_vocabularies(settings, corpus))
        builder.load_pretrained(settings, run.model)
        return run

    def draw_model(self) -> nn.Module:
        """Return a new model of the settings, with random weights."""
        builder = find_task(self.settings.task).builder()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.settings.seed)
            model = builder.build_model(self.settings, self.vocabularies)
            self.state_after_weights = torch.get_rng_state()
        return model

    @property
    def random_state(self) -> Tensor:
        """The state of the random generator after the weights: the draws of a run continue there.

        Loading a run draws no weights, so they are drawn when this is asked for.
        """
        if self.state_after_weights is None:
            self.draw_model()
        return cast("Tensor", self.state_after_weights)

    # --- inference

    def __call__(self, item: Input) -> Prediction:
        """Return the prediction for one line of text or one record.

        >>> run = regard.load("runs/numbers")
        >>> run("one two") == run.predict(["one two"])[0]
        True
        """
        return self.predict([item])[0]

    def predict(
        self,
        items: Sequence[Input],
        *,
        location: str = "input {}",
        on_progress: ProgressCallback | None = None,
    ) -> list[Prediction]:
        """Return a prediction for each line of text or record, in order.

        A record has the fields of the task's data; its target is not read. `location` names the
        n-th input in error messages. `on_progress` is called with the number of finished inputs.

        >>> run = regard.load("runs/numbers")
        >>> [type(prediction.text) for prediction in run.predict(["one two", {"source": "two"}])]
        [<class 'str'>, <class 'str'>]
        """
        return list(self.task.predict(self.records(items, location), on_progress=on_progress))

    def records(self, items: Sequence[Input], location: str = "input {}") -> list[Record]:
        """Convert lines of text to records; records stay as they are."""
        return [
            self.task.parse(item, location.format(number)) if isinstance(item, str) else item
            for number, item in enumerate(items, 1)
        ]

    def predict_files(
        self,
        inputs: Path | str,
        output: Path | str,
        *,
        workers: int | None = None,
        ray: bool = False,
        prefix: str | None = None,
        as_json: bool = False,
        progress: bool = True,
    ) -> "FileSummary":
        """Predict for each row of a file or folder, and write files of the same names to `output`.

        Inputs are lines of text, JSON lines or Parquet. Several processes, by default one for each
        core, work in bounded memory. A call that was interrupted is continued by the same call.
        `regard predict --input` is the same, and docs/batch-prediction.md describes it.

        >>> run, lines = regard.load("runs/numbers"), Path("lines.txt")
        >>> _ = lines.write_text("one two\\ntwo\\n")
        >>> run.predict_files(lines, "answers", workers=1, progress=False)
        FileSummary(rows=2, faults=0)
        >>> len(Path("answers/lines.txt").read_text().splitlines())
        2
        """
        # Batch prediction stands above this module, and most programs never need it.
        return import_module("regard.batch_prediction.file_prediction").predict_run_files(
            self,
            Path(inputs),
            Path(output),
            workers=workers,
            ray=ray,
            prefix=prefix,
            as_json=as_json,
            progress=progress,
        )

    def score(
        self,
        data: str | RecordData = "test",
        *,
        on_progress: ProgressCallback | None = None,
    ) -> Metrics:
        """Return the standard metrics of the task on a split of the run's data, or on records.

        Records are a list of dicts, a pandas DataFrame or a Dataset, as for `regard.fit`.

        >>> run = regard.load("runs/numbers")
        >>> scores = run.score([{"source": "one two", "target": "1 2"}])
        >>> sorted(scores)[:3]
        ['bleu', 'bleu_signature', 'chrf']
        """
        if isinstance(data, str):
            return self.task.score(self.read_split(data), on_progress=on_progress)
        with self.corpus_records(data) as records:
            return self.task.score(records, on_progress=on_progress)

    @contextmanager
    def corpus_records(self, data: RecordData) -> Generator[list[Record]]:
        """Read records as a corpus of the task would, and check them; others stay as they are.

        Records of `read_split` are complete already; files lack a part of them, such as boxes.
        """
        records = to_records(data)
        if isinstance(data, Sequence) and all(isinstance(item, CorpusRecord) for item in data):
            yield records
            return
        tables = table_classes(self.settings.task, "data").values()
        for table in tables:
            if issubclass(table, DataConfig) and matches_fields(table, records[0]):
                with TemporaryDirectory() as folder:
                    values = write_records({"train": records}, table, Path(folder, "data"))
                    values |= {"held_out": 0.0} if "held_out" in table.model_fields else {}
                    yield list(build_corpus(table(**values)).read("train"))
                return
        yield records

    def attention(self, item: Input, target: str | None = None) -> AttentionMap:
        """Return the attention of every layer and head for one line of text or one record.

        `target` is an output to show instead of the model's own, for tasks that write text.

        >>> run = regard.load("runs/numbers")
        >>> attention = run.attention("one two", target="1 2")
        >>> attention.layers[0].weights.shape          # heads, queries, keys
        (1, 3, 3)
        >>> attention.save("attention.html")
        """
        if target is not None and not self.task.accepts_target:
            raise InputError(f"target: the task {self.task.name} does not write text; leave it out")
        return self.task.attention_map(self.records([item], "input")[0], target)

    def embed(self, texts: Sequence[str]) -> Float[np.ndarray, "n d"]:
        """Return one vector for each text, from the encoder of this run.

        The table [vectors] of the settings decides the pooling. It is that of the model card for an
        imported model.

        >>> run = regard.fit(
        ...     "classify",
        ...     [{"text": f"a {word} film", "label": word} for word in ("good", "bad")] * 4,
        ...     {"kind": "bert", "dim": 8, "heads": 2, "layers": 1},
        ...     steps=1,
        ...     folder="runs/films",
        ...     progress=False,
        ... )
        >>> run.embed(["a good film", "a bad film", "a film"]).shape
        (3, 8)
        """
        if not isinstance(self.task, TextEmbedder):
            raise InputError(
                f"task {self.task.name}: has no vectors of texts; use a run with a text encoder, "
                "such as an imported BERT"
            )
        return self.task.embed(texts)

    def corpus(self) -> Corpus:
        """Return the data set of the settings."""
        return build_corpus(self.settings.data)

    def read_split(self, split: str, corpus: Corpus | None = None) -> list[Record]:
        """Return the records of a split of the data, or of another corpus: train, dev or test."""
        corpus = self.corpus() if corpus is None else corpus
        if split in SPLITS and split not in corpus.splits:
            can_add = split in type(self.settings.data).model_fields
            raise InputError(
                f"data: has no split {split!r}, but {', '.join(corpus.splits)}; give one of these "
                f"(--split {corpus.splits[-1]})"
                + (f", or a file (--set data.{split}=FILE)" if can_add else "")
            )
        check_split(split, corpus.splits)
        return [CorpusRecord(record) for record in corpus.read(split)]

    def override(self, overrides: Sequence[str]) -> "Run":
        """Return the same model under changed settings.

        >>> run = regard.load("runs/numbers")
        >>> run.override(["decode.width=10"]).settings.decode.width
        10
        """
        if not overrides:
            return self
        settings = override_settings(self.settings, overrides)
        run = Run(settings, self.vocabularies, self.model)
        run.task.replicas = self.task.replicas
        run.weights_path, run.is_int8 = self.weights_path, self.is_int8
        return run.use_engine(self.chosen_engine)

    @property
    def device(self) -> str:
        """The device that computes: cpu, cuda:0 or mps."""
        return str(self.task.device)

    def use_device(self, name: str) -> "Run":
        """Compute on another device from now on; return this run.

        The name is cpu, cuda, cuda:1 or mps; auto is the first of cuda, mps and cpu that this
        machine has. Files of a run do not depend on the device. Weights of 8 bits and CTranslate2
        need the CPU.

        >>> run = regard.load("runs/numbers").use_device("cpu")
        >>> run.device
        'cpu'
        """
        device = find_device(name)
        if device == self.task.device:
            return self
        if self.is_int8:
            raise InputError(f"device: weights of 8 bits need the CPU, not {device}; use the cpu")
        release_packed_weights(self.model)
        self.model.to(device)
        return self.use_engine(self.chosen_engine)

    def check_on_cpu(self, subject: str) -> None:
        """Raise an error if the model is on another device."""
        if self.device != "cpu":
            raise InputError(f"{subject} need the CPU, not {self.device}; use the device cpu")

    def quantize(self) -> "Run":
        """Multiply with weights of 8 bits from now on, which is faster; return this run.

        Each row of a weight and each input vector has its own scale. Predictions can change a
        little. Small products, training and saved files keep 32 bits.

        >>> run = regard.load("runs/numbers").quantize()
        >>> run("one two").text == regard.load("runs/numbers")("one two").text
        True
        """
        self.check_on_cpu("quantize: products with weights of 8 bits")
        if not HAS_INT8:
            raise InputError("quantize: this build of torch has no products of 8 bits")
        release_packed_weights(self.model)
        mark_int8(self.model)
        self.is_int8 = True
        return self.use_engine(self.chosen_engine)

    def use_engine(self, engine: EngineName) -> "Run":
        """Predict by another engine from now on; return this run.

        "ctranslate2" needs the extra `ct2`, a run that was loaded, and settings that it supports;
        docs/speed.md lists them. It is an error if one is missing. "auto" uses CTranslate2 where
        it can and is faster, else regard's own engine, "built-in". Attention maps always come
        from the latter.

        >>> run = regard.load("runs/numbers").use_engine("auto")
        >>> run.engine                              # CTranslate2 has no recurrent models
        'built-in'
        """
        self.chosen_engine = check_engine_name(engine)
        use_engine(
            self.task,
            engine,
            self.weights_path,
            identity=self.settings.model.model_dump_json(),
            int8=self.is_int8,
        )
        return self

    @property
    def engine(self) -> EngineName:
        """The engine that predicts: built-in or ctranslate2."""
        return "built-in" if getattr(self.task, "engine", None) is None else "ctranslate2"

    def use_replicas(self, count: int | None) -> "Run":
        """Decode up to `count` batches at once, on a thread each; return this run.

        None, the default, is one for each thread of torch. More replicas need more memory, one
        batch each; they share the weights. Predictions do not depend on their number.

        >>> run = regard.load("runs/numbers").use_replicas(1)
        """
        if count is not None and not self.task.decodes_in_replicas:
            raise InputError(f"replicas: task {self.task.name} does not decode in replicas")
        replica_count(count)  # checks it
        self.task.replicas = count
        return self

    def serve(self, *, port: int = 8000, host: str = "127.0.0.1", key: str | None = None) -> None:
        """Serve this run until the program is interrupted: a web page and an HTTP API.

        It needs the extra `serve`. With a key, every request must send it. `regard serve` has
        further options, and serves several runs.
        """
        if missing := [name for name in SERVER_PACKAGES if find_spec(name) is None]:
            raise InputError(f"{missing[0]} is not installed: pip install 'regard[serve]'")
        # The server stands above this module, and most programs never need it.
        import_module("regard.serve.server").serve_runs(
            {self.settings.task: self}, host=host, port=port, key=key
        )

    # --- files

    def save(
        self, folder: Path | str, *, data_files: Mapping[str, FileDigest] | None = None
    ) -> None:
        """Write all files that `load` needs, and their manifest.

        An interrupted write leaves a run that can be loaded, or a folder that a new training fills.
        `data_files` are the digests of the training data, for the manifest.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        facts: JsonObject = {"versions": versions(self.device)}
        if data_files is not None:
            facts["data_files"] = digests_to_json(data_files)
        manifest = Manifest(files_of_run(folder), facts)
        with draft_folder(folder / CONFIG_FILE) as draft:
            for name, vocabulary in self.vocabularies.items():
                vocabulary.save(draft / f"{name}.json")
            self.write_weights(draft / WEIGHTS_FILE, dict(self.model.state_dict()))
            config = to_portable(dumps(self.settings), folder)
            write_synced(draft / CONFIG_FILE, config.encode())
            replace_files(draft, folder, manifest, last=CONFIG_FILE)

    def save_weights(self, folder: Path, weights: Mapping[str, Tensor]) -> None:
        """Replace the weights in the folder of a run."""
        with draft_folder(folder / WEIGHTS_FILE) as draft:
            self.write_weights(draft / WEIGHTS_FILE, weights)
            manifest = read_manifest(folder)
            replace_files(draft, folder, manifest, last=WEIGHTS_FILE, keep=True)

    def write_weights(self, path: Path, weights: Mapping[str, Tensor]) -> None:
        """Write weights; values that validation has tuned replace their averages."""
        write_tensors(path, {**weights, **self.task.tuned_weights()})

    @classmethod
    def load(
        cls,
        folder: Path | str,
        *,
        verify: bool = True,
        replicas: int | None = None,
        engine: EngineName = "built-in",
        device: str = "auto",
    ) -> "Run":
        """Load the run in a folder, or one of its checkpoints (`RUN/checkpoints/step-N`).

        All files are compared with their checksums; `verify=False` compares the sizes only.
        `replicas` is for `use_replicas`, `engine` for `use_engine`, `device` for `use_device`.
        """
        if device == "auto" and engine == "ctranslate2":
            device = "cpu"
        find_device(device)  # an unknown name is an error before the weights are read
        intact_folder = verify_weights(Path(folder), digests=verify)
        run = cls.read(intact_folder, Path(folder) / WEIGHTS_FILE)
        return run.use_device(device).use_replicas(replicas).use_engine(engine)

    @classmethod
    def read(cls, folder: Path, weights_path: Path) -> "Run":
        """Load a run without a comparison with its manifest."""
        settings = load_settings(folder / CONFIG_FILE)
        loaders = find_task(settings.task).builder().vocabulary_loaders(settings)
        check_run_files(folder, [f"{name}.json" for name in loaders])
        vocabularies = {n: load(folder / f"{n}.json") for n, load in loaders.items()}
        builder = find_task(settings.task).builder()
        check_settings_limits(settings, str(folder / CONFIG_FILE))
        check_weights(lambda: builder.build_model(settings, vocabularies), weights_path)
        with torch.random.fork_rng(devices=[]), SkipInitialization():
            model = builder.build_model(settings, vocabularies)
        run = cls(settings, vocabularies, model)
        run.model.load_state_dict(read_weights(weights_path))
        run.model.eval()
        run.weights_path = weights_path
        return run


def files_of_run(folder: Path) -> Mapping[str, FileDigest]:
    """Return the files in the manifest of a folder; none, if it holds no intact run."""
    try:
        return read_manifest(folder).files if (folder / CONFIG_FILE).is_file() else {}
    except DamagedFileError:
        return {}


@contextmanager
def draft_folder(path: Path) -> Generator[Path]:
    """Make a hidden folder beside `path`, to write files in, and remove it at the end."""
    draft = draft_path(path)
    try:
        with explain_write_errors(path):
            draft.mkdir()
            yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def versions(device: str) -> JsonObject:
    """Return the versions that a run was made with, on a device."""
    return {
        "regard": regard.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        "device": device,
    }
