"""The embedding model: wordllama's static vectors, which ship in its wheel and work offline. The
wheel also has a tokenizer; its counts are estimates, because each model has its own.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from journeyman.records.errors import MissingPart
from journeyman.text.display import replace_surrogates

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Vectors = NDArray[np.float32]

DIMENSIONS = 256
_LONGEST = 2_000
"""How many characters of a text are embedded: the average over a longer text is less specific."""


class Embedder:
    """Embeds texts and counts tokens. The model is loaded on first use, in a tenth of a second; a
    text takes ten microseconds.
    """

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a unit vector for each text, or zeros for a text without words."""
        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        if not texts:
            return vectors
        weights, _ = _model()
        for row, text, ids in zip(
            vectors, texts, _tokens([text[:_LONGEST] for text in texts]), strict=True
        ):
            if text.strip():
                tokens = np.minimum(ids, len(weights) - 1)
                row[:] = weights[tokens].sum(axis=0, dtype=np.float32) / np.float32(len(tokens))
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return (vectors / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)

    def similarity(self, text: str, others: Sequence[str]) -> list[float]:
        """Return how similar a text is to each of the others: 1 if equal, about 0 if unrelated."""
        vectors = self.embed([text, *others])
        return [float(cosine) for cosine in vectors[1:] @ vectors[0]]

    def count_tokens(self, text: str) -> int:
        """Return about how many tokens a model would count."""
        return self.token_counts([text])[text]

    def token_counts(self, texts: Iterable[str]) -> dict[str, int]:
        """Return the token counts of many texts, in half the time of one by one."""
        distinct = list(dict.fromkeys(texts))
        return dict(zip(distinct, map(len, _tokens(distinct)), strict=True))


def _tokens(texts: Sequence[str]) -> Iterator[list[int]]:
    _, tokenizer = _model()
    encodings = tokenizer.encode_batch_fast(
        [replace_surrogates(text) for text in texts], add_special_tokens=False
    )
    return (encoding.ids for encoding in encodings)


@cache
def _model() -> "tuple[NDArray[np.float16], Tokenizer]":
    """Return the vectors and the tokenizer. They are read without wordllama's own code, which loads
    an HTTP client and takes four times as long in every process.
    """
    from safetensors.numpy import load_file  # noqa: PLC0415 - only where it is needed
    from tokenizers import Tokenizer  # noqa: PLC0415

    spec = find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise MissingPart(
            "Learning and openings need wordllama, which is not installed. Install it with: pip "
            "install wordllama"
        )
    folder = Path(spec.origin).parent
    weights = load_file(folder / "weights" / "l2_supercat_256.safetensors")["embedding.weight"]
    tokenizer = Tokenizer.from_file(
        str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json")
    )
    # Padding would make all texts of a batch as long as the longest.
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return weights, tokenizer
