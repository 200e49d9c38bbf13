"""Changes of memory and skills, written as `Knowledge` writes them."""

from pathlib import Path

from journeyman.agent.knowledge.files import locked, put
from journeyman.agent.knowledge.knowledge import Operation
from journeyman.records import Write


def commit(folder: Path, write: Write, patience_s: float = 10.0) -> None:
    with locked(folder, write.path, patience_s=patience_s):
        put(folder, write)


def add(content: str) -> Operation:
    return Operation(action="add", content=content)


def replace(old_text: str, content: str) -> Operation:
    return Operation(action="replace", old_text=old_text, content=content)


def remove(old_text: str) -> Operation:
    return Operation(action="remove", old_text=old_text)
