"""The gate decides on a call from the tool's risk and the arguments, without running anything or
opening a file.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from journeyman.gate.decision import Decision, GateRule, Network, Risk, pattern, rule, strongest
from journeyman.gate.paths import Places
from journeyman.gate.rules import NETWORK, OUTSIDE, find_in_code, find_rules, hides

_PATCH_FILE = re.compile(
    r"^\*\*\* (?:Add File|Update File|Delete File|Move to|Move File):[ \t]*(.+?)[ \t]*$"
    r"|^(?:\+\+\+|---) (?:[ab]/)?([^\t\n]+)",
    re.MULTILINE,
)
# In prose, text in backquotes is not necessarily a command.
_IGNORED_IN_PROSE = frozenset({"unparseable", "command.hidden", "invisible", "too_large", NETWORK})


_SETTING = re.compile(r'"command"\s*:\s*"((?:[^"\\]|\\.)*)"')
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
    """Return the files that a patch names."""
    paths = (match[1] or match[2] for match in _PATCH_FILE.finditer(text))
    return [path for path in paths if path != "/dev/null"]


class Gate:
    """Decides on the calls of an agent that works in one workspace. Relative paths begin at the
    `folder`, by default the workspace. Unless its commands are `confined`, it is a host's: the gate
    asks about changes outside the workspace, and not about the daily work of a developer.
    """

    def __init__(
        self,
        workspace: Path,
        *,
        home: Path | None = None,
        network: Network = "ask",
        folder: str = "",
        confined: bool = True,
    ) -> None:
        self._workspace = workspace
        self._home = Path.home() if home is None else home
        self._network = network
        self._folder = folder
        self._confined = confined
        self._places = self._seen_from(folder)

    def decide(self, risk: Risk, arguments: Mapping[str, Any]) -> Decision:
        """Decide whether a call may run, needs approval, or is refused. Approval grants the network
        if a matching rule needs it; where the network is off, such a rule refuses.
        """
        asks = ("all", "agent" if self._confined else "hosts")
        rules = [rule for rule in self._matching_rules(risk, arguments) if rule.asks in asks]
        if self._network == "on":
            rules = [rule for rule in rules if rule.id != NETWORK]
        online = [rule for rule in rules if rule.network]
        if online and self._network == "off":
            reason = f"{online[0].reason} The network is off (agent.network)."
            return replace(online[0].decision, answer="refuse", reason=reason)
        rules.sort(key=lambda rule: rule.id == NETWORK)  # any other reason is more specific
        decision = strongest(rule.decision for rule in rules)
        if not online or decision.answer != "ask" or decision.network:
            return decision
        return replace(decision, reason=f"{decision.reason} It needs the network.", network=True)

    def find_risky_command(self, text: str) -> Decision | None:
        """Return the decision on the first command in prose that would not simply be allowed: in
        backquotes, in a fenced block, after a prompt, or as a download piped into a shell.
        """
        for snippet, is_python in dict.fromkeys(_snippets(text)):
            find = find_in_code if is_python else find_rules
            for match in find(snippet, self._places):
                if match.id not in _IGNORED_IN_PROSE and match.asks in ("all", "agent"):
                    return match.decision
        return rule("run.download").decision if pipes_download_to_interpreter(text) else None

    def _seen_from(self, folder: str) -> Places:
        return Places(self._workspace, self._home, folder=folder, confined=self._confined)

    def _matching_rules(self, risk: Risk, arguments: Mapping[str, Any]) -> Iterator[GateRule]:
        match risk, arguments:
            case "command", {"command": str(command), **others}:
                folder = str(others.get("workdir") or "")
                if self._folder and not folder.startswith(("/", "~")):
                    folder = f"{self._folder}/{folder}"
                places = self._seen_from(folder)
                if not places.is_inside(places.resolve(".")):
                    yield rule("file.work_outside")
                yield from find_rules(command, places)
            case "code", {"code": str(code)}:
                yield from find_in_code(code, self._places)
            case "read" | "search" | "write", _:
                yield from self._file_rules(risk, arguments)
            case "command" | "code", _:
                yield rule("tool.unreadable")
            case "knowledge" | "templates", {"action": "delete"}:
                yield rule("tool.delete")
            case "unknown", _:
                yield rule("tool.unknown")

    def _file_rules(self, risk: Risk, arguments: Mapping[str, Any]) -> Iterator[GateRule]:
        path, patch = arguments.get("path"), arguments.get("patch")
        paths = [path] if isinstance(path, str) else []
        if risk == "write" and isinstance(patch, str):
            paths += patched_paths(patch)
        if not paths and not (risk == "search" and path is None):
            yield rule("tool.unreadable")
        for text in paths:
            place = self._places.resolve(text)
            is_inside = self._places.is_inside(place)
            if hides(text):
                yield rule("invisible")
            elif self._confined and not is_inside:
                yield rule("file.write_outside" if risk == "write" else "file.read_outside")
            elif risk != "write":
                if self._places.is_secret(place):
                    yield rule("file.secret")
            elif self._places.is_steering(place):
                if self._confined or not self._is_plain_setting(place, arguments):
                    yield rule("file.steering")
            elif not is_inside and self._places.is_secret(place):
                yield rule("file.secret")
            elif not is_inside and not self._places.is_free(place):
                yield rule(OUTSIDE)

    def _is_plain_setting(self, place: Path, arguments: Mapping[str, Any]) -> bool:
        """Whether the project's settings of Claude Code are edited, and the visible text neither
        permits more nor contains a command that would need approval.
        """
        if place != self._places.workspace / ".claude/settings.json" or not arguments.get("old"):
            return False  # whatever replaces the whole file also removes what stands there
        text = "\n".join(
            str(arguments.get(name, "")) for name in ("old", "new", "content", "patch")
        )
        commands = (match[1].replace('\\"', '"') for match in _SETTING.finditer(text))
        return pattern("loosens").search(text) is None and all(
            self.decide("command", {"command": command}).answer == "allow" for command in commands
        )


def _snippets(text: str) -> Iterator[tuple[str, bool]]:
    """Yield what prose may ask to run, and whether it is Python: the contents of fenced blocks, as
    a whole and by line, then text after a prompt and in backquotes. Plain sentences are skipped.
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


def pipes_download_to_interpreter(text: str) -> bool:
    """Whether a download is piped straight into an interpreter anywhere in the text."""
    return _PIPED.search(text) is not None
