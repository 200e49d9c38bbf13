"""Resolving paths of this machine and of another machine."""

from pathlib import Path

from journeyman.gate.paths import Places


def test_foreign_paths_ignore_the_local_filesystem(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    here = Places(tmp_path, Path("/home/dev"))
    there = Places(tmp_path, Path("/home/dev"), foreign=True)
    assert here.resolve("link/../a") == tmp_path / "a"
    assert here.resolve("link/a") == tmp_path / "real" / "a"
    assert there.resolve("link/a") == tmp_path / "link" / "a"
    assert there.resolve("./x//../a") == tmp_path / "a"


def test_sibling_folder_is_outside_the_workspace():
    places = Places(Path("/srv/app"), Path("/home/dev"), foreign=True)
    assert places.is_inside(Path("/srv/app"))
    assert places.is_inside(Path("/srv/app/src"))
    assert not places.is_inside(Path("/srv/app2"))
    assert Places(Path("/"), Path("/root"), foreign=True).is_inside(Path("/etc"))


def test_a_home_below_a_temporary_folder_is_not_temporary():
    places = Places(Path("/srv/app"), Path("/tmp/dev"))
    paths = ("/tmp/x", "/var/tmp/x", "/tmp/developer", "/tmp/dev/x", "/tmp/dev", "/home/dev/x")
    scratch = [path for path in paths if places.is_scratch(Path(path))]
    assert scratch == ["/tmp/x", "/var/tmp/x", "/tmp/developer"]
