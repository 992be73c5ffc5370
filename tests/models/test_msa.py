"""The Evoformer model: embeddings by loops, and the outputs of a new model."""

import pytest
import torch

from regard.attention.observe import observe
from regard.models.msa import Msa

SMALL = {"dim": 6, "pair_dim": 5, "heads": 2, "pair_heads": 2, "head_dim": 3, "layers": 2}
IDS = torch.tensor([[[1, 2, 3, 4, 5], [1, 0, 3, 3, 5], [2, 2, 2, 4, 1]]])
VALID = torch.ones(1, 5, dtype=torch.bool)


def test_embeddings_are_their_equations():
    model = Msa(7, 2, **SMALL, max_relative_position=2).double()
    features = torch.randn(1, 5, 5, 2, dtype=torch.float64)
    m, z = model.embed(IDS, features)
    rows = IDS[0].tolist()
    for i in range(5):
        for s, row in enumerate(rows):
            expected = model.letters.weight[row[i]] + model.query_letters.weight[rows[0][i]]
            torch.testing.assert_close(m[0, s, i], expected)
        for j in range(5):
            offset = max(-2, min(2, i - j)) + 2
            expected = model.left.weight[rows[0][i]] + model.right.weight[rows[0][j]]
            expected = expected + model.relative_position.weight[offset]
            expected = (
                expected
                + model.feature_projection.weight @ features[0, i, j]
                + model.feature_projection.bias
            )
            torch.testing.assert_close(z[0, i, j], expected)


def test_a_new_model_returns_its_embeddings():
    """Every block starts as the identity, also in training."""
    model = Msa(7, **SMALL).double()
    m, z = model.embed(IDS, None)
    encoded = model.encode(IDS, VALID)
    torch.testing.assert_close(encoded.states, model.norm(model.single(m[:, 0])))
    torch.testing.assert_close(encoded.pairs, model.pair_norm(z))
    assert (model.width, model.pair_width, model.pooled_width) == (6, 5, None)


def test_without_relative_positions_order_does_not_matter(unchecked):
    model = Msa(7, **SMALL, max_relative_position=0).double().eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.4)
    order = torch.tensor([3, 0, 4, 1, 2])
    encoded, reordered = model.encode(IDS, VALID), model.encode(IDS[:, :, order], VALID)
    torch.testing.assert_close(reordered.states, encoded.states[:, order])
    torch.testing.assert_close(reordered.pairs, encoded.pairs[:, order][:, :, order])


def test_attentions_have_clear_names():
    model = Msa(7, **SMALL).eval()
    with observe(model) as recorded, torch.no_grad():
        model.encode(IDS, VALID)
    shapes = {name: tuple(weights.shape) for name, weights in recorded.joined().items()}
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


def test_wrong_features_are_rejected(unchecked):
    features = torch.zeros(1, 5, 5, 2)
    with pytest.raises(ValueError, match="pair_features must be None for this model"):
        Msa(7, **SMALL).encode(IDS, VALID, pair_features=features)
    with pytest.raises(ValueError, match="pair_features must be 2 features per pair"):
        Msa(7, 2, **SMALL).encode(IDS, VALID)
    with pytest.raises(ValueError, match="max_relative_position must be 0 or more, not -1"):
        Msa(7, **SMALL, max_relative_position=-1)
