"""Follows one command: takes note of it, goes into what it carries inside (another command, a
script, a file this script has written), and lets it act on what is known of the shell. Reading a
script is handed in.
"""

from collections.abc import Callable
from pathlib import Path

from tree_sitter import Node

from journeyman.gate.builtins import apply_builtin, output_of
from journeyman.gate.carried import carried
from journeyman.gate.command import Command, Redirect, Stream
from journeyman.gate.effects import fetched
from journeyman.gate.files import LONGEST_FILE, Files, shebang
from journeyman.gate.findings import Findings
from journeyman.gate.inner import Code, File, Inner, Nested, Script, Unseen
from journeyman.gate.interpreters import ALSO_SHELLS, INTERPRETERS, interpreted, modules
from journeyman.gate.places import Places
from journeyman.gate.state import State
from journeyman.gate.words import UNKNOWN, Word, split
from journeyman.gate.wrappers import wrapped

_NETWORK = frozenset({"curl", "wget", "http", "https", "fetch", "aria2c", "lynx", "nc", "ssh"})
_STDIN = frozenset({"/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "-"})
_TRANSPARENT = frozenset({"command", "builtin", "env", "timeout", "eval"})
_KEYWORDS = frozenset(
    {
        *("{", "}", "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done"),
        *("case", "esac", "select", "function", "in", "!", "[["),
    }
)


class Follower:
    """Follows commands into the findings. `called` holds the functions that were followed."""

    def __init__(
        self,
        findings: Findings,
        places: Places,
        files: Files,
        *,
        read: Callable[[str, State], Stream],
        run: Callable[[Node, State], Stream],
    ) -> None:
        self.called: set[int] = set()
        self._findings = findings
        self._places = places
        self._files = files
        self._seen: set[tuple[object, ...]] = set()
        self._read = read
        self._run = run
        self._calling: list[int] = []

    def emit(self, command: Command, state: State) -> Stream:
        """Takes note of a command, follows what is inside it, and lets it act on the shell."""
        command = self._without_keywords(command)
        if not self._findings.may_go_on():
            return Stream()
        alias = split(state.aliases.get(command.program, ""))
        if alias and alias[0].text != command.program:
            command = command._replace(words=(*alias, *command.words[1:]))
        program = command.program
        if program in state.functions and program == command.words[0].text:
            return self._call(program, command, state)
        self._findings.take(command)
        if self._findings.stopped:
            return Stream()
        if command.words and not program:
            self._findings.note("unknown_program")
        self._findings.depth += 1
        streams = [
            self._inside(inner, command, state)
            for inner in (
                *wrapped(command),
                *interpreted(command),
                *self._own_file(command, state),
                *carried(command),
            )
        ]
        self._findings.depth -= 1
        if program in _TRANSPARENT and streams:
            return streams[-1]
        for name in fetched(command):
            path = self._places.resolve(name, command.cwd)
            if path is not None:
                state.written[path] = None
        self._copied(command, state)
        apply_builtin(command, state, self._places)
        return output_of(command, self._places)

    def _without_keywords(self, command: Command) -> Command:
        """A command named by a word of the grammar is what the parser left of a statement that it
        tore apart, as happens after `!`, `time` and `coproc`.
        """
        while command.words and (not command.words[0].text or command.words[0].text in _KEYWORDS):
            if command.words[0].text:
                self._findings.note("unparseable")
            command = command._replace(words=command.words[1:])
        return command

    def _own_file(self, command: Command, state: State) -> list[Inner]:
        """A file of the workspace that is run as a program: `./made.sh`, `uv run made.py`. Its
        first line says what runs it.
        """
        if command.program in INTERPRETERS:
            return modules(command)
        if not command.words:
            return []
        name = command.words[0].text
        if "/" not in name:
            is_code = bool(command.via) and name.endswith(".py")
            return [File(name, "python", command.words[1:])] if is_code else []
        path = self._places.resolve(name, command.cwd)
        text = state.written[path] if path in state.written else self._files.text(path)
        if text is None:
            return [File(name, "shell")] if path in state.written else []
        by = shebang(text)
        if by:
            words = (*(Word(each) for each in by), *command.words)
            return [Nested(command._replace(words=words, redirects=(), settings=()))]
        return [File(name, "shell", command.words[1:])]

    def _inside(self, inner: Inner, command: Command, state: State) -> Stream:
        match inner:
            case Nested(inside):
                return self.emit(inside, state)
            case Script(text, positional):
                apart = state if command.program == "eval" else state.copy()
                if positional is not None:
                    apart.call_with(positional)
                return self._read(text, apart)
            case Code():
                self._findings.code.append(inner)
            case File():
                self._file(inner, command, state)
            case Unseen():
                made_by = command.stdin.made_by if command.stdin is not None else frozenset[str]()
                self._findings.note("run.download" if made_by & _NETWORK else "run.unseen")
        return Stream()

    def _file(self, file: File, command: Command, state: State) -> None:
        """A file of code: what this script wrote into it, or else what is in it now."""
        path, language, given = file
        if path in _STDIN:
            text = command.stdin.text if command.stdin is not None else None
            self._inside(Unseen() if text is None else Script(text), command, state)
        elif path.startswith("/dev/fd/"):
            self._findings.note("run.unseen")
        place = self._places.resolve(path, command.cwd)
        if any(one.pattern and one.text == path for one in command.words):
            self._findings.note("run.unseen")
            return
        written = place is not None and place in state.written
        text = state.written[place] if written and place is not None else self._files.text(place)
        if text is None:
            if written:
                self._findings.note("run.download")
            return
        seen = (place, language, given, text)
        if seen in self._seen:
            return
        self._seen.add(seen)
        if text == UNKNOWN:
            self._findings.note("run.unseen")
        elif len(text) > LONGEST_FILE:
            self._findings.note("too_large")
        elif language == "shell":
            self._findings.allow_for(text)
            inside = state if command.program in ALSO_SHELLS else state.copy()
            before = inside.call_with(given) if given or inside is not state else inside.positional
            self._read(text, inside)
            inside.positional = before
        else:
            self._findings.code.append(Code(language, text))

    def _copied(self, command: Command, state: State) -> None:
        """`cp a b; sh b` runs what is in a."""
        operands = command.operands()
        if command.program not in ("cp", "mv", "ln", "install") or len(operands) != 2:
            return
        source, target = (self._places.resolve(word.text, command.cwd) for word in operands)
        if source is None or target is None:
            return
        if source in state.written:
            state.written[target] = state.written[source]
        else:
            text = self._files.text(source)
            if text is not None:
                state.written[target] = text

    def _call(self, name: str, command: Command, state: State) -> Stream:
        """A function that the script defines; one that calls itself is followed once."""
        body = state.functions[name]
        if body.id in self._calling:
            return Stream()
        self.called.add(body.id)
        self._calling.append(body.id)
        before = state.call_with(command.words[1:])
        kept, state.stdin = state.stdin, command.stdin
        stream = self._run(body, state)
        state.positional, state.stdin = before, kept
        self._calling.pop()
        self.emit(command._replace(words=()), state)
        return stream

    def written(self, redirects: tuple[Redirect, ...], stream: Stream, state: State) -> Stream:
        """Keeps in mind what goes into files, so that running one of them can be judged."""
        for operator, target in redirects:
            if operator in (">", ">>", ">|", "&>", "&>>") and target.known:
                path = self._places.resolve(target.text, state.cwd)
                if path is not None:
                    state.written[path] = self._content(path, operator, stream, state)
                if operator != "&>>":
                    stream = Stream("", stream.made_by)
        return stream

    def _content(self, path: Path, operator: str, stream: Stream, state: State) -> str | None:
        """What is in a file after something was written to it, None after a download."""
        if stream.text is None:
            return None if stream.made_by & _NETWORK else UNKNOWN
        if not operator.endswith(">>"):
            return stream.text
        before = state.written[path] if path in state.written else self._files.text(path) or ""
        return before if before is None or before == UNKNOWN else before + stream.text
