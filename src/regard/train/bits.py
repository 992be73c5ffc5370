"""A run that remembers sequences of bits: it copies them, or recalls what followed."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from regard.batch.batches import Batches
from regard.batch.pair import Pair
from regard.config.settings import CopySettings, RecallSettings, Settings
from regard.corpora.bits import CopyForm, Form, RecallForm
from regard.corpora.corpus import Corpus, Record
from regard.metric.bits import SIGNATURE, bits_per_sequence, wrong_bits
from regard.models.catalogue import build as build_model
from regard.tasks.bits import Answer, Episodes, Recite
from regard.tasks.loss import Loss
from regard.train.examples import examples
from regard.train.run import Reply, Run, Told


class BitsRun(Run):
    """How many bits of a sequence are not known at its end, whatever its length."""

    kept: ClassVar = {}
    counted: ClassVar = "sequences"
    settings: CopySettings | RecallSettings
    task: Recite

    def asked(self) -> Recite:
        form = form_of(self.settings)
        wanted = self.settings.model.model_dump(exclude={"kind"})
        sizes = {"source_size": form.width + len(form.marks), "target_size": form.width}
        return Recite(build_model(self.settings.model.kind, {**wanted, **sizes}), form)

    @classmethod
    def learn(cls, settings: Settings, corpus: Corpus) -> dict[str, Any]:  # noqa: ARG003
        """Bits are bits, whatever the data."""
        return {}

    def batches(self, corpus: Corpus) -> Batches:
        train = self.settings.train

        def pairs(records: Iterable[Record]) -> Iterator[Pair]:
            return self.task.pairs(records, self.longest)

        return Batches(
            examples(lambda: corpus.read("train"), pairs, ["source"], self.settings),
            tokens=train.tokens_per_batch,
            sentences=train.sentences_per_batch,
            seed=self.settings.seed,
            collate=self.task.collate,
        )

    def loss(self, batch: Episodes, done: int) -> Loss:  # noqa: ARG002 - every step is alike
        return self.task.loss(batch)

    def likelihood(self, records: Iterable[Record]) -> Loss:
        """In bits, of whole sequences."""
        return self.task.likelihood(list(self.task.pairs(records)))

    def score(self, records: Iterable[Record], told: Told | None = None) -> dict[str, float | str]:
        """Bits of a sequence, and bits wrong: of all, and of each size that is tested."""
        records = list(records)
        if not records:
            raise ValueError("records are missing: there is nothing to score")
        pairs = list(self.task.pairs(records))
        rows = list(zip(records, pairs, self.task.answers(pairs, told), strict=True))
        found: dict[str, float | str] = {**means("", rows)}
        for size in self.settings.data.tested:
            if some := [row for row in rows if row[0]["size"] == size]:
                found |= means(f"_{size}", some)
        return {**found, "sequences": len(records)}

    def predict(self, texts: Sequence[str], place: str = "text {}") -> list[Answer]:
        """What is told of each sequence."""
        return self.task.answers(self.read(texts, place))

    def read(self, texts: Sequence[str], place: str) -> list[Pair]:
        return [self.task.pair(text, place.format(n)) for n, text in enumerate(texts, 1)]

    def __call__(self, text: str) -> Answer:
        return self.predict([text])[0]

    def reply(self, texts: Sequence[str], place: str = "text {}") -> list[Reply]:
        """The vectors that are told, beside those that should be."""
        pairs, found = self.read(texts, place), list[Reply]()
        for text, pair, one in zip(texts, pairs, self.task.answers(pairs), strict=True):
            said = self.task.form.written(one.vectors)
            facts = {
                "source": text,
                "said": said,
                "wanted": self.task.form.written(pair.target),
                "wrong": wrong_bits(one.vectors, pair.target),
                "bits": bits_per_sequence(one.loss, 1),
                "sure": one.sure,
            }
            found.append(Reply(said, facts))
        return found


def form_of(settings: CopySettings | RecallSettings) -> Form:
    data = settings.data
    if data.kind == "copy":
        return CopyForm(data.width)
    return RecallForm(data.width, data.vectors)


def means(name: str, rows: Sequence[tuple[Record, Pair, Answer]]) -> dict[str, float | str]:
    """Over these sequences."""
    wrong = sum(wrong_bits(answer.vectors, pair.target) for _, pair, answer in rows)
    return {
        f"bits{name}": bits_per_sequence(sum(answer.loss for *_, answer in rows), len(rows)),
        f"bits{name}_signature": SIGNATURE,
        f"wrong{name}": wrong / len(rows),
    }
