"""The audit's head, noted outside the table."""

import stat
from pathlib import Path

import pytest
from tests.tables import table

from journeyman.confirm.anchor import Anchor
from journeyman.records.errors import OutsideProblem


def test_what_was_noted_last_is_read(tmp_path: Path) -> None:
    anchor = Anchor(tmp_path / "new" / "confirm.anchor")
    assert anchor.read() is None
    for seq, digest in ((1, "b" * 64), (99_999_999_999, "a" * 64)):
        anchor.write(seq, digest)
        assert anchor.read() == (seq, digest)
        assert Anchor(anchor.path).read() == (seq, digest)
    anchor.close()
    assert stat.S_IMODE(anchor.path.stat().st_mode) == 0o600
    anchor.write(2, "c" * 64)  # by a process that is late
    assert anchor.read() == (99_999_999_999, "a" * 64)
    anchor.write(2, "c" * 64, lowers=True)
    assert anchor.read() == (2, "c" * 64)
    anchor.close()


@table(
    "content",
    [b"", b"5", b"x:" + b"a" * 64, b"5:abc", b"\xff", b"-1:" + b"a" * 64],
    ids=["empty", "no_digest", "no_number", "short", "no_text", "negative"],
)
def test_what_is_no_head_is_said(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "confirm.anchor"
    path.write_bytes(content)
    with pytest.raises(OutsideProblem, match=r"confirm\.anchor (is not a head|cannot be read)"):
        Anchor(path).read()
