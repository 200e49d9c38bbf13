"""The embedding model: wordllama's static vectors, which come inside its wheel and work offline.
The same wheel has a tokenizer; counts made with it are estimates, because each model has its own.
"""

import logging
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from wordllama import WordLlamaInference

Vectors = NDArray[np.float32]

DIMENSIONS = 256
_LONGEST = 2_000
"""Characters of a text that are looked at: a static model only blurs when it sees more."""


class Embedder:
    """Loaded when it is first asked, which takes most of a second; then a text takes some ten
    microseconds.
    """

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A row of length one for each text, or of zeros where a text has no words."""
        if not texts:
            return np.zeros((0, DIMENSIONS), dtype=np.float32)
        vectors = _model().embed([_sound(text)[:_LONGEST] or " " for text in texts])
        found = np.array(vectors, dtype=np.float32)
        found[[not text.strip() for text in texts]] = 0.0
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        return (found / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)

    def similarity(self, text: str, others: Sequence[str]) -> list[float]:
        """How similar a text is to each of others: 1 for the same, about 0 for unrelated."""
        vectors = self.embed([text, *others])
        return [float(one) for one in vectors[1:] @ vectors[0]]

    def count_tokens(self, text: str) -> int:
        """About how many tokens a model would count."""
        return len(_model().tokenizer.encode(_sound(text), add_special_tokens=False).ids)


def _sound(text: str) -> str:
    """The text without half characters, which no encoding has."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


@cache
def _model() -> "WordLlamaInference":
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    import wordllama  # noqa: PLC0415 - half a second, for those who need it

    # Loading it sets up logging for the whole program, which is not for a library to do.
    root.handlers[:] = handlers
    root.setLevel(level)
    folder = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
