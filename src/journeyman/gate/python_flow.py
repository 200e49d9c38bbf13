"""Where values in Python code come from and where they end: files that are found and written over
unread, and files whose content goes into a request. Follows names, not the order of things.
"""

import ast
from collections.abc import Iterator

from journeyman.gate.python_calls import LOCAL
from journeyman.gate.python_values import Values
from journeyman.gate.words import names

MOST_NAMES = 12
"""How many names an address is followed through."""

MOST_LOOPS = 200
"""How many loops are looked at; each is looked through as a whole."""

_LISTS = names("glob.glob glob.iglob os.walk os.listdir os.scandir os.fwalk")
_LIST_METHODS = frozenset({"glob", "rglob", "iterdir", "walk"})
_READS = names("read read_text read_bytes readlines readline load loads reader read_csv safe_load")
_CONTENT = frozenset({"open", "io.open", "codecs.open", "os.open", "os.read"})
_CONTENT_METHODS = frozenset({"read_text", "read_bytes"})
_REQUESTS = names(
    "urllib.request.urlopen urllib.request.Request urllib.request.urlretrieve requests.get "
    "requests.head requests.options requests.request httpx.get httpx.head httpx.stream "
    "httpx.request aiohttp.request socket.getaddrinfo socket.gethostbyname"
)
_REQUEST_METHODS = frozenset({"get", "head", "options", "request", "stream", "putheader"})
_SENT = frozenset({"params", "headers", "cookies", "auth", "data", "json", "files", "content"})


class Flow:
    """Follows values through one piece of code."""

    def __init__(self, tree: ast.Module, values: Values) -> None:
        self._tree = tree
        self._values = values
        self._sources: dict[str, list[ast.expr]] = {}
        self._known: dict[frozenset[str], frozenset[str]] = {}
        for node in ast.walk(tree):
            for target, value in _bindings(node):
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        self._sources.setdefault(name.id, []).append(value)

    def empties(self) -> bool:
        """Whether a loop over files that are found writes over them without reading any."""
        scopes = [one for one in ast.walk(self._tree) if isinstance(one, _SCOPES)][:MOST_LOOPS]
        return any(self._lists(scope) and self._writes_unread(scope) for scope in scopes)

    def _lists(self, scope: ast.AST) -> bool:
        iterated = [scope.iter] if isinstance(scope, ast.For | ast.AsyncFor) else []
        iterated += [one.iter for one in getattr(scope, "generators", [])]
        return any(self._comes_from(each, _LISTS, _LIST_METHODS) for each in iterated)

    def _writes_unread(self, scope: ast.AST) -> bool:
        calls = [one for one in ast.walk(scope) if isinstance(one, ast.Call)]
        if any(isinstance(one.func, ast.Attribute) and one.func.attr in _READS for one in calls):
            return False
        return any(self._writes_over(one) for one in calls)

    def _writes_over(self, call: ast.Call) -> bool:
        name = self._values.dotted(call.func)
        target: ast.expr | None = call.args[0] if call.args else None
        if name in ("open", "io.open", "codecs.open"):
            modes = [*call.args[1:2], *(one.value for one in call.keywords if one.arg == "mode")]
            writes = any("w" in self._values.text(mode) for mode in modes)
        elif name == "os.truncate":
            writes = True
        elif isinstance(call.func, ast.Attribute):
            target, method = call.func.value, call.func.attr
            writes = method in ("write_text", "write_bytes") or (
                method == "open" and any("w" in self._values.text(one) for one in call.args[:1])
            )
        else:
            writes = False
        # A name with something added to it is a new file.
        return writes and target is not None and not any(map(_is_text, ast.walk(target)))

    def sends(self, call: ast.Call) -> bool:
        """Whether a request carries what was read from a file."""
        name = self._values.dotted(call.func)
        by_method = isinstance(call.func, ast.Attribute) and call.func.attr in _REQUEST_METHODS
        if name not in _REQUESTS and not (by_method and self._is_request(call)):
            return False
        address = next(iter(call.args[-1:] if name.endswith(".request") else call.args), None)
        text = self._values.text(address).removeprefix("https://").removeprefix("http://")
        if text.startswith(LOCAL):
            return False
        sent = [one.value for one in call.keywords if one.arg in _SENT]
        sent += [piece for one in call.args for piece in self._after_start(one)]
        return any(self._comes_from(one, _CONTENT, _CONTENT_METHODS) for one in sent)

    def _is_request(self, call: ast.Call) -> bool:
        """`session.get("https://…")`, and not `settings.get(name)`."""
        return any("://" in self._values.text(one) for one in call.args[:2])

    def _after_start(self, node: ast.expr) -> list[ast.expr]:
        """The parts of an address after its first; an address that was read is no content."""
        found: list[ast.expr] = []
        waiting = [node]
        seen: set[str] = set()
        while waiting and len(seen) < MOST_NAMES:
            match waiting.pop():
                case ast.Name(id=name) if name not in seen:
                    seen.add(name)
                    waiting += self._sources.get(name, [])[:MOST_NAMES]
                case ast.JoinedStr(values=[_, *rest]):
                    found += rest
                case ast.BinOp(left=left, right=right):
                    waiting.append(left)
                    found.append(right)
                case ast.Call(func=ast.Attribute(attr="format" | "join"), args=given, keywords=by):
                    found += [*given, *(one.value for one in by)]
                case ast.Call(args=[first, *rest]):
                    waiting.append(first)
                    found += rest
                case ast.Dict() as headers:
                    found.append(headers)
        return found

    def _comes_from(self, node: ast.AST, calls: frozenset[str], methods: frozenset[str]) -> bool:
        names = self._names_from(calls, methods)
        return any(
            (isinstance(one, ast.Name) and one.id in names) or self._calls(one, calls, methods)
            for one in ast.walk(node)
        )

    def _calls(self, node: ast.AST, calls: frozenset[str], methods: frozenset[str]) -> bool:
        if not isinstance(node, ast.Call):
            return False
        by_method = isinstance(node.func, ast.Attribute) and node.func.attr in methods
        return by_method or self._values.dotted(node.func) in calls

    def _names_from(self, calls: frozenset[str], methods: frozenset[str]) -> frozenset[str]:
        """The names that such a call gives a value to, directly or through other names."""
        if calls in self._known:
            return self._known[calls]
        used_by: dict[str, set[str]] = {}
        waiting = []
        for name, sources in self._sources.items():
            for one in (each for source in sources for each in ast.walk(source)):
                if isinstance(one, ast.Name):
                    used_by.setdefault(one.id, set()).add(name)
                elif self._calls(one, calls, methods):
                    waiting.append(name)
        found: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += used_by.get(name, ())
        self._known[calls] = frozenset(found)
        return self._known[calls]


_SCOPES = (ast.For, ast.AsyncFor, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


def _bindings(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((target, value) for target in targets)
        case ast.AugAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
            yield target, value
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield target, value
        case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
            yield target, value
        case ast.comprehension(target=target, iter=value):
            yield target, value
        case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
            yield target, value


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
