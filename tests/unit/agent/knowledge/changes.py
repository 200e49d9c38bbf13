"""Changes of memory and skills, written as `Knowledge` writes them."""

from pathlib import Path

from journeyman.agent.knowledge.committing import locked, put
from journeyman.records import Write


def commit(folder: Path, write: Write, patience_s: float = 10.0) -> None:
    with locked(folder, write.path, patience_s=patience_s):
        put(folder, write)
