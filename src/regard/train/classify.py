"""A run that classifies: a text or two into one of the classes of its data."""

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import safetensors.torch
import torch

from regard.batch.batches import Batches
from regard.batch.pair import Pair
from regard.config.load import load as load_settings
from regard.config.settings import ClassifySettings, Settings
from regard.corpora.corpus import Corpus, Record, place
from regard.encode.lora import add_lora
from regard.metric.classes import accuracy, macro_f1
from regard.models.catalogue import build as build_model
from regard.tasks.classify import Classify, Headed, Labelled, Verdict
from regard.tasks.inputs import BySentence, Inputs, Marked, Plain
from regard.tasks.loss import Loss
from regard.text.labels import Labels
from regard.text.marks import load_tokeniser, marks_of
from regard.train.examples import examples
from regard.train.run import CONFIG, WEIGHTS, Reply, Run, Told, check_files, vocabulary

MARKS = 3  # of two texts: START, and END twice


class ClassifyRun(Run):
    """Sentiment, topics, pairs of sentences: any label."""

    kept: ClassVar = {"text": load_tokeniser, "labels": Labels.load}
    counted: ClassVar = "texts"
    settings: ClassifySettings
    task: Classify

    def asked(self) -> Classify:
        text, labels = self.vocabularies["text"], self.vocabularies["labels"]
        kind, head, start = self.settings.model.kind, self.settings.head, self.settings.start
        wanted = self.settings.model.model_dump(exclude={"kind"})
        marks = marks_of(text) if kind == "bert" else None
        encoder = build_model(kind, {**wanted, "size": text.size if marks is None else marks.size})
        model = Headed(
            encoder,
            labels.size,
            pooling=head.pooling,
            hidden_dim=head.hidden_dim,
            dropout=head.dropout,
            frozen=start.freeze,
        )
        if start.lora:
            add_lora(encoder, start.lora)
        if marks is not None:
            marked = Marked(text, marks.start, marks.end, segments=wanted["segments"] > 1)
            return Classify(model, marked, labels)
        inputs: Inputs = BySentence(text) if kind == "han" else Plain(text)
        return Classify(model, inputs, labels)

    @classmethod
    def settled(cls, settings: Settings) -> Settings:
        """With the model and the vocabulary of the run that it starts from."""
        if not isinstance(settings, ClassifySettings) or settings.start.run is None:
            return settings
        base = base_of(settings.start.run)
        model = base.model
        if model.kind == "bert":
            model = model.model_copy(update={"pretrain": "none"})
        return settings.model_copy(update={"model": model, "text": base.text})

    @classmethod
    def learn(cls, settings: Settings, corpus: Corpus) -> dict[str, Any]:
        labels = Labels.learn(record["label"] for record in corpus.read("train"))
        if isinstance(settings, ClassifySettings) and settings.start.run is not None:
            text = load_tokeniser(Path(settings.start.run) / "text.json")
            return {"text": text, "labels": labels}
        fields = ["text", "pair"] if "pair" in next(corpus.read("train"), {}) else ["text"]
        return {"text": vocabulary(settings.text, corpus, *fields), "labels": labels}

    def inherit(self) -> None:
        """The encoder of the run that it starts from; that one's heads are left behind."""
        if self.settings.start.run is None:
            return
        folder = Path(self.settings.start.run)
        weights = safetensors.torch.load_file(folder / WEIGHTS)
        if base_of(folder).task == "classify":
            inner = "encoder."
            weights = {n[len(inner) :]: w for n, w in weights.items() if n.startswith(inner)}
        own = self.task.model.encoder.state_dict()
        taken: dict[str, torch.Tensor] = {}
        for name, value in own.items():
            # what LoRA is added to keeps its weights under another name
            found = weights.get(name.replace("parametrizations.weight.original", "weight"))
            if found is not None and found.shape == value.shape:
                taken[name] = found
            elif "parametrizations.weight.0" not in name:
                raise ValueError(f"{folder / WEIGHTS}: has no {name} of shape {tuple(value.shape)}")
        self.task.model.encoder.load_state_dict({**own, **taken})

    def groups(self) -> list[dict[str, Any]]:
        """By layers from the top down, each slower than the one above if the settings say so."""
        decay, encoder = self.settings.start.layer_decay, self.task.model.encoder
        if decay == 1.0:
            return super().groups()
        layers = getattr(getattr(encoder, "encoder", None), "layers", None)
        if layers is None:
            kind = self.settings.model.kind
            raise ValueError(f"start.layer_decay is for a transformer's layers: {kind} has none")
        depth = {p: len(layers) - i for i, layer in enumerate(layers) for p in layer.parameters()}
        inside = set(encoder.parameters())
        found: dict[int, list[torch.nn.Parameter]] = {}
        for parameter in self.model.parameters():
            if parameter.requires_grad:
                below = depth.get(parameter, len(layers) + 1) if parameter in inside else 0
                found.setdefault(below, []).append(parameter)
        return [{"params": found[n], "rate": decay**n} for n in sorted(found)]

    def batches(self, corpus: Corpus) -> Batches:
        """Texts of about equal length together; the labels of dev and test are looked at first."""
        train, longest = self.settings.train, self.longest
        for split in set(corpus.splits) - {"train"}:  # whose labels these are
            for number, record in enumerate(corpus.read(split)):
                if record["label"] not in self.task.labels.numbers:
                    self.task.labels.number(record["label"], place(corpus, split, number))

        def pairs(records: Iterable[Record]) -> Iterator[Pair]:
            return self.task.pairs(records, longest)

        return Batches(
            examples(lambda: corpus.read("train"), pairs, ["text"], self.settings),
            tokens=train.tokens_per_batch,
            sentences=train.sentences_per_batch,
            seed=self.settings.seed,
            collate=self.task.collate,
        )

    @property
    def longest(self) -> int:
        """Tokens of text, at most; the marks need places, too."""
        context = getattr(self.settings.model, "context", math.inf)
        return int(min(self.settings.train.longest, context - MARKS))

    def loss(self, batch: Labelled, done: int) -> Loss:  # noqa: ARG002 - every step is alike
        return self.task.loss(batch, self.settings.train.label_smoothing)

    def likelihood(self, records: Iterable[Record]) -> Loss:
        return self.task.likelihood(list(self.task.pairs(records, self.longest)))

    def measured(self, metric: str, records: Sequence[Record]) -> float:
        return float(self.rate(records, self.predict(records))[metric])

    def score(self, records: Iterable[Record], told: Told | None = None) -> dict[str, float | str]:
        """Accuracy and macro F1 in percent, and the loss of a text."""
        records = list(records)
        if not records:
            raise ValueError("records are missing: there is nothing to score")
        loss = self.likelihood(records)
        found = self.rate(records, self.predict(records, told))
        return {**found, "loss": loss.total.item() / loss.tokens, "texts": len(records)}

    def rate(self, records: Sequence[Record], verdicts: Sequence[Verdict]) -> dict[str, Any]:
        said, true = [one.label for one in verdicts], [record["label"] for record in records]
        return {"accuracy": 100 * accuracy(said, true), "f1": 100 * macro_f1(said, true)}

    def predict(self, records: Sequence[Record], told: Told | None = None) -> list[Verdict]:
        """What each record's text is taken for."""
        return self.task.verdicts(records, self.longest, told)

    def __call__(self, text: str, pair: str | None = None) -> Verdict:
        """What one text, or two, are taken for."""
        return self.predict([{"text": text} if pair is None else {"text": text, "pair": pair}])[0]

    def reply(self, texts: Sequence[str], place: str = "text {}") -> list[Reply]:  # noqa: ARG002
        """One label for each."""
        records = records_of(texts)
        return [
            Reply(one.label, {**record, "label": one.label, "probabilities": one.probabilities})
            for record, one in zip(records, self.predict(records), strict=True)
        ]


def records_of(texts: Sequence[str]) -> list[Record]:
    """One text each, or two with a tab between them."""
    return [dict(zip(("text", "pair"), text.split("\t"), strict=False)) for text in texts]


def base_of(folder: Path | str) -> Settings:
    """The settings of a run whose encoder others can start from."""
    check_files(Path(folder), (CONFIG, WEIGHTS, "text.json"))
    base = load_settings(Path(folder) / CONFIG)
    if base.task not in ("pretrain", "classify"):
        raise ValueError(f"{folder}: holds a run of task {base.task!r}, which has no encoder")
    return base
