"""Whether the embedded model makes the right first call with the opening that everybody gets, on
two public sets of conversations, beside the same model with the three nearest first calls by
TF-IDF.

    pip install --no-deps bfcl-eval==2026.3.23
    python benchmarks/function_calling.py [--turns 120] [--split test] [--state-bench FOLDER]

The 200 conversations are those of the category multi_turn_base of the Berkeley Function Calling
Leaderboard, of which only the data files are read. They are sorted by subject, so they are shuffled
with a fixed seed first. The correct calls of 140 are recorded as sessions and learned. Each turn of
the other 60 is then a separate request, without the turns before it, and its first call is compared
with the first correct one: the right tool, and exactly the same arguments. (`--split development`
uses 40 of the 140 as requests instead and learns from the other 100; all tuning is done on these.)
`--state-bench` takes the recorded conversations of STATE-Bench in a folder instead: 70 % of them
teach, and tools are defined by the arguments that occur.

`opening` is `jm.opening(request, tools=tools)`, for a model that nobody called small, and `small`
the same with `small=True`. `TF-IDF` puts the first calls of the three nearest requests with a tool
that is offered before the request, the nearest last, with no note. A grammar keeps the model's
calls valid. Without a model: repeating the first call of the nearest request, and using the most
frequent tool of the three nearest. `cold` is the model without an opening, on fewer turns because
its prompts are long. Intervals are Wilson's, at 95 %, and treat turns as independent.
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
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from journeyman import Journeyman
from journeyman.models.embedded import EmbeddedModel
from journeyman.models.model import Reply
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

_COLD_TURNS = 10
_TAUGHT = 0.7
_TYPES = {str: "string", bool: "boolean", int: "number", float: "number", list: "array"}
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

    def turns(self, turn: Turn) -> list[Turn]:
        """The three nearest requests whose first tool is offered, nearest first."""
        asked = self._vector(turn.request)
        offered = {tool["function"]["name"] for tool in turn.tools}
        near = sorted(
            (-sum(weight * vector.get(word, 0.0) for word, weight in asked.items()), place)
            for place, vector in enumerate(self._vectors)
            if self._turns[place].calls[0].tool in offered
        )
        return [self._turns[place] for _, place in near[:3]]

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


def state_bench(folder: Path) -> list[Conversation]:
    """The conversations of STATE-Bench, in a fixed random order."""
    found: list[Conversation] = []
    for domain in sorted(path for path in folder.iterdir() if path.is_dir()):
        files = sorted(domain.glob("*.json"))
        spoken = [json.loads(file.read_text(encoding="utf-8"))["conversation"] for file in files]
        calls = [
            FunctionCall(call["name"], call["arguments"])
            for messages in spoken
            for message in messages
            for call in message.get("tool_calls") or ()
        ]
        tools = [
            *map(json_schema, (defined(name, calls) for name in sorted({c.tool for c in calls})))
        ]
        for messages in spoken:
            turns = [
                Turn(
                    said["content"],
                    [FunctionCall(call["name"], call["arguments"]) for call in done["tool_calls"]],
                    tools,
                )
                for said, done in pairwise(messages)
                if said["role"] == "user" and done.get("tool_calls")
            ]
            found += [turns] if turns else []
    random.Random(_SEED).shuffle(found)
    return found


def defined(name: str, calls: Sequence[FunctionCall]) -> JsonObject:
    """A definition of a tool that accepts the arguments with which it was called."""
    values = [call.arguments for call in calls if call.tool == name]
    properties: JsonObject = {}
    for arguments in values:
        for key, value in arguments.items():
            kind = _TYPES.get(type(value), "object")
            properties[key] = {
                "type": kind if properties.get(key, {"type": kind})["type"] == kind else "any"
            }
    required = [key for key in properties if all(key in arguments for arguments in values)]
    schema = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": name, "description": "", "parameters": schema}}


def tfidf_messages(near: Sequence[FunctionCall], requests: Sequence[str]) -> list[JsonObject]:
    """The nearest first calls as messages, the nearest last."""
    messages: list[JsonObject] = []
    for number, (call, said) in enumerate(zip(near, requests, strict=True)):
        function = {"name": call.tool, "arguments": json.dumps(call.arguments)}
        asked = {"id": f"call_{number}", "type": "function", "function": function}
        shown: list[JsonObject] = [
            {"role": "user", "content": said},
            {"role": "assistant", "content": None, "tool_calls": [asked]},
            {"role": "tool", "tool_call_id": f"call_{number}", "content": '{"result": "ok"}'},
            {"role": "assistant", "content": "Done."},
        ]
        messages = [*shown, *messages]
    return messages


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
    parser.add_argument("--state-bench", type=Path, help="a folder of STATE-Bench conversations")
    parser.add_argument("--small", action="store_true", help="also ask with small=True")
    chosen = parser.parse_args()
    if chosen.state_bench:
        known = state_bench(chosen.state_bench)
        taught, end = int(len(known) * _TAUGHT), len(known)
    else:
        known = conversations(data_folder())
        taught, end = _SPLITS[chosen.split]
    library, asked = known[:taught], [turn for some in known[taught:end] for turn in some]
    random.Random(_SEED).shuffle(asked)
    nearest = Nearest([turn for some in library for turn in some])
    cold, plain, small, tfidf = (
        Score(name) for name in ("model, cold", "model, opening", "model, small", "model, TF-IDF")
    )
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
            near = nearest.turns(turn)
            calls = [one.calls[0] for one in near]
            arms = [
                (plain, journeyman.opening(turn.request, tools=turn.tools).inject(request)),
                (tfidf, [*tfidf_messages(calls, [one.request for one in near]), *request]),
            ]
            if chosen.small:
                opening = journeyman.opening(turn.request, tools=turn.tools, small=True)
                arms.append((small, opening.inject(request)))
            arms += [(cold, request)] if number < _COLD_TURNS else []
            for score, messages in arms:
                reply = model.ask(messages, turn.tools)
                used = reply.tokens
                tokens = (used.input_tokens or 0) + (used.cache_read_tokens or 0)
                score.add(call_of(reply), turn, tokens)
            repeated.add(calls[0] if calls else None, turn)
            votes = Counter(call.tool for call in calls)
            most.add(max(calls, key=lambda call: votes[call.tool], default=None), turn)
            if (number + 1) % 20 == 0:
                print(f"… {plain}\n… {tfidf}", flush=True)
    for score in (cold, most, repeated, tfidf, small, plain):
        print(score)


if __name__ == "__main__":
    main()
