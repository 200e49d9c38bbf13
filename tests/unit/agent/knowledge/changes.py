"""Helpers that apply changes to memory and skills the way `Knowledge` does."""

from pathlib import Path
from typing import Any

from journeyman.agent.knowledge.files import apply_write, locked
from journeyman.records import Write


def commit(folder: Path, write: Write, timeout_s: float = 10.0) -> None:
    with locked(folder, write.path, timeout_s=timeout_s):
        apply_write(folder, write)


def add(content: str) -> dict[str, Any]:
    return {"action": "add", "content": content}


def replace(old_text: str, content: str) -> dict[str, Any]:
    return {"action": "replace", "old_text": old_text, "content": content}


def remove(old_text: str) -> dict[str, Any]:
    return {"action": "remove", "old_text": old_text}
