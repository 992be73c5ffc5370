"""Roles of heads, from the weights of one map."""

import numpy as np
import pytest

from regard.view.attention_map import AttentionMap
from regard.view.head_roles import head_roles

COUNT = 10
TOKENS = ["[CLS]", *"abcdefgh", "[SEP]"]
PATTERNS = {
    "previous": np.eye(COUNT, k=-1),
    "same": np.eye(COUNT),
    "next": np.eye(COUNT, k=1),
    "first": np.tile(np.eye(COUNT)[0], (COUNT, 1)),
    "": np.full((COUNT, COUNT), 1 / COUNT),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_a_role_is_where_most_weight_is(name):
    [[role]] = head_roles(AttentionMap(PATTERNS[name], TOKENS))
    assert role.name == name
    assert role.share == pytest.approx(PATTERNS[name].sum() / COUNT if name else 0)


def test_weight_on_the_end_is_on_the_last_token_or_on_separators():
    tokens = ["[CLS]", "a", "[SEP]", "b", "[SEP]"]
    both = np.tile([0, 0, 0.5, 0, 0.5], (5, 1))
    assert head_roles(AttentionMap(both, tokens))[0][0].name == "separator"


def test_attention_to_another_text_has_no_role():
    assert head_roles(AttentionMap(np.eye(2), ["a", "b"], ["c", "d"]))[0][0].name == ""
