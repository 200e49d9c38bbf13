"""The architecture: layers, import cycles, side effects of imports, and names."""

import ast
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests import waiting

import journeyman

ROOT = Path(journeyman.__file__).parent
PACKAGE = "journeyman"

# Lowest first. A package imports only from lines above its own; packages on the same line do not
# import each other.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("version", "records"),
    ("text",),
    ("settings",),
    ("configuration", "config_file"),
    ("outcomes", "reliability", "redaction", "gate"),
    ("logs", "store", "models", "notify"),
    ("hosts",),
    ("learning",),
    ("experience", "undo"),
    ("agent", "confirm", "testing"),
    ("jobs", "trials"),
    ("facade", "warm_session"),
    ("plugin",),
    ("mcp",),
    ("cli",),  # the command line starts the other surfaces
    ("__main__",),
)
RANK = {name: rank for rank, line in enumerate(LAYERS) for name in line}

BANNED_WORDS = {"util", "utils", "helper", "helpers", "common", "misc"}

CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time", "clock_gettime"}
CLOCKS |= {f"{name}_ns" for name in CLOCKS}
CLOCKS |= {"getrusage", "wait4", "ru_utime", "ru_stime", "default_timer"}

# Libraries that a surface must not use directly, bypassing the facade.
BELOW_THE_FACADE = {"sqlalchemy", "sqlite3", "psycopg"}


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = [PACKAGE, *path.relative_to(ROOT).with_suffix("").parts]
        found[".".join(part for part in parts if part != "__init__")] = path
    return found


MODULES = modules()


@cache
def parsed(module: str) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The imports and classes of a module: those at its top level, and those anywhere in it."""
    tree = ast.parse(MODULES[module].read_text())
    relevant = (ast.Import, ast.ImportFrom, ast.ClassDef)
    anywhere: list[ast.stmt] = []
    unread: list[ast.AST] = [tree]
    while unread:
        for node in ast.iter_child_nodes(unread.pop()):
            if isinstance(node, relevant):
                anywhere.append(node)
            if not isinstance(node, ast.expr):  # expressions contain no statements
                unread.append(node)
    return [node for node in tree.body if isinstance(node, relevant)], anywhere


def imports(module: str, *, at_load: bool = False) -> set[str]:
    """The modules that a module imports, including inside functions unless `at_load`."""
    at_top_level, anywhere = parsed(module)
    found = set()
    for node in at_top_level if at_load else anywhere:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import"
            assert node.module is not None
            for alias in node.names:
                deeper = f"{node.module}.{alias.name}"
                found.add(deeper if deeper in MODULES else node.module)
    return found


def package_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == PACKAGE and len(parts) > 1 else None


def test_every_package_is_in_a_layer() -> None:
    packages = {package_of(module) for module in MODULES} - {None}
    assert not packages - RANK.keys(), "add these packages to LAYERS"
    assert not RANK.keys() - packages, "LAYERS names packages that do not exist"


def test_packages_import_only_from_lower_layers() -> None:
    wrong = []
    for module in MODULES:
        here = package_of(module)
        if here is None:
            continue
        for imported in imports(module):
            there = package_of(imported)
            if there is not None and there != here and RANK[there] >= RANK[here]:
                wrong.append(f"{module} imports {imported}")
    assert not wrong


def test_no_import_cycles() -> None:
    graph = {
        module: {name for name in imports(module, at_load=True) if name in MODULES}
        for module in MODULES
    }
    state: dict[str, str] = {}
    cycles: list[list[str]] = []

    def visit(module: str, path_so_far: list[str]) -> None:
        if state.get(module) == "done":
            return
        if state.get(module) == "open":
            cycles.append([*path_so_far[path_so_far.index(module) :], module])
            return
        state[module] = "open"
        for imported in graph[module]:
            visit(imported, [*path_so_far, module])
        state[module] = "done"

    for module in graph:
        visit(module, [])
    assert not cycles


def test_surfaces_do_not_bypass_the_facade() -> None:
    wrong = []
    for module in MODULES:
        if package_of(module) in ("cli", "mcp"):
            reached = {name.split(".")[0] for name in imports(module)} & BELOW_THE_FACADE
            wrong += [f"{module} imports {name}" for name in reached]
    assert not wrong


def test_importing_a_module_has_no_effects(tmp_path: Path) -> None:
    """No file written, no process started, no connection opened, no thread left running, no
    output.
    """
    names = [name for name in MODULES if "migrations" not in name and not name.endswith("__main__")]
    program = f"""
import sys, threading, importlib
seen = []
def watch(event, args):
    if event == "open" and args[2] & 3 and "__pycache__" not in str(args[0]):
        seen.append(f"open {{args[0]}}")
    elif event in ("os.mkdir", "os.remove", "os.rename", "subprocess.Popen", "os.system",
                   "socket.connect", "socket.bind", "sqlite3.connect"):
        seen.append(f"{{event}} {{args}}")
sys.addaudithook(watch)
for name in {names!r}:
    importlib.import_module(name)
for one in threading.enumerate():
    if one is not threading.main_thread():
        seen.append(f"thread {{one.name}}")
print("\\n".join(seen), end="")
"""
    environ = {**os.environ, "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_help_loads_nothing_heavy() -> None:
    program = """
import sys
from click.testing import CliRunner
from journeyman.cli import command_line
assert CliRunner().invoke(command_line, ["--help"]).exit_code == 0
import json
print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(json.loads(done.stdout))
    assert not loaded & {"sqlalchemy", "alembic", "rich", "numpy", "importlib_metadata"}


def test_no_vague_names() -> None:
    wrong = []
    for module in MODULES:
        if set(re.split(r"[._]", module)) & BANNED_WORDS:
            wrong.append(module)
        for node in parsed(module)[1]:
            if isinstance(node, ast.ClassDef):
                words = {word.lower() for word in re.findall(r"[A-Z][a-z]+", node.name)}
                if words & BANNED_WORDS:
                    wrong.append(f"{module}.{node.name}")
    assert not wrong


def clock_readings(source: str) -> list[int]:
    """The lines that read a clock which only measures durations, and those that compare or subtract
    the time of day: a test may only pass that on.
    """
    nodes = [*ast.walk(ast.parse(source))]
    now = {"time.time()", "time.time_ns()", "datetime.now()"}
    now |= {
        ast.unparse(target)
        for node in nodes
        if isinstance(node, ast.Assign) and ast.unparse(node.value) in now
        for target in node.targets
    }
    lines = []
    for node in nodes:
        name = getattr(node, "attr", None) or getattr(node, "id", None) or getattr(node, "name", "")
        is_difference = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)
        if name in CLOCKS or (
            (is_difference or isinstance(node, ast.Compare))
            and any(ast.unparse(one) in now for one in ast.walk(node) if isinstance(one, ast.expr))
        ):
            lines.append(node.lineno)
    return lines


def test_no_test_watches_the_clock() -> None:
    """How long something takes depends on the machine. Only tests/waiting.py looks at a clock."""
    example = "a = time.time()\nassert time.time() < 2\nassert b - a\nfrom time import monotonic"
    assert clock_readings(example) == [2, 3, 4]
    wrong = []
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        if path != Path(waiting.__file__):
            wrong += [f"{path}:{line}" for line in clock_readings(path.read_text())]
    assert not wrong
