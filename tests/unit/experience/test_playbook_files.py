"""Writing playbooks into a block of a file, and undoing it."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.experience.playbook_files import PlaybookFiles
from journeyman.records.errors import WrongInput
from journeyman.records.fact import Fact, Playbook


def playbook(name="make test"):
    command = Fact(id="c", kind="command", subject=name, text=f"`{name}`")
    return Playbook(project="app", sessions=3, facts=(command,))


@pytest.fixture
def files():
    return PlaybookFiles()


def test_undo_deletes_a_file_that_was_created(files, tmp_path):
    path = tmp_path / "CLAUDE.md"
    assert files.preview(playbook(), path).startswith("<!-- journeyman playbook: begin")
    assert not path.exists()
    files.write(playbook(), path)
    assert "make test" in path.read_text()
    assert files.preview_undo(path) == ""
    files.undo(path)
    assert not path.exists()


def test_undo_keeps_a_created_file_that_was_edited(files, tmp_path):
    path = tmp_path / "CLAUDE.md"
    files.write(playbook(), path)
    path.write_text(path.read_text() + "Mine.\n")
    files.undo(path)
    assert path.read_text() == "Mine.\n"


def test_repeated_write_changes_nothing(files, tmp_path):
    path = tmp_path / "CLAUDE.md"
    path.write_text("# Title\n")
    files.write(playbook(), path)
    files.write(playbook(), path)
    files.undo(path)
    assert path.read_text() == "# Title\n"


def test_unreadable_and_unwritable_files_are_refused(files, tmp_path):
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(WrongInput, match="cannot be read"):
        files.write(playbook(), tmp_path / "loop")
    with pytest.raises(WrongInput, match="cannot be read"):
        files.write(playbook(), binary)
    assert binary.read_bytes() == b"\xff\xfe\x00"
    with pytest.raises(WrongInput, match="cannot be written"):
        files.write(playbook(), tmp_path / "missing" / "CLAUDE.md")
    with pytest.raises(WrongInput, match="no playbook"):
        files.undo(tmp_path / "CLAUDE.md")


def test_file_mode_and_link_are_kept(files, tmp_path):
    path, link = tmp_path / "AGENTS.md", tmp_path / "CLAUDE.md"
    path.write_text("# Title\n")
    path.chmod(0o640)
    link.symlink_to(path)
    files.write(playbook(), link)
    assert link.is_symlink()
    assert "make test" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o640
    files.undo(path)
    assert path.read_text() == "# Title\n"


def test_links_out_of_the_repository_are_refused(files, tmp_path):
    repository, outside = tmp_path / "repository", tmp_path / "outside"
    for folder in (repository, outside):
        (folder / ".git").mkdir(parents=True)
        (folder / ".git/description").touch()
    files.write(playbook(), outside / "CLAUDE.md")
    (repository / "CLAUDE.md").symlink_to(outside / "CLAUDE.md")
    (repository / "new.md").symlink_to(outside / "new.md")
    (repository / "docs").symlink_to(outside)
    for name in ("CLAUDE.md", "new.md", "docs/CLAUDE.md"):
        with pytest.raises(WrongInput, match="leads out of"):
            files.write(playbook("npm test"), repository / name)
    with pytest.raises(WrongInput, match="leads out of"):
        files.undo(repository / "CLAUDE.md")
    assert "make test" in (outside / "CLAUDE.md").read_text()
    assert not (outside / "new.md").exists()


_texts = st.lists(st.sampled_from(["# A\n", "\n", "\r\n", " ", "\t"]) | st.text(max_size=8)).map(
    lambda parts: "".join(parts).encode("utf-8", "replace")
)


@given(_texts, _texts)
def test_text_outside_the_block_never_changes(before, added):
    with tempfile.TemporaryDirectory() as folder:
        files, path = PlaybookFiles(), Path(folder) / "CLAUDE.md"
        path.write_bytes(before)
        files.write(playbook("make test"), path)
        assert path.read_bytes().startswith(before)
        path.write_bytes(path.read_bytes() + added)
        files.write(playbook("npm test"), path)
        written = path.read_bytes()
        assert written.startswith(before)
        assert written.endswith((b"end -->\n" + added, b"end -->\r\n" + added))
        files.undo(path)
        left = path.read_bytes() if path.exists() else b""
        assert left.split() == (before + b" " + added).split()
