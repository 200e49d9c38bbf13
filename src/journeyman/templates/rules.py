"""A name for the rules of learning as they are now. What was learned under another name may not be
what would be learned today, and is learned again.
"""

import hashlib
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

from journeyman.version import __version__

_RULES = (
    *("outcomes", "redaction", "templates", "embeddings"),
    *("records", "judging.py", "reliability/task_types.py"),
)


def rules_name(trivial: Iterable[str]) -> str:
    """A digest of all that takes part, of the version of the vectors, and of the tools that count
    as trivial. The files are read and not loaded: asking whether anything is new must cost nothing.
    """
    digest = hashlib.sha256(repr((__version__, sorted(trivial))).encode())
    for path in (*_sources(), *_vectors()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _sources() -> Iterator[Path]:
    for name in _RULES:
        place = Path(__file__).parents[1] / name
        yield from [place] if place.is_file() else sorted(place.rglob("*.py"))


def _vectors() -> Iterator[Path]:
    """Where the package of the vectors says which version it is."""
    package = find_spec("wordllama")
    if package is not None and package.origin is not None:
        yield from Path(package.origin).parent.glob("_version.py")
