"""The model over alignments and pairs: its embeddings by loops, and what a new one says."""

import pytest
import torch

from regard.attention.observe import observe
from regard.models.msa import Msa

SMALL = {"dim": 6, "pair_dim": 5, "heads": 2, "pair_heads": 2, "head_dim": 3, "layers": 2}
IDS = torch.tensor([[[1, 2, 3, 4, 5], [1, 0, 3, 3, 5], [2, 2, 2, 4, 1]]])
VALID = torch.ones(1, 5, dtype=torch.bool)


def test_what_the_first_block_reads_is_its_equation():
    model = Msa(7, 2, **SMALL, max_relative_position=2).double()
    told = torch.randn(1, 5, 5, 2, dtype=torch.float64)
    m, z = model.embed(IDS, told)
    rows = IDS[0].tolist()
    for i in range(5):
        for s, row in enumerate(rows):
            wanted = model.letters.weight[row[i]] + model.query_letters.weight[rows[0][i]]
            torch.testing.assert_close(m[0, s, i], wanted)
        for j in range(5):
            apart = max(-2, min(2, i - j)) + 2
            wanted = model.left.weight[rows[0][i]] + model.right.weight[rows[0][j]]
            wanted = wanted + model.relative_position.weight[apart]
            wanted = (
                wanted
                + model.feature_projection.weight @ told[0, i, j]
                + model.feature_projection.bias
            )
            torch.testing.assert_close(z[0, i, j], wanted)


def test_a_new_model_says_what_it_has_read():
    """Every block begins as the identity, in training, too."""
    model = Msa(7, **SMALL).double()
    m, z = model.embed(IDS, None)
    found = model.encode(IDS, VALID)
    torch.testing.assert_close(found.states, model.norm(model.single(m[:, 0])))
    torch.testing.assert_close(found.pairs, model.pair_norm(z))
    assert (model.width, model.pair_width, model.pooled_width) == (6, 5, None)


def test_without_relative_places_order_is_not_seen(unchecked):
    model = Msa(7, **SMALL, max_relative_position=0).double().eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.4)
    order = torch.tensor([3, 0, 4, 1, 2])
    one, other = model.encode(IDS, VALID), model.encode(IDS[:, :, order], VALID)
    torch.testing.assert_close(other.states, one.states[:, order])
    torch.testing.assert_close(other.pairs, one.pairs[:, order][:, :, order])


def test_attentions_have_clear_names():
    model = Msa(7, **SMALL).eval()
    with observe(model) as seen, torch.no_grad():
        model.encode(IDS, VALID)
    shapes = {name: tuple(one.shape) for name, one in seen.joined().items()}
    assert shapes == {
        f"blocks.{n}.{name}": shape
        for n in range(2)
        for name, shape in {
            "rows.look": (1, 3, 2, 5, 5),
            "columns.look": (1, 5, 2, 3, 3),
            "edges.0.look": (1, 5, 2, 5, 5),
            "edges.1.look": (1, 5, 2, 5, 5),
        }.items()
    }


def test_what_does_not_fit_is_told(unchecked):
    told = torch.zeros(1, 5, 5, 2)
    with pytest.raises(ValueError, match="takes no features: make pair_features fit"):
        Msa(7, **SMALL).encode(IDS, VALID, pair_features=told)
    with pytest.raises(ValueError, match="takes 2 features of each pair"):
        Msa(7, 2, **SMALL).encode(IDS, VALID)
    with pytest.raises(ValueError, match="max_relative_position must be 0 or more, not -1"):
        Msa(7, **SMALL, max_relative_position=-1)
