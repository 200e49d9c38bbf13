"""Writes hold a lock, overwrite only the content that was read, and leave nothing half done."""

import fcntl
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.tables import table
from tests.unit.agent.knowledge.changes import add, commit
from tests.waiting import LONGEST_S

from journeyman.agent.knowledge.knowledge import Memory
from journeyman.records import Write
from journeyman.records.errors import NotWritten


def skill_write(path: str, before: str | None, after: str | None) -> Write:
    return Write(kind="skill", action="edit", path=path, before=before, after=after)


def files(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(".lock")
    }


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_and_folders_are_private_to_the_owner(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    commit(home, skill_write("skills/web/deploy/SKILL.md", None, "text"))
    commit(home, Memory(home).plan("memory", **add("text")))
    assert files(home) == {"skills/web/deploy/SKILL.md": "text", "memories/MEMORY.md": "text"}
    for path in home.rglob("*"):
        assert mode(path) == (0o700 if path.is_dir() else 0o600), path
    assert (mode(home), mode(home.parent)) == (0o700, 0o700)


@table("found", ["other", None], ids=["changed", "deleted"])
def test_concurrent_change_is_not_overwritten(tmp_path: Path, found: str | None) -> None:
    home = tmp_path / str(found)
    path = home / "memories" / "USER.md"
    commit(home, Memory(home).plan("user", **add("first")))
    plan = Memory(home).plan("user", **add("second"))
    if found is None:
        path.unlink()
    else:
        path.write_text(found)
    with pytest.raises(NotWritten, match="changed in the meantime"):
        commit(home, plan)
    assert (path.read_text() if path.exists() else None) == found


class TestFolders:
    def test_empty_skill_folders_are_removed(self, tmp_path: Path) -> None:
        commit(tmp_path, skill_write("skills/web/a/references/x.md", None, "x"))
        commit(tmp_path, skill_write("skills/web/a/references/x.md", "x", None))
        assert [path.name for path in (tmp_path / "skills").iterdir()] == [".lock"]


class TestLocks:
    def test_memory_uses_the_lock_file_of_hermes(self, tmp_path: Path) -> None:
        (tmp_path / "memories").mkdir()
        with (tmp_path / "memories" / "USER.md.lock").open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with pytest.raises(NotWritten, match="Another program holds"):
                commit(tmp_path, Memory(tmp_path).plan("user", **add("tea")), timeout_s=0.05)
            commit(tmp_path, Memory(tmp_path).plan("memory", **add("tea")))
        assert Memory(tmp_path).entries("user") == ()
        commit(tmp_path, Memory(tmp_path).plan("user", **add("tea")))
        assert Memory(tmp_path).entries("user") == ("tea",)

    def test_concurrent_processes_lose_no_entry(self, tmp_path: Path) -> None:
        program = """
import sys
from pathlib import Path
from journeyman.agent.knowledge.knowledge import Knowledge
who, folder = sys.argv[1:]
knowledge = Knowledge(Path(folder), limits={"memory": 100_000, "user": 100_000})
print("ready", flush=True)
sys.stdin.readline()
for number in range(25):
    old = f"{who} {number}"
    changes = [dict(action="add", content=old)]
    if number % 5 == 4:
        changes += [dict(action="replace", old_text=old, content=old + " again")]
    for change in changes:
        knowledge.change("memory", lambda: knowledge.memory.plan("memory", **change))
"""
        started = [
            subprocess.Popen(
                [sys.executable, "-c", program, who, str(tmp_path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for who in ("one", "other", "third")
        ]
        for process in started:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in started:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in started:
            process.communicate(timeout=LONGEST_S)
            assert process.returncode == 0
        expected = {
            f"{who} {number}" + (" again" if number % 5 == 4 else "")
            for who in ("one", "other", "third")
            for number in range(25)
        }
        entries = Memory(tmp_path).entries("memory")
        assert set(entries) == expected
        assert len(entries) == 75
        assert not list((tmp_path / "memories").glob("*.tmp"))
