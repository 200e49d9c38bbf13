"""read_file, write_file and patch on real files."""

import os
import stat

from tests.tables import table

from journeyman.agent.tools.files import LARGEST_FILE
from journeyman.agent.tools.tool import ToolLimits


class TestReading:
    def test_lines_are_numbered(self, use, root):
        (root / "a.txt").write_text("one\n\nthree\n")
        assert use("read_file", path="a.txt").content == {
            "content": "1|one\n2|\n3|three",
            "total_lines": 3,
            "file_size": 11,
            "truncated": False,
            "is_binary": False,
        }

    def test_offset_and_limit(self, use, root):
        (root / "a.txt").write_text("".join(f"l{n}\n" for n in range(1, 10)))
        content = use("read_file", path="a.txt", offset=3, limit=2).content
        assert content["content"] == "3|l3\n4|l4"
        assert content["truncated"]
        assert content["hint"] == "Read on with offset 5."
        rest = use("read_file", path="a.txt", offset=8, limit=10**30).content
        assert (rest["content"], rest["truncated"]) == ("8|l8\n9|l9", False)

    def test_output_is_limited_in_characters(self, use, root):
        (root / "a.txt").write_text("abcdef\n" * 10)
        content = use("read_file", path="a.txt", limits=ToolLimits(read_characters=20)).content
        assert content["content"] == "1|abcdef\n2|abcdef"
        assert content["hint"] == "Read on with offset 3."

    @table(
        ("data", "shown"),
        [
            (b"", ""),
            ("a\u2028b\x0bc\r\nd".encode(), "1|a\u2028b\x0bc\n2|d"),
            (b"caf\xe9\n", "1|caf�"),
        ],
        ids=["empty", "only newlines separate lines", "invalid UTF-8 is replaced"],
    )
    def test_unusual_texts(self, use, root, data, shown):
        (root / "a.txt").write_bytes(data)
        assert use("read_file", path="a.txt").content["content"] == shown

    def test_binary_files_are_flagged(self, use, root):
        (root / "a.bin").write_bytes(b"a\0b")
        assert use("read_file", path="a.bin").content["is_binary"]

    def test_large_files_pipes_and_folders_are_refused(self, use, root):
        with (root / "a.log").open("wb") as file:
            file.truncate(LARGEST_FILE + 1)
        os.mkfifo(root / "pipe")
        for path, reason in (("a.log", "too large"), ("pipe", "plain file"), (".", "is a folder")):
            assert reason in use("read_file", path=path).content["error"]


class TestWriting:
    def test_new_file_in_a_new_folder(self, use, root):
        assert use("write_file", path="a/b/c.txt", content="grüß\n").content == {
            "bytes_written": 7,
            "dirs_created": True,
            "resolved_path": str(root / "a/b/c.txt"),
            "files_modified": ["a/b/c.txt"],
        }
        assert (root / "a/b/c.txt").read_bytes() == "grüß\n".encode()
        assert not use("write_file", path="a/b/d.txt", content="").content["dirs_created"]

    def test_existing_file_keeps_its_mode(self, use, root):
        (root / "run.sh").write_text("old")
        (root / "run.sh").chmod(0o750)
        use("write_file", path="run.sh", content="new")
        assert (root / "run.sh").read_text() == "new"
        assert stat.S_IMODE((root / "run.sh").stat().st_mode) == 0o750

    def test_failed_write_changes_nothing(self, use, root, tmp_path):
        (root / "folder").mkdir()
        (root / "file").write_text("old")
        (tmp_path / "elsewhere").mkdir()
        (root / "out").symlink_to(tmp_path / "elsewhere")
        for path in ("folder", "file/x", "../x", "out/x"):
            content = use("write_file", path=path, content="new").content
            assert content["bytes_written"] == 0
            assert content["error"]
        found = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*"))
        assert found == ["elsewhere", "work", "work/file", "work/folder", "work/out"]
        assert (root / "file").read_text() == "old"


class TestPatching:
    def patch(self, use, root, before, old, new, **more):
        (root / "a.py").write_bytes(before if isinstance(before, bytes) else before.encode())
        return use("patch", path="a.py", old_string=old, new_string=new, **more).content

    def test_replacement_returns_a_diff(self, use, root):
        content = self.patch(use, root, "a = 1\nb = 2\n", "b = 2", "b = 3")
        assert content == {
            "success": True,
            "diff": "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n a = 1\n-b = 2\n+b = 3",
            "files_modified": ["a.py"],
        }
        assert (root / "a.py").read_text() == "a = 1\nb = 3\n"

    @table(
        ("before", "old", "error"),
        [
            ("import os\n", "zzzzzzzzzz", "Could not find old_string"),
            ("x\ny\nx\n", "x", "Found 2 matches for old_string."),
        ],
        ids=["missing", "two matches"],
    )
    def test_failed_replacement_changes_nothing(self, use, root, before, old, error):
        content = self.patch(use, root, before, old, "a = 2")
        assert not content["success"]
        assert error in content["error"]
        assert (root / "a.py").read_text() == before

    def test_line_endings_are_kept(self, use, root):
        content = self.patch(use, root, b"a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n")
        assert content["success"]
        assert (root / "a.py").read_bytes() == b"x\r\ny\r\nc\r\n"

    def test_invalid_utf8_is_kept(self, use, root):
        content = self.patch(use, root, b"caf\xe9 = 1\n", "= 1", "= 2")
        assert (root / "a.py").read_bytes() == b"caf\xe9 = 2\n"
        assert "+caf� = 2" in content["diff"]
