"""What a few simple commands do to the shell, and what they print, as far as that can be known
without running them: changing the folder, setting variables, echoing text, listing files.
"""

import re
from collections.abc import Callable

from journeyman.gate.command import Command, Stream, is_known
from journeyman.gate.expansion import decode_ansi
from journeyman.gate.places import MADE_TEMPORARY, Places
from journeyman.gate.state import State
from journeyman.gate.words import UNKNOWN
from journeyman.gate.wrappers import found_names

_ASSIGNS = frozenset({"read", "mapfile", "readarray", "getopts", "let", "typeset", "local"})
_ANY_BELOW = f"./{UNKNOWN}"
_SETTERS = (
    *("ssh-agent", "pyenv", "rbenv", "nodenv", "direnv", "brew", "starship", "zoxide", "mise"),
    *("fnm", "opam", "dircolors", "conda", "micromamba", "minikube", "luarocks", "keychain"),
)
"""Programs that print settings for the shell that started them."""

_DIRECTIVE = re.compile(r"%(?:%|[-0-9.]*([sbqdi]))")


def apply_builtin(command: Command, state: State, places: Places) -> None:
    """Lets a builtin act on what is known of the shell."""
    match command.program:
        case "cd" | "pushd":
            operands = [word for word in command.operands() if word.text != "--"]
            target = operands[0] if operands else None
            if target is None and command.program == "cd":
                state.cwd = places.home
            elif target is None or target.text == "-" or target.pattern or not target.known:
                below = target is not None and target.text.startswith("./")
                state.cwd = state.cwd if below else None
            else:
                state.cwd = places.resolve(target.text, command.cwd)
        case "popd":
            state.cwd = None
        case "set":
            texts = command.arguments
            if "--" in texts:
                state.call_with(command.words[texts.index("--") + 2 :])
            elif texts and not texts[0].startswith(("-", "+")):
                state.call_with(command.words[1:])
        case "shift":
            state.positional = None
        case "alias":
            for text in command.arguments:
                name, equals, value = text.partition("=")
                if equals:
                    state.aliases[name] = value
        case "printf":
            for name in command.values("-v"):
                state.forget(name)
        case program if program in _ASSIGNS:
            listed = command.stdin.names if command.stdin is not None else ""
            for word in command.operands("-p", "-d", "-n", "-t", "-u", "-N"):
                name = word.text.partition("=")[0]
                state.forget(name)
                if listed:
                    state.assign(name, [listed])


def output_of(command: Command, places: Places) -> Stream:
    """What a command prints, where that can be told."""
    made_by = frozenset({command.program})
    match command.program:
        case "find":
            return Stream(None, made_by, _below(command, places, found_names(command).text))
        case "ls" | "fd" | "fdfind" | "dirname" | "basename":
            return Stream(None, made_by, _below(command, places))
        case "grep" | "rg" if command.has("-l", "--files", "--files-with-matches"):
            return Stream(None, made_by, _below(command, places))
        case "git" if command.subcommand("-C", "-c")[:1] == ("ls-files",):
            return Stream(None, made_by, _ANY_BELOW)
        case "grep" | "rg" | "sort" | "uniq" | "head" | "tail" if command.stdin is not None:
            return Stream(None, made_by, command.stdin.names)
    tells = _PRINTS.get(command.program)
    text = None if tells is None else tells(command, places)
    return Stream(text if text is not None and is_known(text) else None, made_by)


def _below(command: Command, places: Places, pattern: str = _ANY_BELOW) -> str:
    """The pattern, if all that a listing can name is in the workspace."""
    words = [word for word in command.words[1:] if not word.text.startswith("-")]
    resolved = [places.resolve(word.text, command.cwd) for word in words]
    inside = command.cwd is not None and all(
        one is not None and places.is_inside(one) for one in [*resolved, command.cwd]
    )
    return pattern if inside else ""


def _echo(command: Command, _: Places) -> str:
    texts = list(command.arguments)
    escapes = quiet = False
    while texts and re.fullmatch(r"-[neE]+", texts[0]):
        escapes = escapes or "e" in texts[0]
        quiet = quiet or "n" in texts[0]
        texts.pop(0)
    text = decode_ansi(" ".join(texts)) if escapes else " ".join(texts)
    return text if quiet else f"{text}\n"


def _printf(command: Command, _: Places) -> str | None:
    texts = [text for text in command.arguments if text != "--"]
    if not texts or texts[0] == "-v":
        return "" if texts else None
    shape, given = decode_ansi(texts[0]), texts[1:]
    directives = [found[1] for found in _DIRECTIVE.finditer(shape)]
    if shape.count("%") > sum(1 for _ in directives) + directives.count(None):
        return None
    taken = sum(1 for each in directives if each)
    rounds = max(1, -(-len(given) // taken)) if taken else 1
    left = iter(given)

    def one(found: re.Match[str]) -> str:
        if found[1] is None:
            return "%"
        value = next(left, "")
        return decode_ansi(value) if found[1] == "b" else value

    return "".join(_DIRECTIVE.sub(one, shape) for _ in range(min(rounds, 50)))


def _cat(command: Command, _: Places) -> str | None:
    operands = [text for text in command.arguments if text != "-"]
    return command.stdin.text if command.stdin is not None and not operands else None


def _which(command: Command, _: Places) -> str | None:
    operands = command.operands()
    return operands[-1].text if operands else None


def _pwd(command: Command, _: Places) -> str | None:
    return None if command.cwd is None else str(command.cwd)


def _git(command: Command, places: Places) -> str | None:
    at_top = command.subcommand()[:1] == ("rev-parse",) and command.has("--show-toplevel")
    return str(places.workspace) if at_top else None


def _temporary(command: Command, _: Places) -> str | None:
    return MADE_TEMPORARY if not command.has("-p", "--tmpdir") else None


_PRINTS: dict[str, Callable[[Command, Places], str | None]] = {
    "echo": _echo,
    "printf": _printf,
    "cat": _cat,
    "tee": _cat,
    "which": _which,
    "command": _which,
    "type": _which,
    "pwd": _pwd,
    "git": _git,
    "mktemp": _temporary,
    ":": lambda *_: "",
    "true": lambda *_: "",
    "cd": lambda *_: "",
    "set": lambda *_: "",
    "": lambda *_: "",
    "jobs": lambda *_: "%1",
    **dict.fromkeys(_SETTERS, lambda *_: ""),
}
