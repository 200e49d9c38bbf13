"""The embedding model: wordllama's static vectors, which come inside its wheel and work offline.
The same wheel has a tokenizer; counts made with it are estimates, because each model has its own.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from journeyman.records.errors import MissingPart

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Vectors = NDArray[np.float32]

DIMENSIONS = 256
_LONGEST = 2_000
"""Characters of a text that are looked at: a static model only blurs when it sees more."""


class Embedder:
    """Loaded when first asked, in a tenth of a second; a text takes ten microseconds."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A row of length one for each text, or of zeros where a text has no words."""
        found = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        if not texts:
            return found
        weights, _ = _model()
        for row, text, ids in zip(
            found, texts, _tokens([text[:_LONGEST] for text in texts]), strict=True
        ):
            if text.strip():
                tokens = np.minimum(ids, len(weights) - 1)
                row[:] = weights[tokens].sum(axis=0, dtype=np.float32) / np.float32(len(tokens))
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        return (found / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)

    def similarity(self, text: str, others: Sequence[str]) -> list[float]:
        """How similar a text is to each of others: 1 for the same, about 0 for unrelated."""
        vectors = self.embed([text, *others])
        return [float(one) for one in vectors[1:] @ vectors[0]]

    def count_tokens(self, text: str) -> int:
        """About how many tokens a model would count."""
        return self.token_counts([text])[text]

    def token_counts(self, texts: Iterable[str]) -> dict[str, int]:
        """The same for many texts at once, which takes half the time."""
        found = list(dict.fromkeys(texts))
        return dict(zip(found, map(len, _tokens(found)), strict=True))


def _tokens(texts: Sequence[str]) -> Iterator[list[int]]:
    _, tokenizer = _model()
    found = tokenizer.encode_batch_fast([_sound(text) for text in texts], add_special_tokens=False)
    return (one.ids for one in found)


def _sound(text: str) -> str:
    """The text without half characters, which no encoding has."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


@cache
def _model() -> "tuple[NDArray[np.float16], Tokenizer]":
    """The vectors and the tokenizer. They are read without wordllama's own code, which loads an
    HTTP client and more: that takes four times as long, in every process.
    """
    from safetensors.numpy import load_file  # noqa: PLC0415 - for those who need it
    from tokenizers import Tokenizer  # noqa: PLC0415

    found = find_spec("wordllama")
    if found is None or found.origin is None:
        raise MissingPart("Learning and openings need wordllama: pip install wordllama.")
    folder = Path(found.origin).parent
    weights = load_file(folder / "weights" / "l2_supercat_256.safetensors")["embedding.weight"]
    tokenizer = Tokenizer.from_file(
        str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json")
    )
    # Texts of one call would otherwise all become as long as the longest.
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return weights, tokenizer
