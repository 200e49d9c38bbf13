"""Reads a script and lists every simple command in it that could run, with its words as far as they
can be known beforehand. Follows lists, pipes, loops, functions, substitutions and what commands
carry inside; it runs nothing and judges nothing.
"""

from pathlib import Path

from tree_sitter import Node

from journeyman.gate.command import Command, Redirect, Stream
from journeyman.gate.expansion import Expansion
from journeyman.gate.files import Files
from journeyman.gate.findings import Findings
from journeyman.gate.following import Follower
from journeyman.gate.multiplying import multiplies, never_ends
from journeyman.gate.places import Places
from journeyman.gate.redirection import (
    REDIRECTS,
    at_home,
    redirect_of,
    redirects_of,
    words_of,
)
from journeyman.gate.state import State
from journeyman.gate.syntax import is_misread, is_walkable, parse, text_of
from journeyman.gate.words import (
    OUTPUT,
    PLACEHOLDER,
    UNKNOWN,
    Word,
    as_value,
    protect,
    release,
    split,
)

MOST_TURNS = 8
"""How many words of a loop are followed one by one."""

_APART = frozenset({"subshell", "command_substitution", "process_substitution"})
_COUNTING = frozenset({"test", "[", "let", "printf", "read", "unset", "wait", "declare", "expr"})
_MAYBE = frozenset({"if_statement", "while_statement", "case_statement", "c_style_for_statement"})


class Reader:
    """Collects the commands and the code of a script, and notes on what could not be followed."""

    def __init__(
        self, places: Places, cwd: Path | None = None, *, files: Files | None = None
    ) -> None:
        self.findings = Findings()
        self._places = places
        self._cwd = places.workspace if cwd is None else cwd
        files = Files(lambda _: None, places) if files is None else files
        self._follower = Follower(self.findings, places, files, read=self.read, run=self._statement)

    def read(self, text: str, state: State | None = None) -> Stream:
        """Reads a script; the stream is what it would print, where that can be known."""
        state = State(cwd=self._cwd, home=self._places.home) if state is None else state
        if text.strip() and (OUTPUT in text or not text.replace(UNKNOWN, "").strip()):
            self.findings.note("run.unseen")
        if self.findings.stopped or not self.findings.may_go_on():
            return Stream()
        root = parse(text.replace(UNKNOWN, PLACEHOLDER).replace(OUTPUT, PLACEHOLDER))
        if not is_walkable(root):
            self.findings.note("too_deep")
            return Stream()
        if root.has_error or is_misread(root):
            self.findings.note("unparseable")
        self.findings.depth += 1
        stream = self._statement(root, state)
        for body in list(state.functions.values()):
            if body.id not in self._follower.called:
                self._follower.called.add(body.id)
                self._statement(body, state.copy())
        self.findings.depth -= 1
        return stream

    def follow(self, command: Command) -> None:
        """Takes one command that is already in words, with all that it carries inside."""
        self._follower.emit(command, State(cwd=self._cwd, home=self._places.home))

    def _statement(self, node: Node, state: State) -> Stream:
        """Any node that runs something; the stream is what it prints."""
        nested = node.type in _APART or node.type in _MAYBE or node.type == "compound_statement"
        if not self.findings.may_go_on(deeper=nested):
            return Stream()
        self.findings.calls += 1
        self.findings.depth += nested
        stream = self._by_type(node, state)
        self.findings.calls -= 1
        self.findings.depth -= nested
        return stream

    def _by_type(self, node: Node, state: State) -> Stream:
        match node.type:
            case "command":
                return self._command(node, [], state)
            case "list":
                return self._list(node, [], state)
            case "pipeline":
                return self._pipeline(node.named_children, [], state, state.stdin)
            case "redirected_statement":
                return self._redirected(node, state)
            case "variable_assignment" | "variable_assignments" | "declaration_command":
                self._assignments(node, state)
            case "unset_command":
                names = [text_of(child) for child in node.named_children]
                for name in names:
                    state.forget(name)
                words = (Word("unset"), *(Word(name) for name in names))
                self._follower.emit(Command(words, state.cwd), state)
            case "function_definition":
                self._function(node, state)
            case "for_statement":
                self._for(node, state)
            case "test_command" | "comment":
                self._expansion(state).look_inside(node)
            case "negated_command":
                return self._sequence(node, state)
            case kind if kind in _APART:
                return self._sequence(node, state.copy())
            case kind if kind in _MAYBE:
                if kind == "while_statement" and never_ends(node):
                    self.findings.note("process.endless")
                before = state.copy()
                self._sequence(node, state)
                state.perhaps(before, self._places.workspace)
            case _:
                return self._sequence(node, state)
        return Stream()

    def _sequence(self, node: Node, state: State) -> Stream:
        streams = []
        for child in node.named_children:
            if self.findings.stopped:
                break
            if child.type in REDIRECTS:
                found = redirect_of(child, self._expansion(state), self._places)
                self._follower.emit(Command((), state.cwd, redirects=found), state)
            elif child.type not in ("comment", "variable_name", "word", "number"):
                streams.append(self._statement(child, state))
        return _joined(streams)

    def _list(self, node: Node, redirects: list[Node], state: State) -> Stream:
        """`a && b || c`, nested to the left in the tree, is walked from the left. Redirections
        that the tree gives to the whole list belong to its last part.
        """
        parts: list[tuple[str, Node]] = []
        while node.type == "list":
            parts.append((node.children[1].type, node.children[-1]))
            node = node.children[0]
        streams = [self._statement(node, state)]
        before = state.copy()
        while parts and not self.findings.stopped:
            operator, part = parts.pop()
            previous = state.copy()
            made = self._statement(part, state) if parts else self._to(part, redirects, state)
            streams.append(made)
            if operator == "||":
                state.perhaps(previous, self._places.workspace)
        state.perhaps(before, self._places.workspace)
        return _joined(streams)

    def _pipeline(
        self, stages: list[Node], redirects: list[Node], state: State, fed: Stream | None
    ) -> Stream:
        """Each stage gets what the one before prints; redirections belong to the last."""
        stream = fed
        for stage in stages:
            if self.findings.stopped:
                break
            inside = state.copy()
            inside.stdin = stream
            made = self._to(stage, redirects if stage is stages[-1] else [], inside)
            upstream = stream.made_by if stream is not None else frozenset[str]()
            stream = made._replace(made_by=made.made_by | upstream)
        return stream or Stream()

    def _redirected(self, node: Node, state: State) -> Stream:
        body = next((one for one in node.named_children if one.type not in REDIRECTS), None)
        redirects = [one for one in node.named_children if one.type in REDIRECTS]
        stream = self._to(body, redirects, state)
        # What follows a here-document on its first line belongs to the statement.
        for redirect in redirects:
            if redirect.type == "heredoc_redirect":
                for child in redirect.named_children:
                    if child.type == "pipeline":
                        stream = self._pipeline(child.named_children, [], state, stream)
                    elif child.type in ("command", "list", "subshell", "redirected_statement"):
                        self._statement(child, state)
        return stream

    def _to(self, body: Node | None, redirects: list[Node], state: State) -> Stream:
        """A statement with its redirections."""
        if body is not None and not redirects:
            return self._statement(body, state)
        if body is not None and body.type == "command":
            return self._command(body, redirects, state)
        if body is not None and body.type == "list":
            return self._list(body, redirects, state)
        if body is not None and body.type == "pipeline":
            return self._pipeline(body.named_children, redirects, state, state.stdin)
        if body is not None and body.type == "negated_command":
            return self._to(body.named_children[-1], redirects, state)
        found, fed = self._redirects(redirects, state)
        self._follower.emit(Command((), state.cwd, redirects=found), state)
        kept, state.stdin = state.stdin, fed if fed is not None else state.stdin
        stream = self._statement(body, state) if body is not None else Stream()
        state.stdin = kept
        return self._follower.written(found, stream, state)

    def _redirects(
        self, nodes: list[Node], state: State
    ) -> tuple[tuple[Redirect, ...], Stream | None]:
        return redirects_of(nodes, self._expansion(state), self._places)

    def _command(self, node: Node, redirects: list[Node], state: State) -> Stream:
        expansion = self._expansion(state)
        settings: list[tuple[str, str]] = []
        own: list[Node] = []
        parts: list[Node] = []
        for child in node.children:
            if child.type == "variable_assignment":
                name, values = self._assignment(child, expansion)
                settings.append((name, release(" ".join(values))))
            elif child.type in REDIRECTS:
                own.append(child)
            elif child.type not in ("comment", "ERROR"):
                parts.append(child)
        words = words_of(parts, expansion, self._places)
        if words and words[0].text in _COUNTING:
            for word in words:
                expansion.expand_subscripts(word.text)
        found, fed = self._redirects([*own, *redirects], state)
        command = Command(
            words=tuple(words),
            cwd=state.cwd,
            settings=tuple(settings),
            redirects=found,
            stdin=fed if fed is not None else state.stdin,
        )
        stream = self._follower.emit(command, state)
        return self._follower.written(found, stream, state)

    def _function(self, node: Node, state: State) -> None:
        name = next((text_of(one) for one in node.named_children if one.type == "word"), "")
        parts = [one for one in node.named_children if one.type not in REDIRECTS]
        body = parts[-1]
        self._redirects([one for one in node.named_children if one.type in REDIRECTS], state)
        if multiplies(name, body):
            self.findings.note("fork_bomb")
        state.functions[release(name)] = body

    def _for(self, node: Node, state: State) -> None:
        expansion = self._expansion(state)
        name = ""
        parts: list[Node] = []
        for child in node.named_children:
            if child.type == "variable_name" and not name:
                name = text_of(child)
            elif child.type not in ("do_group", "compound_statement"):
                parts.append(child)
        words = words_of(parts, expansion, self._places)
        before = state.copy()
        values = [as_value(word) for word in words]
        for value in values if 0 < len(values) <= MOST_TURNS else [UNKNOWN]:
            state.assign(name, [value])
            self._statement(node.named_children[-1], state)
        state.perhaps(before, self._places.workspace)

    def _assignments(self, node: Node, state: State) -> None:
        expansion = self._expansion(state)
        children = [node] if node.type == "variable_assignment" else node.named_children
        settings = []
        for child in children:
            if child.type == "variable_assignment":
                name, values = self._assignment(child, expansion)
                appends = any(one.type == "+=" for one in child.children)
                if child.children[0].type == "subscript":
                    state.forget(name)
                elif appends:
                    old = state.lookup(name)
                    is_array = child.children[-1].type == "array"
                    state.assign(name, [*old, *values] if is_array else [old[0] + values[0]])
                else:
                    state.assign(name, values)
                settings.append((name, release(" ".join(values))))
            else:
                text = release(expansion.text(child))
                if "=" in text:
                    settings.append((text.partition("=")[0], text.partition("=")[2]))
                    state.forget(text.partition("=")[0])
        self._follower.emit(Command((), state.cwd, settings=tuple(settings)), state)

    def _assignment(self, node: Node, expansion: Expansion) -> tuple[str, list[str]]:
        target = node.children[0]
        name = text_of(target.children[0] if target.type == "subscript" else target)
        expansion.look_inside(target)
        value = node.children[-1]
        if value.type == "array":
            words = split(expansion.text(value))
            return name, [protect(word.text) for word in words]
        if value.type in ("=", "+="):
            return name, [""]
        text = expansion.text(value)
        expansion.expand_subscripts(release(text))
        if text.startswith("~"):
            text = protect(at_home(Word(release(text)), self._places).text)
        return name, [text]

    def _expansion(self, state: State) -> Expansion:
        return Expansion(state, lambda node: self._substituted(node, state))

    def _substituted(self, node: Node, state: State) -> str:
        """What a substitution stands for."""
        apart = state.copy()
        stream = self._statement(node, apart)
        if stream.text is not None:
            return protect(stream.text.rstrip("\n"))
        return stream.names or OUTPUT


def _joined(streams: list[Stream]) -> Stream:
    if len(streams) == 1:
        return streams[0]
    texts = [one.text for one in streams if one.text is not None]
    made_by = frozenset[str]().union(*(one.made_by for one in streams))
    return Stream("".join(texts) if len(texts) == len(streams) else None, made_by)
