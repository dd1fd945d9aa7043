"""The balanced draw: even, without repetition, repeatable."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ftbc.data.balance import draw_balanced
from ftbc.errors import InputError


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=40), st.data())
def test_a_class_is_behind_only_when_it_is_used_up(labels, data):
    labels = torch.tensor(labels)
    count = data.draw(st.integers(1, len(labels)))
    chosen = draw_balanced(labels, count, seed=data.draw(st.integers(0, 9)))
    assert len(chosen) == count == len(set(chosen.tolist()))
    have, got = labels.bincount(minlength=7), labels[chosen].bincount(minlength=7)
    assert (got >= torch.minimum(have, got.max() - 1)).all()


def test_prefixes_are_balanced():
    labels = torch.arange(10).repeat_interleave(30)
    chosen = draw_balanced(labels, 200, seed=1)
    for n in (10, 50, 130):
        assert labels[chosen[:n]].bincount().tolist() == [n // 10] * 10


def test_seed_decides():
    labels = torch.arange(1000) % 10
    first = draw_balanced(labels, 55, seed=3)
    assert torch.equal(first, draw_balanced(labels, 55, seed=3))
    assert not torch.equal(first, draw_balanced(labels, 55, seed=4))
    # Which classes get the one image more is drawn too, not always the first ones.
    extra = {tuple(labels[draw_balanced(labels, 12, seed)].bincount().eq(2).nonzero().flatten()) for seed in range(9)}
    assert len(extra) > 1


@pytest.mark.parametrize("count", [0, -3, 6])
def test_impossible_counts_are_refused(count):
    with pytest.raises(InputError, match="1 to 5"):
        draw_balanced(torch.zeros(5, dtype=torch.int64), count, seed=0)
