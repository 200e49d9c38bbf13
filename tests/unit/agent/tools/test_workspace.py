"""The workspace: paths inside and outside it, its temporary folder, and hidden folders."""

import pytest
from tests.tables import table

from journeyman.agent.tools.workspace import BadPath, OutOfReach, Workspace
from journeyman.records.errors import BadSetting


@pytest.fixture
def links(root, tmp_path):
    (tmp_path / "outside").mkdir()
    (root / "inner").mkdir()
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "in").symlink_to(root / "inner")
    (root / "file-out").symlink_to("/etc/passwd")
    (root / "loop").symlink_to("loop")


OUTSIDE = [
    *("..", "../x", "inner/../../x", "/", "/etc/passwd", "~", "~/x", "~root/x"),
    *("out", "out/x", "file-out", "in/../../x", "../work2"),
]


@table("path", OUTSIDE)
def test_paths_outside_are_refused(path, workspace, links):
    with pytest.raises(OutOfReach, match="outside the workspace"):
        workspace.find_path(path)


INSIDE = {
    "": ".",
    ".": ".",
    "a": "a",
    "./a/../b": "b",
    "in/x": "inner/x",
    "new/folder/x": "new/folder/x",
    "../work/a": "a",
    "…": "…",
}


@table("path", INSIDE)
def test_paths_inside_are_resolved(path, workspace, links):
    place = workspace.find_path(path)
    assert workspace.shown(place) == INSIDE[path]
    assert workspace.find_path(str(place)) == place


@table("path", ["a\0b", "x" * 300, "loop", "~nobody-has-this-name/x"])
def test_invalid_paths_are_refused(path, workspace, links):
    with pytest.raises(BadPath, match="Invalid path"):
        workspace.find_path(path)


def test_workspace_must_be_a_folder(tmp_path):
    with pytest.raises(BadSetting, match="is not a folder"):
        Workspace(tmp_path / "missing")


def test_temporary_folder_is_private_and_removed_on_close(root):
    workspace = Workspace(root)
    private = workspace.private
    assert private.stat().st_mode & 0o077 == 0
    workspace.close()
    assert not private.exists()


@table("place", ["work/ours", "work", "tools/lib/ours"])
def test_workspace_that_exposes_a_hidden_folder_is_refused(place, root, tmp_path):
    environment = {"PATH": f"{tmp_path}/tools/bin:/usr/bin"}
    with pytest.raises(BadSetting, match="would be able to read"):
        Workspace(
            root,
            environment=environment,
            hidden=[tmp_path / "elsewhere", tmp_path / place],
        )


def test_hidden_folder_is_found_behind_a_link(root, tmp_path):
    (root / "ours").mkdir()
    (tmp_path / "link").symlink_to(root / "ours")
    with pytest.raises(BadSetting, match="would be able to read"):
        Workspace(root, hidden=[tmp_path / "link"])
