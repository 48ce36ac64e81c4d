"""Bins of signed distances: edges at the data's scale, and their words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilp.time.bins import bin_index, bin_words, length_words, make_edges
from tilp.types import Unit

distances = st.lists(st.integers(-(10**6), 10**6), max_size=60).map(
    lambda values: np.array(values, np.int64)
)


@given(distances, st.sampled_from(list(Unit)), st.integers(1, 30))
def test_edges_ascend_from_one_and_every_distance_has_a_bin_with_words(
    values: np.ndarray, unit: Unit, n: int
) -> None:
    edges = make_edges(values, unit, n)
    assert edges[0] == 1
    assert (np.diff(edges) > 0).all()
    assert len(edges) <= n + 1
    words = bin_words(edges, unit)
    assert len(words) == len(set(words)) == 2 * len(edges) + 1
    index = bin_index(values, edges)
    for value, position in zip(values.tolist(), index.tolist(), strict=True):
        if value == 0:
            assert position == len(edges)
            continue
        step = abs(position - len(edges)) - 1
        assert (position > len(edges)) == (value > 0)
        assert edges[step] <= abs(value)
        assert step == len(edges) - 1 or abs(value) < edges[step + 1]


def test_edges_follow_the_scale_of_the_data() -> None:
    years = make_edges(np.arange(1, 40), "year", 8)
    days = make_edges(np.arange(1, 40) * 365, "day", 8)
    assert years.tolist() == [1, 6, 10, 15, 20, 25, 30]
    assert length_words(days, "day")[-1] == "30 years or more"
    fine = make_edges(np.arange(1, 40), "year", 8, fine=True)
    assert fine.tolist() == [1, 6, 11, 15, 20, 25, 30, 35]
    assert length_words((fine * 365.2425).astype(np.int64), "day")[2] == "11-15 years"


@pytest.mark.parametrize(
    ("edges", "unit", "words"),
    [
        ([1, 3], "month", ["1-2 months", "3 months or more"]),
        ([1, 12, 24], "month", ["1-11 months", "1-2 years", "2 years or more"]),
        ([1, 30, 365], "day", ["within 1 month", "1 month to 1 year", "1 year or more"]),
        ([1], "integer", ["1 time unit or more"]),
    ],
)  # fmt: skip
def test_words(edges: list[int], unit: str, words: list[str]) -> None:
    assert length_words(np.array(edges), unit) == words


def test_words_of_the_middle() -> None:
    assert bin_words(np.array([1]), "day", same="touching")[1] == "touching"
    assert bin_words(np.array([1]), "day")[1] == "the same day"
