"""What every encoder of proteins obeys: each law is tried on each model of the catalogue.

A model that is added to the catalogue for `fold` is tried here without further ado; `VARIANTS` adds
settings that change what is computed.
"""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.attention.observe import observe
from regard.models.catalogue import build_model, model_settings
from regard.tasks.catalogue import model_kinds

SIZE = 9
SMALL = {"size": SIZE, "dim": 8, "hidden_dim": 6, "heads": 2, "layers": 2, "max_positions": 16}
SMALL |= {"pair_dim": 6, "pair_heads": 2, "head_dim": 3, "max_relative_position": 2}
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((kind, {}) for kind in model_kinds("fold")),
    ("msa", {"triangles": "product", "max_relative_position": 0}),
    ("msa", {"triangles": "attention"}),
    ("msa", {"triangles": "axial", "heads": 1}),
    ("msa", {"triangles": "none"}),
]


def name(variant: tuple[str, dict[str, Any]]) -> str:
    kind, settings = variant
    return " ".join([kind, *(f"{key}={value}" for key, value in settings.items())])


every_model = pytest.mark.parametrize("variant", VARIANTS, ids=name)
every_msa = pytest.mark.parametrize("variant", [v for v in VARIANTS if v[0] == "msa"], ids=name)


def made(variant: tuple[str, dict[str, Any]]) -> Any:
    """Weights are drawn wide: some start at 0, and a law that holds there may not hold after."""
    kind, settings = variant
    known = {key: value for key, value in SMALL.items() if key in model_settings(kind)}
    model = build_model(kind, {**known, **settings}).double().eval()
    for module in model.modules():
        if not isinstance(module, nn.LayerNorm):
            for weight in module.parameters(recurse=False):
                nn.init.normal_(weight, std=0.4)
    return model


def drawn(kind: str) -> dict[str, Tensor]:
    """Rows of 6, 2 and 4 residues, and for an alignment of 3, 1 and 2 sequences."""
    valid = torch.arange(6) < torch.tensor([6, 2, 4])[:, None]
    if kind != "msa":
        return {"ids": torch.randint(1, SIZE, (3, 6)) * valid, "valid": valid}
    real = torch.arange(3) < torch.tensor([3, 1, 2])[:, None]
    ids = torch.randint(1, SIZE, (3, 3, 6)) * valid[:, None] * real[..., None]
    return {"ids": ids, "valid": valid, "sequence_valid": real}


def cut(inputs: dict[str, Tensor], row: int) -> dict[str, Tensor]:
    """A row alone, without its padding."""
    length = int(inputs["valid"][row].sum())
    found = {name: one[row : row + 1] for name, one in inputs.items()}
    found["valid"] = found["valid"][:, :length]
    found["ids"] = found["ids"][..., :length]
    if "sequence_valid" in inputs:
        many = int(inputs["sequence_valid"][row].sum())
        found["ids"], found["sequence_valid"] = (
            found["ids"][:, :many],
            found["sequence_valid"][:, :many],
        )
    return found


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-10)


@every_model
def test_it_says_what_it_gives(variant):
    model, inputs = made(variant), drawn(variant[0])
    found = model.encode(**inputs)
    assert found.states.shape == (3, 6, model.width)
    assert found.states.isfinite().all()
    if hasattr(model, "pair_width"):
        assert found.pairs.shape == (3, 6, 6, model.pair_width)


@every_model
def test_neither_padding_nor_others_matter(variant, unchecked):
    """Whatever is in the padding, of residues and of sequences."""
    model, inputs = made(variant), drawn(variant[0])
    real = inputs["valid"]
    if "sequence_valid" in inputs:
        real = inputs["valid"][:, None] & inputs["sequence_valid"][..., None]
    inputs["ids"] = torch.where(real, inputs["ids"], SIZE - 1)
    whole = model.encode(**inputs)
    for row in range(3):
        alone = model.encode(**cut(inputs, row))
        length = alone.states.shape[1]
        close(alone.states[0], whole.states[row, :length])
        if hasattr(alone, "pairs"):
            close(alone.pairs[0], whole.pairs[row, :length, :length])


@every_model
def test_every_residue_matters_to_every_other(variant, unchecked):
    model, inputs = made(variant), cut(drawn(variant[0]), 0)
    before = model.encode(**inputs).states
    for place in range(6):
        changed = {**inputs, "ids": inputs["ids"].clone()}
        changed["ids"][..., place] = inputs["ids"][..., place] % (SIZE - 1) + 1
        moved = (model.encode(**changed).states - before).abs().amax(-1)[0]
        assert moved.min() > 1e-12


@every_model
def test_looking_changes_nothing(variant, unchecked):
    model, inputs = made(variant), drawn(variant[0])
    plain = model.encode(**inputs).states
    with observe(model) as seen:
        looked = model.encode(**inputs).states
    assert torch.equal(plain, looked)
    assert seen.joined()
    for weights in seen.joined().values():
        total = weights.sum(-1)
        assert ((total - 1).abs().lt(1e-9) | total.eq(0)).all()


@every_model
def test_every_weight_learns(variant, unchecked):
    model, inputs = made(variant), drawn(variant[0])
    found = model.encode(**inputs)
    total = found.states[inputs["valid"]].pow(2).sum()
    if found.pooled is not None:
        total = total + found.pooled.pow(2).sum()
    if hasattr(found, "pairs"):
        total = total + found.pairs[0].pow(2).sum()
    total.backward()
    silent = {n for n, w in model.named_parameters() if w.grad is None or not w.grad.any()}
    assert silent == set()


@every_msa
def test_the_other_sequences_may_change_places(variant, unchecked):
    model, inputs = made(variant), cut(drawn("msa"), 0)
    one = model.encode(**inputs)
    other = model.encode(**{**inputs, "ids": inputs["ids"][:, [0, 2, 1]]})
    close(other.states, one.states)
    close(other.pairs, one.pairs)
    first = model.encode(**{**inputs, "ids": inputs["ids"][:, [1, 0, 2]]})
    assert not torch.allclose(first.states, one.states)
