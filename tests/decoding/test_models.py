"""Every model, every search: the same outputs in any batch and in any order.

In float64: a matrix product rounds differently for another number of rows, and in float32 two
outputs that are equally good to seven digits may change places.
"""

from typing import Any

import pytest
import torch
from torch import Tensor

from regard.decoding.beam import beam_search
from regard.decoding.constraints import Constraints
from regard.decoding.greedy import greedy_search
from regard.decoding.sampling import SamplingOptions, sample
from regard.decoding.scoring import alternatives, score_outputs
from regard.decoding.stepper import Ensemble, Stepper
from regard.models.catalogue import build_model
from regard.tasks.catalogue import model_kinds

COUNT, SOURCE, TARGET = 12, 40, 150
pytestmark = pytest.mark.usefixtures("unchecked")  # the shapes of models are tested elsewhere
MODEL_NAMES = [*model_kinds("translate")]


class Case:
    """A model of random weights and sentences of many lengths, padded batch by batch."""

    def __init__(self, kind: str):
        settings = {"source_size": SOURCE, "target_size": TARGET, "dim": 16}
        self.model = build_model(kind, settings).eval().double()
        for weight in self.model.parameters():
            torch.nn.init.normal_(weight, std=0.5)
        lengths = torch.randint(1, 8, (COUNT,)).tolist()
        self.sources = [torch.randint(3, SOURCE, (length,)) for length in lengths]
        self.limits = [length + 2 for length in lengths]

    def read(self, numbers: list[int]) -> object:
        rows = [self.sources[number] for number in numbers]
        source = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        valid = torch.arange(source.shape[1]) < torch.tensor([len(row) for row in rows])[:, None]
        with torch.inference_mode():
            return self.model.remember(source, valid)

    def rules(self, numbers: list[int]) -> Constraints:
        # a model of random weights likes to repeat itself
        limits = [self.limits[number] for number in numbers]
        return Constraints(max_length=limits, no_repeat_ngram=1)


SEARCHES = {
    "greedy": lambda case, numbers: greedy_search(
        case.model, case.read(numbers), len(numbers), case.rules(numbers)
    ),
    "beam": lambda case, numbers: beam_search(
        case.model, case.read(numbers), len(numbers), 4, n_best=4, alpha=0.6,
        constraints=case.rules(numbers),
    ),
    "sample": lambda case, numbers: sample(
        case.model, case.read(numbers), numbers, SamplingOptions(top_p=0.9), copies=2,
        constraints=case.rules(numbers),
    ),
}  # fmt: skip


def searches() -> list[Any]:
    """Return every model with every search; `make test` runs one search of each model in turn."""
    return [
        pytest.param(
            kind,
            search,
            id=f"{kind} {name}",
            marks=[] if kind == "rnnsearch" or (row + column) % 3 == 0 else [pytest.mark.full],
        )
        for row, kind in enumerate(MODEL_NAMES)
        for column, (name, search) in enumerate(SEARCHES.items())
    ]


@pytest.mark.parametrize(("kind", "search"), searches())
def test_any_batch_any_order(kind, search, batching):
    torch.manual_seed(0)  # a model that says nearly the same of every input would show little
    case = Case(kind)
    assert isinstance(case.model, Stepper)
    first, *others = batching(
        lambda numbers: [[one.ids for one in some] for some in search(case, numbers)], COUNT
    )
    assert len({tuple(some[0]) for some in first}) > COUNT // 3
    assert all(other == first for other in others)


@pytest.mark.parametrize("kind", MODEL_NAMES)
def test_scores_are_those_of_teacher_forcing(kind):
    """What search says of its outputs, forced scoring by steps, and the model's own pass agree."""
    case, numbers = Case(kind), list(range(COUNT))
    found = SEARCHES["beam"](case, numbers)
    outputs = [[one.ids for one in some] for some in found]
    scored = score_outputs(case.model, case.read(numbers), outputs)
    for some, again in zip(found, scored, strict=True):
        assert [one.log_prob for one in some] == pytest.approx([one.log_prob for one in again])
    ids = [some[0] for some in outputs]
    forced = teacher_forced(case, numbers, ids)
    assert [some[0].log_prob for some in scored] == pytest.approx(forced)


def teacher_forced(case: Case, numbers: list[int], outputs: list[list[int]]) -> list[float]:
    def padded(rows: list[list[int]]) -> Tensor:
        tensors = [torch.tensor(row) for row in rows]
        return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True)

    with torch.inference_mode():
        states = case.model.teacher_forced(
            case.read(numbers), padded([[1, *ids] for ids in outputs])
        )
        told = case.model.logits(states).log_softmax(-1)
    after = padded([[*ids, 2] for ids in outputs])
    gained = told.gather(2, after[..., None])[..., 0]
    return (gained * (after > 0)).sum(1).tolist()


@pytest.mark.parametrize("kind", MODEL_NAMES)
def test_the_rest_runs(kind):
    """Phrases, alternatives and an ensemble of two, on states of every kind."""
    case, other, numbers = Case(kind), Case(kind), list(range(5))
    phrases = [[[20 + n, 30], [7]] for n in numbers]
    rules = Constraints(max_length=15, phrases=phrases, no_repeat_ngram=2)
    for [output], some in zip(
        beam_search(case.model, case.read(numbers), 5, constraints=rules), phrases, strict=True
    ):
        assert 7 in output.ids
        assert some[0] in [output.ids[at : at + 2] for at in range(len(output.ids) - 1)]
    outputs = [one.ids for [one] in SEARCHES["greedy"](case, numbers)]
    found = alternatives(
        case.model, case.read(numbers), [ids[:1] for ids in outputs], 3, case.rules(numbers)
    )
    assert [some[0].output.ids for some in found] == outputs
    both = Ensemble([case.model, case.model])
    memories = [case.read(numbers), case.read(numbers)]
    assert [one.ids for [one] in greedy_search(both, memories, 5, case.rules(numbers))] == outputs
    different = Ensemble([case.model, other.model])
    greedy_search(different, memories, 5, case.rules(numbers))
