"""The workspace: which paths are inside it, and what it leaves behind."""

import gc
from pathlib import Path

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


@table("given", OUTSIDE)
def test_paths_that_lead_out(given, workspace, links):
    with pytest.raises(OutOfReach, match="outside the workspace"):
        workspace.find_path(given)


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


@table("given", INSIDE)
def test_paths_that_stay_inside(given, workspace, links):
    place = workspace.find_path(given)
    assert workspace.shown(place) == INSIDE[given]
    assert workspace.find_path(str(place)) == place


@table("given", ["a\0b", "x" * 300, "loop", "~nobody-has-this-name/x"])
def test_paths_that_the_system_does_not_take(given, workspace, links):
    with pytest.raises(BadPath, match="Invalid path"):
        workspace.find_path(given)


def test_the_workspace_itself_may_be_given_by_a_link(root, tmp_path):
    (tmp_path / "link").symlink_to(root)
    with Workspace(tmp_path / "link") as workspace:
        assert workspace.root == root.resolve()


def test_a_workspace_has_to_be_a_folder(tmp_path):
    with pytest.raises(BadSetting, match="is not a folder"):
        Workspace(tmp_path / "missing")


def test_the_temporary_folder_is_private_and_goes(root):
    workspace = Workspace(root)
    private = workspace.private
    assert private.stat().st_mode & 0o077 == 0
    workspace.close()
    assert not private.exists()


def test_the_temporary_folder_goes_with_a_forgotten_workspace(root):
    private: Path = Workspace(root).private
    gc.collect()
    assert not private.exists()


@table("place", ["work/ours", "work", "tools/lib/ours"])
def test_a_workspace_that_would_open_what_is_hidden_is_refused(place, root, tmp_path):
    environment = {"PATH": f"{tmp_path}/tools/bin:/usr/bin"}
    with pytest.raises(BadSetting, match="would be able to read"):
        Workspace(
            root,
            environment=environment,
            hidden=[tmp_path / "elsewhere", tmp_path / place],
        )


def test_what_is_hidden_is_found_behind_a_link(root, tmp_path):
    (root / "ours").mkdir()
    (tmp_path / "link").symlink_to(root / "ours")
    with pytest.raises(BadSetting, match="would be able to read"):
        Workspace(root, hidden=[tmp_path / "link"])


@table("place", ["ours", "work2", "tools/data", "/etc/ours", "/usr/lib/ours"])
def test_what_is_hidden_elsewhere_is_no_hindrance(place, root, tmp_path):
    environment = {"PATH": f"{tmp_path}/tools/bin:/usr/bin"}
    with Workspace(root, environment=environment, hidden=[tmp_path / place]) as workspace:
        assert workspace.root == root
