"""Undoing changes, and the invariants of any sequence of changes."""

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.agent.knowledge.changes import add, commit

from journeyman.agent.knowledge.knowledge import FILES, Knowledge, parse_entries
from journeyman.records import Write
from journeyman.records.errors import NotWritten

SKILL = "---\nname: deploy\ndescription: How to deploy\n---\nRun it.\n"


@pytest.fixture
def knowledge(tmp_path: Path) -> Knowledge:
    return Knowledge(tmp_path, limits={"memory": 60, "user": 60})


def committed(knowledge: Knowledge, write: Write) -> Write:
    commit(knowledge.folder, write)
    return write


def fill(knowledge: Knowledge, *entries: str) -> None:
    for entry in entries:
        committed(knowledge, knowledge.memory.plan("memory", **add(entry)))


class TestMemory:
    def test_unchanged_file_is_restored_byte_for_byte(self, knowledge: Knowledge) -> None:
        path = knowledge.folder / FILES["memory"]
        path.parent.mkdir()
        path.write_text("\n by hand \n§\nother\n\n")
        write = committed(knowledge, knowledge.memory.plan("memory", **add("new")))
        back = knowledge.undo(write)
        assert path.read_text() == "\n by hand \n§\nother\n\n"
        assert back.summary == "memory: undid: added “new”"
        assert back.action == "undo"
        knowledge.undo(back)
        assert knowledge.memory.entries("memory") == ("by hand", "other", "new")

    def test_file_changed_since_cannot_be_undone(self, knowledge: Knowledge) -> None:
        write = committed(knowledge, knowledge.memory.plan("memory", **add("a")))
        fill(knowledge, "b")
        with pytest.raises(NotWritten, match="changed after “memory: added “a””"):
            knowledge.undo(write)
        assert knowledge.memory.entries("memory") == ("a", "b")


class TestSkills:
    def test_every_change_can_be_undone_and_redone(self, knowledge: Knowledge) -> None:
        skills = knowledge.skills

        def state() -> dict[str, str]:
            return {
                str(path): path.read_text()
                for path in knowledge.folder.rglob("*")
                if path.is_file() and path.name != ".lock"
            }

        for plan in (
            lambda: skills.create("deploy", SKILL),
            lambda: skills.patch("deploy", "Run it.", "Run it twice."),
            lambda: skills.edit("deploy", SKILL + "Then look.\n"),
        ):
            before = state()
            write = committed(knowledge, plan())
            after = state()
            assert after != before
            back = knowledge.undo(write)
            assert state() == before
            knowledge.undo(back)
            assert state() == after

    def test_file_changed_since_cannot_be_undone(self, knowledge: Knowledge) -> None:
        write = committed(knowledge, knowledge.skills.create("deploy", SKILL))
        committed(knowledge, knowledge.skills.patch("deploy", "Run", "Walk"))
        with pytest.raises(NotWritten, match=r"SKILL.md changed after “skill: created deploy”"):
            knowledge.undo(write)


WORDS = st.text(alphabet="ab §\n\u00e9", min_size=1, max_size=8)
OPERATIONS = st.builds(
    dict,
    action=st.sampled_from(["add", "replace", "remove"]),
    content=WORDS,
    old_text=WORDS,
)
CHANGES = st.lists(
    st.tuples(st.sampled_from(["memory", "user"]), OPERATIONS),
    max_size=12,
)
FIRST = st.none() | st.lists(WORDS, max_size=3).map("\n§\n".join)


@given(first=FIRST, changes=CHANGES)
def test_any_sequence_of_changes_keeps_the_format_and_can_be_undone(
    first: str | None, changes: list[tuple[str, dict[str, Any]]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        knowledge = Knowledge(Path(folder), limits={"memory": 40, "user": 30})
        limits = {"memory": 40, "user": 30}
        path = Path(folder) / FILES["memory"]
        if first is not None:
            path.parent.mkdir()
            path.write_bytes(first.encode())
        done = []
        for target, operation in changes:
            assert target in ("memory", "user")
            before = knowledge.memory.entries(target)  # type: ignore[arg-type]
            with suppress(NotWritten):
                write = knowledge.memory.plan(target, **operation)  # type: ignore[arg-type]
                commit(knowledge.folder, write)
                done.append(write)
                entries = knowledge.memory.entries(target)  # type: ignore[arg-type]
                text = (Path(folder) / FILES[target]).read_bytes().decode()
                assert text == "\n§\n".join(entries) == write.after
                assert parse_entries(text) == entries
                assert len(text) <= max(limits[target], len("\n§\n".join(before)))
        for write in reversed(done):
            knowledge.undo(write)
        assert (path.read_bytes().decode() if path.exists() else None) == first
        assert not (Path(folder) / FILES["user"]).exists()
