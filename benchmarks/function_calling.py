"""Whether the embedded model makes the right first call, on a public benchmark of function calling.

    pip install --no-deps bfcl-eval==2026.3.23
    python benchmarks/function_calling.py [--turns 100] [--split test]

The 200 conversations are those of the category multi_turn_base of the Berkeley Function Calling
Leaderboard, of which only the data files are read. They are sorted by subject, so they are shuffled
with a fixed seed first. The correct calls of 140 are recorded as sessions and learned. Each turn of
the other 60 is then a separate request, without the turns before it, and its first call is compared
with the first correct one: the right tool, and exactly the same arguments. (`--split development`
uses 40 of the 140 as requests instead and learns from the other 100; all tuning is done on these.)

The model sees what an agent with a small model sees with the setting `auto`: the opening for the
request, and the tools. Retrieval does most of the work, because it selects the three examples: the
model chooses between the calls that they show and fills in the arguments, and a grammar keeps its
calls valid. The simplest alternatives without a model are therefore included: repeating the first
call of the nearest request (by TF-IDF weights of words, among requests with a tool that is
offered), and using the most frequent tool of the three nearest. `cold` is the same model without an
opening, on fewer turns because its prompts are long. Intervals are Wilson's, at 95 %, and treat
turns as independent.
"""

import argparse
import ast
import importlib.util
import json
import math
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from journeyman import Journeyman
from journeyman.models.embedded import EmbeddedModel
from journeyman.models.model import Reply
from journeyman.records.defaults import SMALL_MODEL_EXAMPLES
from journeyman.reliability.rates import wilson

_CATEGORY = "BFCL_v4_multi_turn_base.json"
_FUNCTIONS = {
    "GorillaFileSystem": "gorilla_file_system.json",
    "MathAPI": "math_api.json",
    "MessageAPI": "message_api.json",
    "TwitterAPI": "posting_api.json",
    "TicketAPI": "ticket_api.json",
    "TradingBot": "trading_bot.json",
    "TravelAPI": "travel_booking.json",
    "VehicleControlAPI": "vehicle_control.json",
}
_JSON_TYPES = {"dict": "object", "float": "number", "tuple": "array"}
_SEED = 7
_SPLITS = {"test": (140, 200), "development": (100, 140)}
"""How many conversations teach, and where those used as requests end."""

_COLD_TURNS = 20
_WORD = re.compile(r"[^\W_]+")

JsonObject = dict[str, Any]


class FunctionCall(NamedTuple):
    """A call as the benchmark compares it."""

    tool: str
    arguments: Mapping[str, Any]


class Turn(NamedTuple):
    """The user's message, the correct calls for it, and the available tools."""

    request: str
    calls: Sequence[FunctionCall]
    tools: Sequence[JsonObject]


Conversation = Sequence[Turn]


def data_folder() -> Path:
    spec = importlib.util.find_spec("bfcl_eval")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("The benchmark's data is missing: pip install --no-deps bfcl-eval==2026.3.23")
    return Path(next(iter(spec.submodule_search_locations)), "data")


def json_lines(path: Path) -> list[JsonObject]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def conversations(folder: Path) -> list[Conversation]:
    """All conversations, in a fixed random order."""
    functions = {
        name: json_lines(folder / "multi_turn_func_doc" / file) for name, file in _FUNCTIONS.items()
    }
    parameters = {
        function["name"]: list(function["parameters"]["properties"])
        for some in functions.values()
        for function in some
    }
    found: list[Conversation] = []
    for question, answer in zip(
        json_lines(folder / _CATEGORY),
        json_lines(folder / "possible_answer" / _CATEGORY),
        strict=True,
    ):
        tools = [
            tool_definition(function)
            for name in question["involved_classes"]
            for function in functions[name]
            if function["name"] not in question.get("excluded_function", ())
        ]
        found.append(
            [
                Turn(
                    "\n".join(message["content"] for message in said),
                    [parse_call(call, parameters) for call in calls],
                    tools,
                )
                for said, calls in zip(question["question"], answer["ground_truth"], strict=True)
                if calls
            ]
        )
    random.Random(_SEED).shuffle(found)
    return found


def tool_definition(function: JsonObject) -> JsonObject:
    described = {key: function[key] for key in ("name", "description")}
    parameters = json_schema(function["parameters"])
    return {"type": "function", "function": {**described, "parameters": parameters}}


def json_schema(schema: Any) -> Any:
    """A schema with the type names of JSON Schema."""
    if isinstance(schema, list):
        return [json_schema(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    renamed = {key: json_schema(value) for key, value in schema.items()}
    if isinstance(kind := renamed.get("type"), str):
        renamed["type"] = _JSON_TYPES.get(kind, kind)
    return {key: value for key, value in renamed.items() if (key, value) != ("type", "any")}


def parse_call(written: str, parameters: Mapping[str, Sequence[str]]) -> FunctionCall:
    """A call from Python source such as `cd(folder='temp')`."""
    call = ast.parse(written, mode="eval").body
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Name)
    tool = call.func.id
    arguments = dict(zip(parameters[tool], map(ast.literal_eval, call.args), strict=False))
    named = {one.arg or "": ast.literal_eval(one.value) for one in call.keywords}
    return FunctionCall(tool, {**arguments, **named})


def recorded(conversation: Conversation) -> Iterator[JsonObject]:
    """The messages of a session in which every call was correct."""
    for number, turn in enumerate(conversation):
        yield {"role": "user", "content": turn.request}
        for place, call in enumerate(turn.calls):
            call_id = f"call_{number}_{place}"
            function = {"name": call.tool, "arguments": json.dumps(call.arguments)}
            asked = {"id": call_id, "type": "function", "function": function}
            yield {"role": "assistant", "content": None, "tool_calls": [asked]}
            yield {"role": "tool", "tool_call_id": call_id, "content": '{"result": "ok"}'}
        yield {"role": "assistant", "content": "Done."}


class Nearest:
    """The nearest requests by the TF-IDF weights of their words: the simplest alternative."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._turns = turns
        seen = Counter(word for turn in turns for word in set(words(turn.request)))
        self._weights = {word: math.log(len(turns) / count) + 1 for word, count in seen.items()}
        self._vectors = [self._vector(turn.request) for turn in turns]

    def calls(self, turn: Turn) -> list[FunctionCall]:
        """The first calls for the three nearest requests with a tool that is offered, nearest
        first.
        """
        asked = self._vector(turn.request)
        offered = {tool["function"]["name"] for tool in turn.tools}
        near = sorted(
            (-sum(weight * vector.get(word, 0.0) for word, weight in asked.items()), place)
            for place, vector in enumerate(self._vectors)
            if self._turns[place].calls[0].tool in offered
        )
        return [self._turns[place].calls[0] for _, place in near[:3]]

    def _vector(self, text: str) -> dict[str, float]:
        counted = Counter(words(text))
        vector = {
            word: (1 + math.log(count)) * self._weights.get(word, 0.0)
            for word, count in counted.items()
        }
        length = math.hypot(*vector.values()) or 1.0
        return {word: weight / length for word, weight in vector.items()}


def words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def call_of(reply: Reply) -> FunctionCall | None:
    if not reply.tool_calls:
        return None
    call = reply.tool_calls[0]
    try:
        return FunctionCall(call.name, json.loads(call.arguments))
    except ValueError:
        return FunctionCall(call.name, {})


class Score:
    """How often a method was right."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._turns = self._right = self._exact = self._tokens = 0

    def add(self, found: FunctionCall | None, turn: Turn, tokens: int = 0) -> None:
        self._turns += 1
        self._tokens += tokens
        self._right += found is not None and found.tool == turn.calls[0].tool
        self._exact += found == turn.calls[0]

    def __str__(self) -> str:
        if not self._turns:
            return f"{self.name:24} not asked"
        tokens = f", {self._tokens / self._turns:,.0f} prompt tokens" if self._tokens else ""
        right, exact = (self._share(count) for count in (self._right, self._exact))
        return f"{self.name:24} {self._turns:4} turns: right tool {right}, exact {exact}{tokens}"

    def _share(self, count: int) -> str:
        rate = wilson(count, self._turns)
        return f"{count / self._turns:.0%} ({rate.low:.0%} to {rate.high:.0%})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--turns", type=int, help="ask this many turns, chosen with a fixed seed")
    parser.add_argument("--split", choices=_SPLITS, default="test")
    chosen = parser.parse_args()
    known = conversations(data_folder())
    taught, end = _SPLITS[chosen.split]
    library, asked = known[:taught], [turn for some in known[taught:end] for turn in some]
    random.Random(_SEED).shuffle(asked)
    nearest = Nearest([turn for some in library for turn in some])
    warm, cold = Score("model with opening"), Score("model, cold")
    repeated, most = Score("nearest request's call"), Score("most of the nearest 3")
    model = EmbeddedModel(max_tokens=100)
    with (
        tempfile.TemporaryDirectory() as folder,
        Journeyman(home=Path(folder, "home"), environ={"HOME": folder}) as journeyman,
    ):
        for number, conversation in enumerate(library):
            messages = list(recorded(conversation))
            journeyman.record(messages, source="bfcl", session_id=f"bfcl-{number}", outcome=1.0)
        journeyman.learn()
        for number, turn in enumerate(asked[: chosen.turns]):
            request = [{"role": "user", "content": turn.request}]
            opening = journeyman.opening(
                turn.request, tools=turn.tools, max_patterns=SMALL_MODEL_EXAMPLES, alike=True
            )
            for score, messages in ((warm, opening.inject(request)), (cold, request)):
                if score is warm or number < _COLD_TURNS:
                    reply = model.ask(messages, turn.tools)
                    used = reply.tokens
                    tokens = (used.input_tokens or 0) + (used.cache_read_tokens or 0)
                    score.add(call_of(reply), turn, tokens)
            near = nearest.calls(turn)
            repeated.add(near[0] if near else None, turn)
            votes = Counter(call.tool for call in near)
            most.add(max(near, key=lambda call: votes[call.tool], default=None), turn)
            if (number + 1) % 20 == 0:
                print(f"… {warm}", flush=True)
    for score in (cold, most, repeated, warm):
        print(score)


if __name__ == "__main__":
    main()
