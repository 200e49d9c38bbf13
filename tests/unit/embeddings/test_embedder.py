"""Texts as vectors and tokens, with the real model."""

import subprocess
import sys

import numpy as np
import pytest
from tests.tables import table

from journeyman.embeddings.embedder import DIMENSIONS, Embedder

EMBEDDER = Embedder()
TEXTS = ["Cancel my flight to Oslo", "I want to cancel a flight", "Run the unit tests", "größer 🛫"]


def test_each_text_has_a_row_of_length_one():
    vectors = EMBEDDER.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), DIMENSIONS)
    assert vectors.dtype == np.float32
    assert EMBEDDER.embed([]).shape == (0, DIMENSIONS)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)


def test_like_meanings_are_near():
    vectors = EMBEDDER.embed(TEXTS)
    like, unlike = vectors[0] @ vectors[1], vectors[0] @ vectors[2]
    assert like > 0.35
    assert unlike < 0.2


def test_a_text_has_one_vector_whatever_stands_beside_it():
    together = EMBEDDER.embed(TEXTS)
    for text, vector in zip(TEXTS, together, strict=True):
        assert np.array_equal(EMBEDDER.embed([text])[0], vector)


@table("text", ["", " ", "\n\t"])
def test_nothing_is_near_to_an_empty_text(text):
    assert not EMBEDDER.embed([text, "word"])[0].any()


@table("text", ["\ud800 half", "a\x00b", "x" * 100_000, "字" * 10_000])
def test_odd_texts_are_no_trouble(text):
    assert np.isfinite(EMBEDDER.embed([text])).all()
    assert EMBEDDER.count_tokens(text) > 0


def test_tokens_are_counted():
    assert EMBEDDER.count_tokens("") == 0
    assert EMBEDDER.count_tokens("hello") == 1
    words = EMBEDDER.count_tokens("one two three four five six seven")
    assert 7 <= words <= 9
    assert EMBEDDER.count_tokens("one two three four five six seven " * 300) > 250 * words / 1.2


def test_loading_it_leaves_the_programs_logging_alone():
    script = (
        "import logging; from journeyman.embeddings.embedder import Embedder; "
        "Embedder().count_tokens('x'); root = logging.getLogger(); "
        "print(root.handlers, root.level == logging.WARNING)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("[] True\n", "")
