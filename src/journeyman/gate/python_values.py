"""What expressions in Python code stand for, as far as it can be told without running them: names
of functions through imports and aliases, and text through constants, joins and paths.
"""

import ast
import base64
import binascii

from journeyman.gate.places import Places
from journeyman.gate.words import PARENT, UNKNOWN, names

DEEPEST = 40
LONGEST = 20_000

_SAME = {"posix": "os", "nt": "os", "posixpath": "os.path", "builtins": "", "__builtins__": ""}
_PATHS = frozenset({"pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath", "os.path.join"})
_PASS_ON = names(
    "str bytes os.fspath os.path.abspath os.path.realpath os.path.normpath "
    "pathlib.Path.resolve os.fsencode os.fsdecode shlex.quote"
)
_BUILTINS = frozenset({"eval", "exec", "compile", "open", "__import__", "getattr"})
_MADE_TEMPORARY = names(
    "tempfile.mkdtemp tempfile.gettempdir tempfile.mkstemp tempfile.mktemp "
    "tempfile.TemporaryDirectory tempfile.NamedTemporaryFile"
)
_PATH_METHODS = names(
    "expanduser resolve absolute decode encode strip rstrip lstrip as_posix lower"
)


class Values:
    """Names and constants of one piece of code."""

    def __init__(self, tree: ast.Module, places: Places) -> None:
        self._places = places
        self.names: dict[str, str] = {}
        self.stars: list[str] = []
        self._constants: dict[str, ast.expr | None] = {}
        for node in ast.walk(tree):
            self._learn(node)

    def _learn(self, node: ast.AST) -> None:
        match node:
            case ast.Import(names=names):
                for alias in names:
                    top = alias.name.partition(".")[0]
                    self.names[alias.asname or top] = alias.name if alias.asname else top
            case ast.ImportFrom(module=str(module), names=names):
                for alias in names:
                    if alias.name == "*":
                        self.stars.append(module)
                    else:
                        self.names[alias.asname or alias.name] = f"{module}.{alias.name}"
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._bind(name, value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._bind(name, value)
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                self._bind(name, value)
            case ast.AugAssign(target=ast.Name(id=name)) | ast.For(target=ast.Name(id=name)):
                self._constants[name] = None
            case ast.With(items=items):
                for item in items:
                    if isinstance(item.optional_vars, ast.Name):
                        self._bind(item.optional_vars.id, item.context_expr)

    def _bind(self, name: str, value: ast.expr) -> None:
        """A name that is given two values stands for neither."""
        dotted = self.dotted(value)
        plain = isinstance(value, ast.Name) and dotted == value.id and dotted not in _BUILTINS
        if dotted and not plain:
            self.names.setdefault(name, dotted)
        self._constants[name] = None if name in self._constants else value

    def dotted(self, node: ast.AST, depth: int = 0) -> str:
        """The full name of what an expression means, as `os.path.join`; empty if not a name."""
        if depth > DEEPEST:
            return ""
        match node:
            case ast.Name(id=name):
                return self._normal(self.names.get(name, name))
            case ast.Attribute(value=value, attr=attr):
                if attr == "__dict__":
                    return self.dotted(value, depth + 1)
                whole = self.dotted(value, depth + 1)
                return self._normal(f"{whole}.{attr}") if whole else ""
            case ast.Call(func=func, args=[first, *rest]):
                called = self.dotted(func, depth + 1)
                if called in ("__import__", "importlib.import_module", "importlib.__import__"):
                    module = self.text(first, depth + 1)
                    return self._normal(module) if UNKNOWN not in module else ""
                if called == "getattr" and rest:
                    owner, name = self.dotted(first, depth + 1), self.text(rest[0], depth + 1)
                    return self._normal(f"{owner}.{name}") if owner and UNKNOWN not in name else ""
                if called == "vars":
                    return self.dotted(first, depth + 1)
            case ast.Subscript(value=value, slice=key):
                owner = self.dotted(value, depth + 1)
                name = self.text(key, depth + 1)
                if UNKNOWN in name:
                    return ""
                if owner == "sys.modules":
                    return self._normal(name)
                is_dict = isinstance(value, ast.Attribute) and value.attr == "__dict__"
                is_vars = isinstance(value, ast.Call)
                if owner and (is_dict or is_vars or owner in ("__builtins__", "")):
                    return self._normal(f"{owner}.{name}")
        return ""

    @staticmethod
    def _normal(name: str) -> str:
        top, dot, rest = name.partition(".")
        if top in _SAME and (dot or top not in ("builtins", "__builtins__")):
            return f"{_SAME[top]}{dot}{rest}".lstrip(".")
        return name

    def text(self, node: ast.AST | None, depth: int = 0) -> str:
        """The text of an expression, with a mark where something in it is not known."""
        if node is None or depth > DEEPEST:
            return UNKNOWN
        found = self._text(node, depth + 1)
        return found if len(found) <= LONGEST else UNKNOWN

    def _text(self, node: ast.AST, depth: int) -> str:
        match node:
            case ast.Constant(value=str(value)):
                return value
            case ast.Constant(value=bytes(value)):
                return value.decode(errors="replace")
            case ast.Constant(value=int(value)):
                return str(value)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
                return str(-value)
            case ast.JoinedStr(values=values):
                return "".join(self.text(each, depth) for each in values)
            case ast.FormattedValue(value=value):
                return self.text(value, depth)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self.text(left, depth) + self.text(right, depth)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return _join([self.text(left, depth), self.text(right, depth)])
            case ast.BinOp(left=left, op=ast.Mod()):
                return self.text(left, depth).partition("%")[0] + UNKNOWN
            case ast.Name(id=name):
                return self.text(self._constants.get(name), depth)
            case ast.NamedExpr(value=value) | ast.Await(value=value):
                return self.text(value, depth)
            case ast.Subscript(value=value, slice=ast.Slice(None, None, ast.UnaryOp())):
                return self.text(value, depth)[::-1]
            case ast.Subscript(value=value, slice=key):
                in_home = self.dotted(value) == "os.environ" and self.text(key, depth) == "HOME"
                return str(self._places.home) if in_home else UNKNOWN
            case ast.Attribute():
                return {"sys.executable": "python", "os.sep": "/", "os.curdir": "."}.get(
                    self.dotted(node), self._attribute(node, depth)
                )
            case ast.Call():
                return self._call(node, depth)
        return UNKNOWN

    def _attribute(self, node: ast.Attribute, depth: int) -> str:
        if node.attr == "parent":
            whole = self.text(node.value, depth)
            return whole.rpartition("/")[0] or "." if UNKNOWN not in whole else UNKNOWN
        return UNKNOWN

    def _call(self, node: ast.Call, depth: int) -> str:
        called = self.dotted(node.func)
        texts = [self.text(each, depth) for each in node.args]
        if called in _PATHS:
            return _join(texts)
        if called in _PASS_ON and texts:
            return texts[0]
        if called in _MADE_TEMPORARY:
            return f"/tmp/{UNKNOWN}"  # noqa: S108
        match called:
            case "os.path.expanduser" | "os.path.expandvars":
                return self._at_home(texts[0]) if texts else UNKNOWN
            case "os.getcwd" | "pathlib.Path.cwd" | "os.getcwdb":
                return str(self._places.workspace)
            case "pathlib.Path.home":
                return str(self._places.home)
            case "os.getenv" | "os.environ.get":
                return str(self._places.home) if texts[:1] == ["HOME"] else UNKNOWN
            case "os.getppid":
                return PARENT
            case "chr":
                return (
                    chr(int(texts[0]))
                    if texts and texts[0].isdecimal() and (0 < int(texts[0]) < 0xD800)
                    else UNKNOWN
                )
            case "base64.b64decode" | "base64.decodebytes" | "base64.standard_b64decode":
                return _decode(texts[0]) if texts else UNKNOWN
            case "bytes.fromhex" | "binascii.unhexlify" | "bytearray.fromhex":
                return _unhex(texts[0]) if texts else UNKNOWN
        return self._method(node, texts, depth)

    def _method(self, node: ast.Call, texts: list[str], depth: int) -> str:
        if not isinstance(node.func, ast.Attribute):
            return UNKNOWN
        owner = self.text(node.func.value, depth)
        match node.func.attr:
            case "join" if len(node.args) == 1 and isinstance(node.args[0], ast.List | ast.Tuple):
                return owner.join(self.text(each, depth) for each in node.args[0].elts)
            case "joinpath":
                return _join([owner, *texts])
            case "replace" if len(texts) == 2 and UNKNOWN not in "".join(texts) and texts[0]:
                return owner.replace(texts[0], texts[1])
            case "format":
                return owner.partition("{")[0] + (UNKNOWN if "{" in owner else "")
            case "expanduser":
                return self._at_home(owner)
            case method if method in _PATH_METHODS:
                return owner
        return UNKNOWN

    def _at_home(self, text: str) -> str:
        at_home = text.startswith(("~", "$HOME"))
        return (
            str(self._places.home) + text.removeprefix("~").removeprefix("$HOME")
            if (at_home)
            else text
        )

    def texts(self, node: ast.AST | None) -> list[str] | None:
        """The items of a list of texts; None if it is not written out."""
        match node:
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [
                    UNKNOWN if isinstance(each, ast.Starred) else self.text(each) for each in items
                ]
            case ast.Name(id=name):
                bound = self._constants.get(name)
                return (
                    self.texts(bound)
                    if isinstance(bound, ast.List | ast.Tuple | ast.Call)
                    else None
                )
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                first, second = self.texts(left), self.texts(right)
                return None if first is None else first + (second or [UNKNOWN])
            case ast.Call(func=ast.Attribute(attr="split", value=value), args=[]):
                whole = self.text(value)
                return whole.split() or None
            case ast.Call(args=[first, *_]) if self.dotted(node.func) == "shlex.split":
                return self.text(first).split() or None
        return None


def _join(parts: list[str]) -> str:
    whole = ""
    for part in parts:
        whole = part if part.startswith("/") or not whole else f"{whole.rstrip('/')}/{part}"
    return whole or "."


def _decode(text: str) -> str:
    try:
        return base64.b64decode(text, validate=False).decode(errors="replace").replace("\0", "")
    except (ValueError, binascii.Error):
        return UNKNOWN


def _unhex(text: str) -> str:
    try:
        return bytes.fromhex(text).decode(errors="replace").replace("\0", "")
    except ValueError:
        return UNKNOWN
