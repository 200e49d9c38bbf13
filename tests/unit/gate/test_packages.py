"""Which names of packages are one slip away from a popular one."""

from tests.tables import table

from journeyman.gate.conditions import find_popular
from journeyman.gate.decision import rules_file


@table(
    ("name", "registry", "expected"),
    [
        ("reqeusts", "pypi", "requests"),
        ("request", "pypi", "requests"),
        ("Requestss", "pypi", "requests"),
        ("python-dateutils", "pypi", "python-dateutil"),
        ("python_dateutils", "pypi", "python-dateutil"),
        ("nunpy", "pypi", "numpy"),
        ("lodahs", "npm", "lodash"),
        ("expres", "npm", "express"),
        ("reakt", "npm", "react"),
        ("requests", "pypi", ""),
        ("preact", "npm", ""),
        ("httpx", "pypi", ""),
        ("mock", "pypi", ""),
        ("requests-cache", "pypi", ""),
        ("", "pypi", ""),
    ],
)
def test_slips(name, registry, expected):
    assert find_popular(name, registry) == expected


def test_popular_packages_are_no_slips_of_each_other():
    for registry, popular in rules_file().popular.items():
        assert not any(find_popular(name, registry) for name in popular.split())
