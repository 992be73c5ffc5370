"""A run that tells the secondary structure of proteins, residue by residue."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from regard.batching.example import Example
from regard.config.settings import FoldSettings, Settings
from regard.data.corpus import Corpus, Record
from regard.data.formats.proteins import UNKNOWN_STATE, parse_sequences
from regard.metrics.fold import majority_accuracy, residue_accuracy, segment_overlap
from regard.models.catalogue import build_model as build_model
from regard.tasks.fold import RESIDUE_ID_COUNT, FoldPrediction, FoldTask, ResidueClassifier
from regard.tasks.loss import Loss
from regard.text.labels import Labels
from regard.train.headed import EncoderRun
from regard.train.run import Prediction, ProgressCallback, Run


class ProteinRun(EncoderRun):
    """What runs on proteins share: there is no vocabulary to learn, and nothing to start from."""

    special_token_count: ClassVar = 0
    settings: FoldSettings

    @classmethod
    def resolve_settings(cls, settings: Settings) -> Settings:
        return settings

    def load_pretrained(self) -> None:
        """There is nothing."""

    def base_parameter_groups(self) -> list[dict[str, Any]]:
        return Run.base_parameter_groups(self)

    def build_protein_encoder(self, features: int = 0) -> Any:
        """The encoder of the settings; `features` are told of each pair, if there are any."""
        options = self.settings.model.model_dump(exclude={"kind"})
        extra = {"features": features} if features else {}
        return build_model(self.settings.model.kind, {**options, "size": RESIDUE_ID_COUNT, **extra})


class FoldRun(ProteinRun):
    """Helices, strands and the rest: any letter for each residue."""

    vocabulary_loaders: ClassVar = {"states": Labels.load}
    unit: ClassVar = "residues"
    example_unit: ClassVar = "proteins"
    task: FoldTask

    def build_task(self) -> FoldTask:
        states, head = self.vocabularies["states"], self.settings.head
        model = ResidueClassifier(
            self.build_protein_encoder(),
            states.size,
            hidden_dim=head.hidden_dim,
            dropout=head.dropout,
        )
        return FoldTask(model, states, use_alignment=self.settings.model.kind == "msa")

    @classmethod
    def build_vocabularies(cls, settings: Settings, corpus: Corpus) -> dict[str, Any]:  # noqa: ARG003
        states = {state for record in corpus.read("train") for state in record["states"]}
        return {"states": Labels(sorted(states - {UNKNOWN_STATE}))}

    def negative_log_likelihood(self, records: Iterable[Record]) -> Loss:
        return self.task.negative_log_likelihood(list(self.evaluation_examples(records)))

    def evaluation_examples(self, records: Iterable[Record]) -> Iterator[Example]:
        """Each residue once."""
        return self.task.examples(records, self.max_tokens, all_residues=False)

    def metrics(
        self, records: Sequence[Record], on_progress: ProgressCallback | None = None
    ) -> dict[str, float | str]:
        """Q3 (or Q8) as `accuracy`, SOV, and what the commonest state alone would reach."""
        predicted_states = [
            prediction.states
            for prediction in self.predict([r["text"] for r in records], on_progress)
        ]
        reference_states = [record["states"] for record in records]
        names = self.task.states.names
        references_by_state = {
            name: [only_state(states, name) for states in reference_states] for name in names
        }
        return {
            "accuracy": 100 * residue_accuracy(predicted_states, reference_states),
            "accuracy_signature": f"Q{len(names)}|residues:all|states:{''.join(names)}|v:1",
            "sov": 100 * segment_overlap(predicted_states, reference_states),
            **{
                f"accuracy_{name}": 100 * residue_accuracy(predicted_states, references_of_state)
                for name, references_of_state in references_by_state.items()
                if any(name in states for states in references_of_state)
            },
            "majority": 100 * majority_accuracy(reference_states),
            "residues": sum(
                state != UNKNOWN_STATE for states in reference_states for state in states
            ),
        }

    def predict(
        self, texts: Sequence[str], on_progress: ProgressCallback | None = None
    ) -> list[FoldPrediction]:
        """The state of each residue of each protein."""
        return self.task.predict(texts, self.max_tokens, on_progress)

    def __call__(self, text: str) -> FoldPrediction:
        return self.predict(parse_sequence_lines([text], "text {}"))[0]

    def predict_lines(
        self, lines: Sequence[str], location_format: str = "text {}"
    ) -> list[Prediction]:
        """The sequence, and its states in a line below."""
        names = self.task.states.names
        return [
            Prediction(
                f"{prediction.sequence}\n{prediction.states}",
                {
                    "sequence": prediction.sequence,
                    "states": prediction.states,
                    "probabilities": [
                        dict(zip(names, row, strict=True)) for row in prediction.probabilities
                    ],
                },
                annotation=(prediction.sequence, prediction.states),
            )
            for prediction in self.predict(parse_sequence_lines(lines, location_format))
        ]


def parse_sequence_lines(texts: Sequence[str], location_format: str) -> list[str]:
    """In capitals, with those aligned behind spaces; or an error that says what is wrong."""
    return [
        " ".join(parse_sequences(text, location_format.format(n)))
        for n, text in enumerate(texts, 1)
    ]


def only_state(states: str, name: str) -> str:
    """The places of one state; the others are not known."""
    return "".join(state if state == name else UNKNOWN_STATE for state in states)
