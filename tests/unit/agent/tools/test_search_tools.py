"""search_files: find lines by regular expression and files by glob."""

import pytest
from tests.tables import table

from journeyman.agent.tools.tool import ToolLimits


@pytest.fixture(autouse=True)
def files(root, tmp_path):
    for path, text in {
        "b.py": "import os\nimport sys\n",
        "a/c.py": "import os\r\n",
        "a/notes.md": "os is important\n",
        ".git/config": "import os\n",
        "node_modules/x.js": "import os\n",
        "data.bin": "import os\0",
        "large.txt": "import os\n" + "x" * 6_000_000,
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())
    (tmp_path / "outside.py").write_text("import os\n")
    (root / "link.py").symlink_to(tmp_path / "outside.py")
    (root / "again.py").symlink_to("b.py")
    (root / "around").symlink_to(".")


def test_matches_are_ordered_by_path_and_line(use):
    assert use("search_files", pattern="zebra").content == {"total_count": 0}
    assert use("search_files", pattern=r"import \w+").content == {
        "total_count": 3,
        "matches": [
            {"path": "a/c.py", "line": 1, "content": "import os"},
            {"path": "b.py", "line": 1, "content": "import os"},
            {"path": "b.py", "line": 2, "content": "import sys"},
        ],
    }


@table(
    ("arguments", "paths"),
    [
        ({"path": "a"}, ["a/c.py", "a/notes.md"]),
        ({"path": "b.py"}, ["b.py"]),
        ({"file_glob": "*.py"}, ["a/c.py", "b.py"]),
        ({"file_glob": "**/*.md"}, ["a/notes.md"]),
        ({"file_glob": "a/*.py"}, ["a/c.py"]),
        ({"path": ".git"}, [".git/config"]),
    ],
    ids=["folder", "file", "glob", "any folder", "one folder", "ignored but requested"],
)
def test_path_and_glob_narrow_the_search(use, arguments, paths):
    content = use("search_files", pattern=r"\bos\b", **arguments).content
    assert [match["path"] for match in content["matches"]] == paths


def test_files_by_name(use):
    assert use("search_files", pattern="zebra", target="files").content == {"total_count": 0}
    content = use("search_files", pattern="*.py", target="files").content
    assert content == {"total_count": 2, "files": ["a/c.py", "b.py"]}


def test_slow_pattern_times_out(use, root):
    (root / "trap.txt").write_text("a" * 50 + "b\n")
    limits = ToolLimits(search_s=0.3)
    content = use("search_files", pattern="(a+)+$", path="trap.txt", limits=limits).content
    assert content["error"].startswith("Search timed out after 0.3s.")


def test_cancelled_search_ends(use, root):
    (root / "trap.txt").write_text("a" * 50 + "b\n")
    polls = []

    def cancelled():
        polls.append(1)
        return len(polls) > 2

    result = use("search_files", pattern="(a+)+$", path="trap.txt", cancelled=cancelled)
    assert result.recorded.interrupted
