"""Time zones by name, and the zone of this machine."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables import table

from journeyman.jobs.time_zones import get_zone, machine_zone
from journeyman.records.errors import WrongInput


@table(
    ("name", "key"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        ("UTC", "UTC"),
    ],
)
def test_zone_by_name(name: str, key: str) -> None:
    assert get_zone(name).key == key


@table(
    "name",
    [
        *("", "Europe", "../UTC", "/etc/localtime", "a\0b", "\udc80", "x" * 5000, "zone.tab"),
        *("localtime", "right/UTC", "posix/UTC", "RIGHT/utc", "\x1b[31mred"),
    ],
    ids=ascii,
)
def test_invalid_names(name: str) -> None:
    with pytest.raises(WrongInput, match="There is no time zone") as raised:
        get_zone(name)
    assert str(raised.value).isprintable()


@given(st.text(max_size=20))
def test_machine_zone_never_raises(name: str) -> None:
    get_zone(machine_zone({"TZ": name}))


def etc(folder: Path, *, link: str = "", name: str | bytes = b"") -> Path:
    if link:
        (folder / "localtime").symlink_to(link)
    if name:
        (folder / "timezone").write_bytes(name.encode() if isinstance(name, str) else name)
    return folder


@table(
    ("variable", "link", "name", "expected"),
    [
        ("Asia/Kathmandu", "/x/zoneinfo/Europe/Berlin", "Asia/Tokyo", "Asia/Kathmandu"),
        (":Asia/Kathmandu", "", "", "Asia/Kathmandu"),
        ("/usr/share/zoneinfo/Asia/Tokyo", "", "", "Asia/Tokyo"),
        ("", "/x/zoneinfo/Europe/Berlin", "", "UTC"),
        ("Nowhere/Atall", "/x/zoneinfo/Europe/Berlin", "", "Europe/Berlin"),
        (None, "/x/zoneinfo/Europe/Berlin", "Asia/Tokyo", "Europe/Berlin"),
        (None, "../x/zoneinfo/posix/Europe/Berlin", "", "Europe/Berlin"),
        (None, "/x/somewhere", "Asia/Tokyo\n", "Asia/Tokyo"),
        (None, "localtime", "Asia/Tokyo", "Asia/Tokyo"),
        (None, "", "Asia/Tokyo\n", "Asia/Tokyo"),
        (None, "", b"\xff\xfe", "UTC"),
        (None, "", "", "UTC"),
    ],
)
def test_machine_zone_sources(
    tmp_path_factory: pytest.TempPathFactory,
    variable: str | None,
    link: str,
    name: str | bytes,
    expected: str,
) -> None:
    environ = {} if variable is None else {"TZ": variable}
    folder = etc(tmp_path_factory.mktemp("etc"), link=link, name=name)
    assert machine_zone(environ, folder) == expected


def test_chained_links(tmp_path: Path) -> None:
    folder = tmp_path / "zoneinfo" / "Europe"
    folder.mkdir(parents=True)
    (folder / "Berlin").touch()
    (tmp_path / "chosen").symlink_to(folder / "Berlin")
    assert machine_zone({}, etc(tmp_path, link="chosen")) == "Europe/Berlin"
