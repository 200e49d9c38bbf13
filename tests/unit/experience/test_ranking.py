"""Ranking documents by words and by meaning, of requests and of calls."""

import math

import numpy as np
import pytest
from tests.tables import table

from journeyman.experience.experience import Bm25, Index
from journeyman.learning.search_keys import task_words, words

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
    def test_word_forms_are_normalised(self, one, other):
        assert list(words(one)) == list(words(other))

    def test_any_words_are_numbered(self):
        # Different words stay different.
        assert len({*words("cancel"), *words("book"), *words("return")}) == 3

        # Lone surrogates are accepted.
        assert len(words("a\ud800bc")) > 0

    @table(
        ("text", "written_as_one"),
        [
            ("the time stamp", "timestamp"),
            ("two time stamps", "timestamp"),
            ("empty the garbage can", "garbagecan"),
            ("checkTimeStamp", "timestamp"),
        ],
    )
    def test_neighbouring_words_match_compounds(self, text, written_as_one):
        assert set(words(written_as_one)) <= set(task_words(text))


class TestBm25:
    def test_scores(self):
        # Calculated by hand for the second document: three words, with an average length of 9/4.
        scores = bm25(*DOCUMENTS).scores(words("order"))
        rarity = math.log(1 + (4 - 1 + 0.5) / (1 + 0.5))
        length = 1.2 * (1 - 0.75 + 0.75 * 3 / (9 / 4))
        assert scores == pytest.approx([0, rarity * 2 * 2.2 / (2 + length), 0, 0])

        # Rare words weigh more, long documents less.
        scores = bm25(*DOCUMENTS).scores(words("cancel the flight"))
        assert scores[0] > scores[1] > 0
        assert scores[0] > scores[2] > 0

    @table("asked", ["", "zebra"])
    def test_unknown_words_match_nothing(self, asked):
        assert not bm25(*DOCUMENTS).scores(words(asked)).any()


def unit(*numbers: float) -> np.ndarray:
    vector = np.array(numbers, dtype=np.float32)
    return vector / np.linalg.norm(vector)


class TestIndex:
    def index(self) -> Index:
        vectors = np.array([unit(1, 0), unit(1, 1), unit(0, 1), unit(-1, 0)])
        none = [words("")] * len(DOCUMENTS)
        requests = [words(one) for one in DOCUMENTS]
        return Index([2, 3, 5, 9], vectors, requests, np.zeros_like(vectors), none)

    def test_order_of_results(self):
        # The document nearest by both measures comes first, one of opposite meaning last.
        found = self.index().nearest(unit(1, 0.2), words("cancel flight"), most=4)
        assert (found[0].row, found[-1].row) == (2, 9)
        assert {one.row for one in found} == {2, 3, 5, 9}
        assert found[0].similarity == pytest.approx(float(unit(1, 0) @ unit(1, 0.2)), abs=1e-5)
        assert found[-1].similarity < 0

        # If no document has anything in common with the task, all are equally near.
        found = self.index().nearest(np.zeros(2, dtype=np.float32), words("zebra"), most=4)
        assert [one.row for one in found] == [2, 3, 5, 9]

        # Shared words find documents that meaning does not.
        found = self.index().nearest(unit(0, 1), words("order"), most=2)
        assert {one.row for one in found} == {3, 5}


class TestCalls:
    """A library of 40 requests of two kinds; a third of each kind has unusual wording."""

    def index(self) -> Index:
        requests, calls, call_vectors = [], [], []
        for at in range(40):
            requests.append(unit(0, 0, 1) if at % 3 == 0 else unit(1, 0.2, 0))
            calls.append(words("drop_order" if at < 20 else "book_seat"))
            call_vectors.append(unit(0, 1, 0) if at < 20 else unit(0, -1, 0))
        kinds = [words("cancel" if at < 20 else "reserve") for at in range(40)]
        none = words("")
        return Index(
            range(40),
            np.array(requests),
            [none if at % 3 == 0 else kind for at, kind in enumerate(kinds)],
            np.array(call_vectors),
            calls,
        )

    def test_task_is_matched_with_calls(self):
        found = self.index().nearest(unit(0, 1, 0), words("drop"), most=20)
        assert {one.row for one in found} == set(range(20))

    def test_feedback_finds_requests_with_the_same_calls(self):
        found = self.index().nearest(unit(1, 0, 0), words("cancel"), most=40)
        place = {one.row: at for at, one in enumerate(found)}
        unusual = [row for row in range(40) if row % 3 == 0]
        same_calls = [place[row] for row in unusual if row < 20]
        other_calls = [place[row] for row in unusual if row >= 20]
        assert max(same_calls) < min(other_calls)

    def test_similarity_compares_requests(self):
        found = self.index().nearest(unit(0, 0, 1), words("cancel"), most=40)
        near = {one.row: one.similarity for one in found}
        assert near[0] == pytest.approx(1.0)
        assert near[1] == pytest.approx(0.0)

    def test_ranking_is_deterministic(self):
        asked = (unit(1, 0.3, 0.2), words("cancel the order"))
        first = self.index().nearest(*asked, most=7)
        assert first == self.index().nearest(*asked, most=7)
