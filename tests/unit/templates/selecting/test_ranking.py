"""Which patterns are nearest: by words, by meaning, by both."""

import math

import numpy as np
import pytest
from tests.tables import table
from tests.turns import pattern

from journeyman.templates.selecting.bm25 import Bm25
from journeyman.templates.selecting.ranking import Index
from journeyman.templates.selecting.words import words, words_of

DOCUMENTS = ["cancel flight", "cancel order order", "book flight hotel car", ""]


def bm25(*documents: str) -> Bm25:
    return Bm25([words(one) for one in documents])


class TestWords:
    @table(
        ("one", "other"),
        [
            ("Cancelled flights", "cancel FLIGHT"),
            ("get_user_details", "get user detail"),
            ("getUserDetails", "get user details"),
            ("I would like to please", ""),
        ],
    )
    def test_forms_of_one_word_are_one(self, one, other):
        assert list(words(one)) == list(words(other))

    def test_words_of_a_pattern(self):
        # Other words are others.
        assert len({*words("cancel"), *words("book"), *words("return")}) == 3

        # A pattern is found by intent tools and names of arguments.
        found = set(words_of(pattern("Cancel it", "drop_order")))
        assert {*words("cancel"), *words("drop order"), *words("id")} <= found

        # Half characters are no trouble.
        assert len(words("a\ud800bc")) > 0


class TestBm25:
    def test_known_answer(self):
        # Known answer. Worked out by hand for the second document: three words, an average of nine
        # fourths.
        scores = bm25(*DOCUMENTS).scores(words("order"))
        rarity = math.log(1 + (4 - 1 + 0.5) / (1 + 0.5))
        length = 1.2 * (1 - 0.75 + 0.75 * 3 / (9 / 4))
        assert scores == pytest.approx([0, rarity * 2 * 2.2 / (2 + length), 0, 0])

        # Rare words weigh more and long documents less.
        scores = bm25(*DOCUMENTS).scores(words("cancel the flight"))
        assert scores[0] > scores[1] > 0
        assert scores[0] > scores[2] > 0

    @table("asked", ["", "zebra"])
    def test_what_nobody_has_matches_nothing(self, asked):
        assert not bm25(*DOCUMENTS).scores(words(asked)).any()

    @table("documents", [[], [""], ["", ""]])
    def test_no_words_at_all(self, documents):
        assert bm25(*documents).scores(words("cancel")).shape == (len(documents),)


def unit(*numbers: float) -> np.ndarray:
    vector = np.array(numbers, dtype=np.float32)
    return vector / np.linalg.norm(vector)


class TestIndex:
    def index(self) -> Index:
        vectors = np.array([unit(1, 0), unit(1, 1), unit(0, 1), unit(-1, 0)])
        return Index([2, 3, 5, 9], vectors, [words(one) for one in DOCUMENTS])

    def test_the_order(self):
        # What is high in both orders comes first.
        found = self.index().nearest(unit(1, 0.2), words("cancel flight"), most=4)
        assert found[0].row == 2
        assert {one.row for one in found} == {2, 3, 5, 9}
        assert found[0].similarity == pytest.approx(float(unit(1, 0) @ unit(1, 0.2)))
        assert found[0].score == pytest.approx(2 / 60)

        # Words bring up what meaning does not.
        found = self.index().nearest(unit(1, 0), words("hotel"), most=1)
        assert {one.row for one in found} == {2, 5}

        # Equal ones have one place and are taken together.
        same = np.array([unit(1, 0)] * 20)
        index = Index(range(20), same, [words("x")] * 20)
        found = index.nearest(unit(1, 0), words("x"), most=10)
        assert [one.row for one in found] == list(range(20))
        assert {one.score for one in found} == {2 / 60}

        # Of very many equal ones some are left out.
        same = np.array([unit(1, 0)] * 500)
        index = Index(range(500), same, [words("x")] * 500)
        assert len(index.nearest(unit(1, 0), words("x"), most=10)) == 20

    def test_rows(self):
        # An empty library.
        index = Index([], np.zeros((0, 2), dtype=np.float32), [])
        assert len(index) == 0
        assert index.nearest(unit(1, 0), words("x"), most=5) == []

        # The vectors of rows.
        assert self.index().vectors_of([5, 2]) == pytest.approx(np.array([unit(0, 1), unit(1, 0)]))
