"""Package names that are one typo away from a popular package."""

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
def test_misspelt_package_names(name, registry, expected):
    assert find_popular(name, registry) == expected


def test_popular_packages_are_not_typos_of_each_other():
    for registry, popular in rules_file().popular.items():
        assert not any(find_popular(name, registry) for name in popular.split())
