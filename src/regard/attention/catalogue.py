"""Scores and normalizers by name, for configs, `regard list` and the laws. Imports no torch."""

from typing import NamedTuple


class AttentionComponent(NamedTuple):
    """The class or function behind a name, its equation, and the paper."""

    implementation: str
    equation: str
    paper: str


SCORES = {
    "dot": AttentionComponent("scores.Dot", "q . k", "Luong et al. 2015, sec. 3.1"),
    "scaled_dot": AttentionComponent(
        "scores.ScaledDot", "q . k / sqrt(d)", "Vaswani et al. 2017, eq. 1"
    ),
    "general": AttentionComponent("scores.General", "q . W h", "Luong et al. 2015, sec. 3.1"),
    "additive": AttentionComponent(
        "scores.Additive", "v . tanh(W q + U h)", "Bahdanau et al. 2015, A.1.2"
    ),
    "location": AttentionComponent(
        "scores.LocationScore", "(W q)_slot", "Luong et al. 2015, eq. 8"
    ),
    "cosine": AttentionComponent(
        "scores.Cosine", "softplus(b) cos(q, m)", "Graves et al. 2014, eq. 5-6"
    ),
    "salience": AttentionComponent(
        "scores.Salience", "u . tanh(W h + b)", "Yang et al. 2016, eq. 5-6"
    ),
}

NORMALIZERS = {
    "softmax": AttentionComponent(
        "normalizers.softmax", "exp e / sum exp e", "Bahdanau et al. 2015, eq. 6"
    ),
    "sparsemax": AttentionComponent(
        "normalizers.sparsemax", "argmin_p |p - e|^2 on the simplex", "Martins & Astudillo 2016"
    ),
    "entmax15": AttentionComponent(
        "normalizers.entmax15", "max(0, e/2 - t)^2, summing to 1", "Peters et al. 2019, sec. 3"
    ),
    "reinforce": AttentionComponent(
        "reinforce.ReinforceSampler", "one slot, drawn from softmax e", "Xu et al. 2015, sec. 4.1"
    ),
    "straight_through": AttentionComponent(
        "normalizers.StraightThrough", "one slot drawn, gradient of softmax e", "Bengio et al. 2013"
    ),
}
