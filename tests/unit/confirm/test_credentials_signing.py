"""Signed links, and the signing key."""

import stat
from pathlib import Path

import pytest
from tests.tables import table

from journeyman.confirm.credentials import Signing, read_key
from journeyman.records.errors import OutsideProblem


def test_key_is_created_once_and_readable_only_by_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "new" / "confirm.key"
    key = read_key(path)
    assert read_key(path) == key
    assert len(key) == 64
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["confirm.key"]


@table("content", [b"", b"short", b"\xff" * 64])
def test_invalid_key_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "confirm.key"
    path.write_bytes(content)
    with pytest.raises(OutsideProblem, match="a new one is created"):
        read_key(path)


def test_links_signed_with_another_key_are_invalid() -> None:
    ours, theirs = Signing("a" * 64), Signing("b" * 64)
    link = ours.card_link("c1")
    found = ours.read_link(link)
    assert found is not None
    assert (found.confirmation, found.approver) == ("c1", "")
    assert theirs.read_link(link) is None
    assert ours.button_key() != theirs.button_key()


def test_every_link_is_unique() -> None:
    signing = Signing("a" * 64)
    links = [signing.read_link(signing.login_link("ann")) for _ in range(2)]
    assert links[0] is not None
    assert links[1] is not None
    assert links[0].nonce != links[1].nonce
    assert {one.approver for one in links if one} == {"ann"}
