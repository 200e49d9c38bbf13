"""Text embeddings and token counts, with the real model."""

import numpy as np
import pytest
from tests.tables import table

from journeyman.models.embedder import DIMENSIONS, Embedder

EMBEDDER = Embedder()
TEXTS = ["Cancel my flight to Oslo", "I want to cancel a flight", "Run the unit tests", "größer 🛫"]


def test_vectors_have_unit_length():
    vectors = EMBEDDER.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), DIMENSIONS)
    assert vectors.dtype == np.float32
    assert EMBEDDER.embed([]).shape == (0, DIMENSIONS)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)


def test_similar_meanings_are_near():
    vectors = EMBEDDER.embed(TEXTS)
    like, unlike = vectors[0] @ vectors[1], vectors[0] @ vectors[2]
    assert like > 0.35
    assert unlike < 0.2


@table("text", ["", " ", "\n\t"])
def test_an_empty_text_has_a_zero_vector(text):
    assert not EMBEDDER.embed([text, "word"])[0].any()


@table("text", ["\ud800 half", "a\x00b", "x" * 100_000, "字" * 10_000])
def test_odd_texts_can_be_embedded(text):
    assert np.isfinite(EMBEDDER.embed([text])).all()
    assert EMBEDDER.count_tokens(text) > 0


def test_tokens_are_counted():
    assert EMBEDDER.count_tokens("") == 0
    assert EMBEDDER.count_tokens("hello") == 1
    words = EMBEDDER.count_tokens("one two three four five six seven")
    assert 7 <= words <= 9
    assert EMBEDDER.count_tokens("one two three four five six seven " * 300) > 250 * words / 1.2
