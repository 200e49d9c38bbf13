"""Tools of the user's own: a function's hints and docstring describe it, and the gate asks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from tests.tables import table

from journeyman import Journeyman
from journeyman.agent.function_tool import function_tool
from journeyman.gate.decision import ApprovalRequest
from journeyman.outcomes.judge import judge
from journeyman.records.errors import WrongInput
from journeyman.testing import ScriptedModel, calls, says


class Item(msgspec.Struct):
    name: str
    count: int = 1


def order(
    item: Item, to: Annotated[str, msgspec.Meta(description="A city.")], by: Literal["air", "sea"]
) -> dict[str, Any]:
    """Order an item."""
    return {"ordered": f"{item.count} {item.name}", "to": to, "by": by}


def stock(item: str, *, shop: str = "main") -> int:
    """Return how many there are."""
    if item == "none":
        raise LookupError("no such item")
    return len(item) + len(shop)


@pytest.fixture
def jm(tmp_path: Path) -> Iterator[Journeyman]:
    with Journeyman(home=tmp_path / "home", environ={"HOME": str(tmp_path)}) as jm:
        yield jm


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_hints_and_docstring_describe_the_tool() -> None:
    made = function_tool(order)
    assert (made.name, made.description, made.risk) == ("order", "Order an item.", "unknown")
    assert made.parameters["required"] == ["item", "to", "by"]
    assert made.parameters["additionalProperties"] is False
    assert made.parameters["properties"]["to"] == {"type": "string", "description": "A city."}
    assert made.parameters["properties"]["by"] == {"enum": ["air", "sea"]}
    assert made.parameters["$defs"]["Item"]["required"] == ["name"]


def test_an_agent_uses_own_tools_with_approval(jm: Journeyman, work: Path) -> None:
    asked: list[ApprovalRequest] = []

    def ask(request: ApprovalRequest) -> bool:
        asked.append(request)
        return True

    item = {"name": "pear", "count": 3}
    model = ScriptedModel(
        [
            calls(
                ("order", {"item": item, "to": "Rome", "by": "sea"}),
                ("order", {"item": item, "to": "Rome", "by": "mule"}),
                ("stock", {"item": "pear"}),
                ("stock", {"item": "none"}),
            ),
            says("Done."),
        ]
    )
    own = (order, function_tool(stock, risk="recall"))
    with jm.agent(model=model, workspace=work, warm="off", ask=ask, tools=own) as agent:
        turn = agent.run_conversation("Order pears.")
    made = jm.sessions.calls(turn.session)
    assert [judge(call).status for call in made] == ["ok", "invalid", "ok", "failed"]
    assert made[0].result == '{"ordered":"3 pear","to":"Rome","by":"sea"}'
    assert made[2].result == '{"result":8}'
    assert "no such item" in str(made[3].result)
    assert [(request.tool, request.rule) for request in asked] == [("order", "tool.unknown")]


def test_without_anyone_to_ask_it_is_denied(jm: Journeyman, work: Path) -> None:
    model = ScriptedModel([calls(("stock", {"item": "pear"})), says("Done.")])
    with jm.agent(model=model, workspace=work, warm="off", tools=[stock]) as agent:
        turn = agent.run_conversation("Look.")
    assert [denied.tool for denied in turn.denied] == ["stock"]


def _without_hints(item) -> None:  # type: ignore[no-untyped-def]
    """Do it."""


def _many(*items: str) -> None:
    """Do it."""


def _without_docstring(item: str) -> None: ...


async def _later(item: str) -> None:
    """Do it."""


@table("function", [_without_hints, _many, _without_docstring, _later, lambda: None])
def test_a_function_that_says_too_little(function: Any) -> None:
    with pytest.raises(WrongInput, match="cannot become a tool"):
        function_tool(function)


def test_two_tools_of_one_name_are_refused(jm: Journeyman, work: Path) -> None:
    with pytest.raises(WrongInput, match="Two tools are named 'stock'"):
        jm.agent(model=ScriptedModel([]), workspace=work, tools=[stock, stock])
