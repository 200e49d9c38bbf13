"""The walks in docs/architecture.md: their modules exist and import each other in order."""

import re
from pathlib import Path

import pytest
from tests.test_architecture import MODULES, imports

PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
_SECTION = re.compile(r"^### (From .+?)\n(.*?)(?=^##)", re.MULTILINE | re.DOTALL)
_MODULE = re.compile(r"`((?:\w+/)*\w+\.py)`")

LONGEST = {"log line": 40, "request": 20, "job": 25}


def walks() -> dict[str, list[str]]:
    """Return the modules of each walk by its heading, in the order of the page."""
    return {
        title: [
            "journeyman." + path.removesuffix(".py").replace("/", ".")
            for path in dict.fromkeys(_MODULE.findall(text))
        ]
        for title, text in _SECTION.findall(PAGE.read_text())
    }


def test_there_are_three_walks() -> None:
    assert len(walks()) == len(LONGEST)


@pytest.mark.parametrize("title", walks())
def test_each_module_is_imported_by_one_before_it(title: str) -> None:
    modules = walks()[title]
    assert len(modules) > 10, "the walk names hardly any module"
    missing = [module for module in modules if module not in MODULES]
    assert not missing
    unreached = [
        module
        for place, module in enumerate(modules[1:], 1)
        if not any(module in imports(earlier) for earlier in modules[:place])
    ]
    assert not unreached


@pytest.mark.parametrize(("subject", "most"), LONGEST.items())
def test_walks_stay_short(subject: str, most: int) -> None:
    title = next(title for title in walks() if subject in title)
    assert len(walks()[title]) <= most
