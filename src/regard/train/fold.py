"""A run that tells the secondary structure of proteins, residue by residue."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from regard.batch.pair import Pair
from regard.config.settings import FoldSettings, Settings
from regard.corpora.corpus import Corpus, Record
from regard.corpora.proteins import UNTOLD, sequences_of
from regard.metric.fold import majority, residue_accuracy, segment_overlap
from regard.models.catalogue import build as build_model
from regard.tasks.fold import SIZE, Fold, Folded, Teller
from regard.tasks.loss import Loss
from regard.text.labels import Labels
from regard.train.headed import HeadedRun
from regard.train.run import Reply, Run, Told


class ProteinRun(HeadedRun):
    """What runs on proteins share: there is no vocabulary to learn, and nothing to start from."""

    marks: ClassVar = 0
    settings: FoldSettings

    @classmethod
    def settled(cls, settings: Settings) -> Settings:
        return settings

    def inherit(self) -> None:
        """There is nothing."""

    def layers(self) -> list[dict[str, Any]]:
        return Run.layers(self)

    def built(self, features: int = 0) -> Any:
        """The encoder of the settings; `features` are told of each pair, if there are any."""
        wanted = self.settings.model.model_dump(exclude={"kind"})
        told = {"features": features} if features else {}
        return build_model(self.settings.model.kind, {**wanted, "size": SIZE, **told})


class FoldRun(ProteinRun):
    """Helices, strands and the rest: any letter for each residue."""

    kept: ClassVar = {"states": Labels.load}
    counted: ClassVar = "residues"
    scored: ClassVar = "proteins"
    task: Fold

    def asked(self) -> Fold:
        states, head = self.vocabularies["states"], self.settings.head
        model = Teller(self.built(), states.size, hidden_dim=head.hidden_dim, dropout=head.dropout)
        return Fold(model, states, aligned=self.settings.model.kind == "msa")

    @classmethod
    def learn(cls, settings: Settings, corpus: Corpus) -> dict[str, Any]:  # noqa: ARG003
        seen = {state for record in corpus.read("train") for state in record["states"]}
        return {"states": Labels(sorted(seen - {UNTOLD}))}

    def likelihood(self, records: Iterable[Record]) -> Loss:
        return self.task.likelihood(list(self.told(records)))

    def told(self, records: Iterable[Record]) -> Iterator[Pair]:
        """Each residue once."""
        return self.task.pairs(records, self.longest, every=False)

    def rate(self, records: Sequence[Record], told: Told | None = None) -> dict[str, float | str]:
        """Q3 (or Q8) as `accuracy`, SOV, and what the commonest state alone would reach."""
        said = [one.states for one in self.predict([r["text"] for r in records], told)]
        true = [record["states"] for record in records]
        names = self.task.states.names
        each = {name: [only(states, name) for states in true] for name in names}
        return {
            "accuracy": 100 * residue_accuracy(said, true),
            "accuracy_signature": f"Q{len(names)}|residues:all|states:{''.join(names)}|v:1",
            "sov": 100 * segment_overlap(said, true),
            **{
                f"accuracy_{name}": 100 * residue_accuracy(said, these)
                for name, these in each.items()
                if any(name in states for states in these)
            },
            "majority": 100 * majority(true),
            "residues": sum(state != UNTOLD for states in true for state in states),
        }

    def predict(self, texts: Sequence[str], told: Told | None = None) -> list[Folded]:
        """The state of each residue of each protein."""
        return self.task.folded(texts, self.longest, told)

    def __call__(self, text: str) -> Folded:
        return self.predict(sequenced([text], "text {}"))[0]

    def reply(self, texts: Sequence[str], place: str = "text {}") -> list[Reply]:
        """The sequence, and its states in a line below."""
        names = self.task.states.names
        return [
            Reply(
                f"{one.sequence}\n{one.states}",
                {
                    "sequence": one.sequence,
                    "states": one.states,
                    "probabilities": [
                        dict(zip(names, row, strict=True)) for row in one.probabilities
                    ],
                },
                below=(one.sequence, one.states),
            )
            for one in self.predict(sequenced(texts, place))
        ]


def sequenced(texts: Sequence[str], place: str) -> list[str]:
    """In capitals, with those aligned behind spaces; or an error that says what is wrong."""
    return [" ".join(sequences_of(text, place.format(n))) for n, text in enumerate(texts, 1)]


def only(states: str, name: str) -> str:
    """The places of one state; the others are not known."""
    return "".join(state if state == name else UNTOLD for state in states)
