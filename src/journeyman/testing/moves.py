"""Short ways to write steps, and the slips that scripted agents make on their way.

A slip is what real agents do: a path that is not there, a misspelt command, a tool of another
harness. Each is followed, here or in the errand around it, by the call that works.
"""

from collections.abc import Callable, Iterable

from msgspec import structs

from journeyman.testing.script import Act, Ask, Step, UserSays
from journeyman.testing.workshop import WORK


def sh(command: str) -> Ask:
    return Ask(tool="shell", arguments={"command": command})


def py(code: str) -> Ask:
    return Ask(tool="python", arguments={"code": code})


def read(path: str) -> Ask:
    return Ask(tool="read", arguments={"path": path})


def write(path: str, content: str) -> Ask:
    return Ask(tool="write", arguments={"path": path, "content": content})


def edit(path: str, old: str, new: str) -> Ask:
    return Ask(tool="edit", arguments={"path": path, "old": old, "new": new})


def search(pattern: str, path: str) -> Ask:
    return Ask(tool="search", arguments={"pattern": pattern, "path": path})


def act(text: str, *asks: Ask, thought: str = "") -> Act:
    return Act(text=text, thought=thought, asks=asks)


def at(project: str, path: str) -> str:
    """The full path of a file of a project."""
    return f"{WORK}/{project}/{path}"


def wrong_path(project: str, path: str) -> list[Step]:
    """Read a file where it is not, then look for it."""
    folder, _, name = path.rpartition("/")
    return [
        act(f"Reading `src/{name}` first.", read(at(project, f"src/{name}"))),
        act(
            "There is no `src` folder here. Let me see where things are.",
            sh(f"find . -name '*{name[-9:]}' | sort; ls {folder or '.'}"),
            thought=f"I assumed a src layout. The project keeps its files in {folder or 'the top'}"
            " itself, so I should look before I guess paths again.",
        ),
    ]


def misspelt(command: str) -> list[Step]:
    """Run a command that does not exist; the errand goes on with the right one."""
    wrong = command.replace("python3", "pyhton3", 1)
    return [act("Running it.", sh(wrong)), act("A typo of mine. Again.", sh(command))]


def foreign_tool(path: str) -> list[Step]:
    """Use a tool that another harness has."""
    return [
        act("Opening the file.", Ask(tool="open_file", arguments={"path": path, "line": 1})),
        act("That tool does not exist here; reading it instead.", read(path)),
    ]


def bad_arguments(path: str) -> list[Step]:
    """Name an argument wrongly."""
    return [
        act("", Ask(tool="read", arguments={"file": path})),
        act("The parameter has another name.", read(path)),
    ]


def refused(command: str, said: str) -> list[Step]:
    """Ask for something that the user does not want, and says why or only stops it."""
    ask = Ask(tool="shell", arguments={"command": command}, fate="refused", said=said)
    return [
        act(
            "Before I go on I would tidy up a little.",
            ask,
            thought="There is some clutter that is not part of the task. Removing it would make "
            "the listing shorter, but it is the user's folder.",
        ),
        *([] if said else [UserSays(text="No need for that. Please go on with the task.")]),
        act("Understood, I leave that alone and go on."),
    ]


def lost(command: str) -> list[Step]:
    """A call after which the session ends without a result."""
    ask = Ask(tool="shell", arguments={"command": command}, fate="lost")
    return [act("One last look at everything together.", ask)]


def elsewhere(project: str, steps: Iterable[Step]) -> list[Step]:
    """The same steps for an agent that stands in another folder: commands change folder first."""

    def moved(ask: Ask) -> Ask:
        if ask.tool != "shell":
            return ask
        return _shell_instead(ask, f"cd {WORK}/{project} && {ask.arguments['command']}")

    return _with_asks(steps, moved)


def python_in_shell(steps: Iterable[Step]) -> list[Step]:
    """The same steps for a harness without a Python tool."""

    def changed(ask: Ask) -> Ask:
        if ask.tool != "python":
            return ask
        return _shell_instead(ask, f"python3 - <<'EOF'\n{ask.arguments['code']}EOF")

    return _with_asks(steps, changed)


def all_in_shell(steps: Iterable[Step]) -> list[Step]:
    """The same steps for a harness that reads and searches with commands."""

    def changed(ask: Ask) -> Ask:
        given = ask.arguments
        if ask.tool == "read" and "file" in given:
            return structs.replace(ask, tool="shell", arguments={"script": f"cat {given['file']}"})
        if ask.tool == "read":
            return _shell_instead(ask, f"cat {given['path']}")
        if ask.tool == "search":
            command = f"grep -rnE '{given['pattern']}' {given['path']} | sort"
            return _shell_instead(ask, command)
        return ask

    return _with_asks(python_in_shell(steps), changed)


def _with_asks(steps: Iterable[Step], change: Callable[[Ask], Ask]) -> list[Step]:
    return [
        structs.replace(step, asks=tuple(change(ask) for ask in step.asks))
        if isinstance(step, Act)
        else step
        for step in steps
    ]


def _shell_instead(ask: Ask, command: str) -> Ask:
    return structs.replace(ask, tool="shell", arguments={"command": command})
