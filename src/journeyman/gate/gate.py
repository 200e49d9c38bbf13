"""The gate in front of every call: a tool's name and its arguments in, a decision out. Nothing is
run, and no file is opened.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import replace

from journeyman.gate.decision import Decision, Rule, rule, strongest
from journeyman.gate.paths import Places
from journeyman.gate.rules import NETWORK, find_in_code, find_rules, hides

Network = Literal["off", "ask", "on"]

ALWAYS_ALLOWED = frozenset(
    {
        *("memory", "skills_list", "skill_view", "skill_manage", "session_search"),
        *("warm_session", "request_confirmation", "finish"),
    }
)
"""Tools that keep to the agent's own notes, or that ask a person themselves."""

_PATCHED = re.compile(
    r"^\*\*\* (?:Add File|Update File|Delete File|Move to|Move File):[ \t]*(.+?)[ \t]*$"
    r"|^(?:\+\+\+|---) (?:[ab]/)?([^\t\n]+)",
    re.MULTILINE,
)
# In prose, what is in backquotes need not be a command.
_NO_COMMAND = frozenset({"unparseable", "command.hidden", "invisible", "too_large", NETWORK})


_FENCE = re.compile(
    r"^[ \t>]*(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^\n`]*)\n(?P<inside>.*?)"
    r"(?:^[ \t>]*(?P=mark)[`~]*[ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)
_SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_PROMPT = re.compile(r"^[ \t>]*\$ (.+)$", re.MULTILINE)
_SHELL_FENCES = frozenset({"", "sh", "bash", "shell", "zsh", "console", "shell-session", "text"})
_PYTHON_FENCES = frozenset({"python", "py", "python3"})
_RUNNERS = r"(?:(?:ba|z|da|k|a)?sh|fish|python[\d.]*|perl|ruby|node|php)"
_PIPED = re.compile(
    rf"\b(?:curl|wget)\b[^\n|]{{1,400}}(?:\|[^\n|]{{1,80}}){{0,3}}"
    rf"\|\s*(?:(?:sudo|env|exec|nohup)\s+(?:-\S+\s+)*)*(?:\S*/)?{_RUNNERS}\b|"
    rf"\b(?:{_RUNNERS}|source|eval|\.)\s+[^\n]{{0,40}}[<$]\(\s*(?:curl|wget)\b"
)


def patched_paths(text: str) -> list[str]:
    """The files that a patch names."""
    found = (one[1] or one[2] for one in _PATCHED.finditer(text))
    return [each for each in found if each != "/dev/null"]


class Gate:
    """Decides on calls as seen from one workspace."""

    def __init__(
        self, workspace: Path, *, home: Path | None = None, network: Network = "ask"
    ) -> None:
        self._workspace = workspace
        self._home = Path.home() if home is None else home
        self._network = network
        self._places = Places(workspace, self._home)

    def decide(self, tool: str, arguments: Mapping[str, Any]) -> Decision:
        """Whether a call may run, must be asked about, or never runs. A yes gives the network if
        one of the rules needs it; where the network is off, such a rule refuses.
        """
        found = [row for row in self._rules(tool, arguments) if not row.learning]
        if self._network == "on":
            found = [row for row in found if row.id != NETWORK]
        needs = [row for row in found if row.network]
        if needs and self._network == "off":
            reason = f"{needs[0].reason} The network is off (agent.network)."
            return replace(needs[0].decision, answer="refuse", reason=reason)
        found.sort(key=lambda row: row.id == NETWORK)  # any other reason says more
        decision = strongest(row.decision for row in found)
        if not needs or decision.answer != "ask" or decision.network:
            return decision
        return replace(decision, reason=f"{decision.reason} It needs the network.", network=True)

    def find_risky_command(self, text: str) -> Decision | None:
        """The decision on the first command in prose that would not simply be allowed: in
        backquotes, in a fenced block, after a prompt, or as a download piped into a shell.
        """
        for piece, is_python in dict.fromkeys(_pieces(text)):
            find = find_in_code if is_python else find_rules
            for row in find(piece, self._places):
                if row.id not in _NO_COMMAND and not row.learning:
                    return row.decision
        return rule("run.download").decision if runs_a_download(text) else None

    def _rules(self, tool: str, arguments: Mapping[str, Any]) -> Iterator[Rule]:
        """The rows that a call meets."""
        match tool, arguments:
            case "terminal", {"command": str(command), **more}:
                folder = more.get("workdir")
                places = Places(self._workspace, self._home, folder=str(folder or ""))
                if not places.is_inside(places.resolve(".")):
                    yield rule("file.work_outside")
                yield from find_rules(command, places)
            case "execute_code", {"code": str(code)}:
                yield from find_in_code(code, self._places)
            case "read_file" | "search_files" | "write_file" | "patch", _:
                yield from self._on_files(tool, arguments)
            case "terminal" | "execute_code", _:
                yield rule("tool.unreadable")
            case "warm_session" | "skill_manage", {"action": "delete"}:
                yield rule("tool.delete")
            case name, _ if name not in ALWAYS_ALLOWED:
                yield rule("tool.unknown")

    def _on_files(self, tool: str, arguments: Mapping[str, Any]) -> Iterator[Rule]:
        path, patch = arguments.get("path"), arguments.get("patch")
        paths = [path] if isinstance(path, str) else []
        if tool == "patch" and isinstance(patch, str):
            paths += patched_paths(patch)
        if not paths and not (tool == "search_files" and path is None):
            yield rule("tool.unreadable")
        writes = tool in ("write_file", "patch")
        for text in paths:
            found = self._places.resolve(text)
            if hides(text):
                yield rule("invisible")
            elif not self._places.is_inside(found):
                yield rule("file.write_outside" if writes else "file.read_outside")
            elif writes and self._places.is_steering(found):
                yield rule("file.steering")
            elif not writes and self._places.is_secret(found):
                yield rule("file.secret")


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """What may be run in prose, and whether it is Python: what stands in fenced blocks, as a whole
    and line by line, then after a prompt and in backquotes. Plain sentences are no commands.
    """
    rest = text
    for fence in _FENCE.finditer(text):
        info, inside = fence["info"].strip().lower(), fence["inside"]
        language = re.split(r"[\s{:,]", info.lstrip("{."), maxsplit=1)[0].rstrip("}")
        lines = [re.sub(r"^\s*(?:>\s)?\s*(?:\$ )?", "", line) for line in inside.splitlines()]
        if language in _PYTHON_FENCES:
            yield inside, True
        elif language in _SHELL_FENCES and len(lines) > 1:
            yield "\n".join(lines), False
        yield from ((line, False) for line in lines if line.strip())
        rest = rest.replace(fence[0], "\n", 1)
    for line in _PROMPT.finditer(rest):
        yield line[1], False
    for span in _SPAN.finditer(rest):
        yield " ".join(span[2].split()).removeprefix("$ "), False


def runs_a_download(text: str) -> bool:
    """Whether something fetched goes straight into an interpreter, anywhere in the text."""
    return _PIPED.search(text) is not None
