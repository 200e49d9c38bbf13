"""Python code as the commands that do the same: `shutil.rmtree(x)` is `rm -r x`, `open(x, "w")`
writes x. Calls that no command stands for are noted by the id of a rule. Nothing is judged here.
"""

import ast
import warnings
from collections.abc import Callable
from typing import NamedTuple

from journeyman.gate.command import Command, Redirect
from journeyman.gate.inner import Code, Inner, Nested, Script
from journeyman.gate.places import Places
from journeyman.gate.python_calls import (
    AS_COMMANDS,
    CONNECTS,
    EXEC_CALLS,
    HIDING,
    LIST_CALLS,
    LOCAL,
    NATIVE,
    NOTED,
    PASSED,
    PATH_METHODS,
    REMOTE,
    SENSITIVE,
    SHELL_CALLS,
    SPAWN_CALLS,
    SPREAD_CALLS,
)
from journeyman.gate.python_flow import Flow
from journeyman.gate.python_values import Values
from journeyman.gate.words import PARENT, UNKNOWN, Word


class Found(NamedTuple):
    """What code does: commands and scripts it runs or amounts to, and notes by rule."""

    inner: list[Inner]
    notes: list[str]


def look(text: str, places: Places) -> Found:
    """Looks through Python code. Code that cannot be parsed cannot run, so nothing is found."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.replace(UNKNOWN, "_unknown_"))
    except (SyntaxError, ValueError):
        return Found([], [])
    except (RecursionError, MemoryError):
        return Found([], ["too_deep"])
    return _Look(tree, places).found


class _Look:
    def __init__(self, tree: ast.Module, places: Places) -> None:
        self.found = Found([], [])
        self._places = places
        self._values = Values(tree, places)
        self._flow = Flow(tree, self._values)
        if self._flow.empties():
            self._note("code.empties")
        called: set[int] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                called.add(id(node.func))
                self._call(node)
            elif isinstance(node, ast.Assign):
                if isinstance(node.value, ast.Attribute | ast.Name):
                    called.add(id(node.value))
                self._environment(node)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                self._import(node)
            elif isinstance(node, ast.Attribute | ast.Name):
                self._name(node, called)
            elif isinstance(node, ast.While) and self._forks(node):
                self._note("fork_bomb")

    def _note(self, rule: str) -> None:
        self.found.notes.append(rule)

    def _command(self, words: list[str], *, patterns: bool = False) -> None:
        made = tuple(Word(text, pattern=patterns and "*" in text) for text in words)
        self.found.inner.append(Nested(Command(made, self._places.workspace)))

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        names = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            top = name.partition(".")[0]
            if top in NATIVE:
                self._note("code.native")
            elif top in REMOTE:
                self._note("code.network")

    def _name(self, node: ast.Attribute | ast.Name, called: set[int]) -> None:
        """Functions that are not called but handed on, and names that hide others."""
        if isinstance(node, ast.Attribute) and node.attr in HIDING:
            self._note("code.hidden")
        elif (
            id(node) not in called and isinstance(node.ctx, ast.Load) and self._full(node) in PASSED
        ):
            self._note("code.passed")

    def _full(self, node: ast.AST) -> str:
        name = self._values.dotted(node)
        if isinstance(node, ast.Name) and "." not in name:
            for module in self._values.stars:
                whole = f"{module}.{name}"
                if whole in PASSED or whole in AS_COMMANDS:
                    return whole
        return name

    def _environment(self, node: ast.Assign) -> None:
        for target in node.targets:
            if isinstance(target, ast.Subscript) and (
                self._values.dotted(target.value) == "os.environ"
            ):
                setting = (self._values.text(target.slice), self._values.text(node.value))
                command = Command((), self._places.workspace, settings=(setting,))
                self.found.inner.append(Nested(command))

    def _forks(self, node: ast.While) -> bool:
        return isinstance(node.test, ast.Constant) and any(
            isinstance(one, ast.Call) and self._full(one.func) == "os.fork"
            for one in ast.walk(node)
        )

    def _call(self, node: ast.Call) -> None:
        name = self._full(node.func)
        if self._flow.sends(node):
            self._note("code.sends")
        special = _SPECIAL.get(name)
        if special is not None:
            special(self, node)
        elif name in SHELL_CALLS:
            self._shell(node.args[0] if node.args else None)
        elif name in LIST_CALLS and name not in SPREAD_CALLS:
            self._run(node)
        elif name in EXEC_CALLS:
            self._argv(node.args[1] if len(node.args) > 1 else None)
        elif name in SPREAD_CALLS or name in SPAWN_CALLS:
            start = 2 if name in SPAWN_CALLS else 1 if name.startswith("os.") else 0
            self._words([self._values.text(each) for each in node.args[start:]])
        elif name in AS_COMMANDS:
            program, taken = AS_COMMANDS[name]
            texts = [self._values.text(each) for each in node.args[:taken]]
            self._file_command(program, texts)
        elif name in NOTED:
            self._note(NOTED[name])
        elif isinstance(node.func, ast.Attribute):
            self._method(node, node.func)

    def _file_command(self, program: str, texts: list[str]) -> None:
        """A deletion of something unknown is a question; writing to something unknown is what
        most code does.
        """
        deletes = program.split(maxsplit=1)[0] in ("rm", "kill", "chown")
        if deletes or all(text and text[0] != UNKNOWN for text in texts):
            self._command([*program.split(), *texts], patterns=True)

    def _shell(self, node: ast.AST | None) -> None:
        text = self._values.text(node)
        if not text.strip(UNKNOWN + " "):
            self._note("code.command")
        else:
            self.found.inner.append(Script(text))

    def _run(self, node: ast.Call) -> None:
        first = node.args[0] if node.args else _keyword(node, "args")
        shell = _keyword(node, "shell")
        if isinstance(shell, ast.Constant) and shell.value and self._values.texts(first) is None:
            self._shell(first)
        elif shell is not None and not isinstance(shell, ast.Constant):
            self._note("code.command")
        else:
            self._argv(first)

    def _argv(self, node: ast.AST | None) -> None:
        texts = self._values.texts(node)
        if texts is None:
            text = self._values.text(node)
            texts = [text] if text != UNKNOWN else None
        if not texts:
            self._note("code.command")
        else:
            self._words(texts)

    def _words(self, texts: list[str]) -> None:
        if not texts or UNKNOWN in texts[0]:
            self._note("code.command")
        else:
            self._command(texts)

    def _method(self, node: ast.Call, func: ast.Attribute) -> None:
        owner = self._values.text(func.value)
        if func.attr in PATH_METHODS:
            takes_text = node.args and isinstance(node.args[0], ast.Constant)
            if not (func.attr == "unlink" and takes_text):
                self._file_command(PATH_METHODS[func.attr], [owner])
        elif func.attr in ("write_text", "write_bytes"):
            self._writes(owner)
        elif func.attr == "open" and UNKNOWN not in owner:
            self._open(owner, node.args[0] if node.args else _keyword(node, "mode"))
        elif func.attr in ("rename", "symlink_to") and UNKNOWN not in owner and node.args:
            target = self._values.text(node.args[0])
            pair = [owner, target] if func.attr == "rename" else [target, owner]
            self._file_command("mv" if func.attr == "rename" else "ln -s", pair)
        elif func.attr == "chmod" and node.args:
            self._chmod(owner, node.args[0])
        elif func.attr in ("kill", "terminate", "send_signal") and _is_call_of(
            func.value, "parent", "parents"
        ):
            self._command(["kill", PARENT])
        elif func.attr in CONNECTS and node.args:
            self._connects(node.args[-1])
        elif func.attr in ("execute", "executescript", "executemany") and node.args:
            sql = self._values.text(node.args[0])
            self._command(["sqlite3", "database", sql])
        elif func.attr in ("post", "put", "patch", "delete", "request") and node.args:
            address = self._values.text(node.args[-1 if func.attr == "request" else 0])
            if "://" in address:
                self._command(["curl", "-X", "POST", address])

    def _writes(self, path: str) -> None:
        if path and path[0] != UNKNOWN:
            redirect = Redirect(">", Word(path))
            command = Command((), self._places.workspace, redirects=(redirect,))
            self.found.inner.append(Nested(command))

    def _open(self, path: str, mode: ast.AST | None) -> None:
        kind = "r" if mode is None else self._values.text(mode)
        if any(letter in kind for letter in "wax+"):
            self._writes(path)
        elif path and path[0] != UNKNOWN:
            self._command(["cat", path])

    def _chmod(self, path: str, mode: ast.AST) -> None:
        value = mode.value if isinstance(mode, ast.Constant) else None
        if isinstance(value, int):
            self._file_command(f"chmod {value & 0o7777:o}", [path])

    def _connects(self, address: ast.AST) -> None:
        if isinstance(address, ast.Name):
            items = self._values.texts(address)
        else:
            items = self._values.texts(address) if isinstance(address, ast.Tuple) else None
        if items and not items[0].startswith(LOCAL) and items[0] != "":
            self._note("code.network")

    def open_call(self, node: ast.Call) -> None:
        if node.args:
            mode = node.args[1] if len(node.args) > 1 else _keyword(node, "mode")
            self._open(self._values.text(node.args[0]), mode)

    def os_open_call(self, node: ast.Call) -> None:
        if node.args:
            flags = ast.unparse(node.args[1]) if len(node.args) > 1 else ""
            path = self._values.text(node.args[0])
            if "O_WRONLY" in flags or "O_RDWR" in flags or "O_CREAT" in flags:
                self._writes(path)
            elif path and path[0] != UNKNOWN:
                self._command(["cat", path])

    def evaluate_call(self, node: ast.Call) -> None:
        text = self._values.text(node.args[0] if node.args else None)
        if UNKNOWN in text:
            self._note("code.unseen")
        else:
            self.found.inner.append(Code("python", text))

    def import_call(self, node: ast.Call) -> None:
        name = self._values.text(node.args[0] if node.args else None)
        top = name.partition(".")[0]
        if UNKNOWN in name:
            self._note("code.hidden")
        elif top in NATIVE:
            self._note("code.native")
        elif top in REMOTE:
            self._note("code.network")

    def getattr_call(self, node: ast.Call) -> None:
        if len(node.args) > 1 and UNKNOWN in self._values.text(node.args[1]):
            owner = self._values.dotted(node.args[0])
            if owner.partition(".")[0] in SENSITIVE:
                self._note("code.hidden")

    def chmod_call(self, node: ast.Call) -> None:
        if len(node.args) > 1:
            self._chmod(self._values.text(node.args[0]), node.args[1])

    def connection_call(self, node: ast.Call) -> None:
        if node.args:
            self._connects(node.args[0])

    def host_call(self, node: ast.Call) -> None:
        host = self._values.text(node.args[0] if node.args else _keyword(node, "host"))
        if not host.startswith(LOCAL):
            self._note("code.network")

    def address_call(self, node: ast.Call) -> None:
        """`urlopen(address)`: with data it sends, without it fetches."""
        sends = len(node.args) > 1 or _keyword(node, "data") is not None
        address = self._values.text(node.args[0] if node.args else None)
        if sends:
            self._command(["curl", "-X", "POST", address])
        elif UNKNOWN not in address:
            self._command(["curl", address])

    def unpickle_call(self, node: ast.Call) -> None:
        if node.args and isinstance(node.args[0], ast.Constant):
            self._note("code.unseen")


def _is_call_of(node: ast.AST, *methods: str) -> bool:
    func = node.func if isinstance(node, ast.Call) else None
    return isinstance(func, ast.Attribute) and func.attr in methods


def _keyword(node: ast.Call, name: str) -> ast.expr | None:
    return next((one.value for one in node.keywords if one.arg == name), None)


_SPECIAL: dict[str, Callable[[_Look, ast.Call], None]] = {
    "open": _Look.open_call,
    "io.open": _Look.open_call,
    "codecs.open": _Look.open_call,
    "os.open": _Look.os_open_call,
    "eval": _Look.evaluate_call,
    "exec": _Look.evaluate_call,
    "compile": _Look.evaluate_call,
    "__import__": _Look.import_call,
    "importlib.import_module": _Look.import_call,
    "getattr": _Look.getattr_call,
    "os.chmod": _Look.chmod_call,
    "socket.create_connection": _Look.connection_call,
    "http.client.HTTPConnection": _Look.host_call,
    "http.client.HTTPSConnection": _Look.host_call,
    "urllib.request.urlopen": _Look.address_call,
    "urllib.request.Request": _Look.address_call,
    "pickle.loads": _Look.unpickle_call,
}
