"""Finds commands that start a shell or an interpreter which then reads what to do from a terminal:
what is typed there later passes no gate.
"""

import re

from journeyman.gate.command import ShellCommand
from journeyman.gate.decision import vocabulary
from journeyman.gate.parser import read_script

_PYTHONS = frozenset({"python", "pypy"})
_NODES = frozenset({"node", "nodejs"})
_TERMINALS = frozenset(
    {"script", "tmux", "screen", "zellij", "expect", "unbuffer", "rlwrap", "csh", "tcsh", "pwsh"}
    | {"ipython", "bpython", "irb", "ghci", "iex", "erl", "jshell", "scala", "R", "julia", "gdb"}
)
"""Further programs that read commands, and those that give others a terminal."""

_CONSOLE_MODULES = frozenset({"code", "asyncio", "pdb", "IPython"})
_STAYS = re.compile(r"-[bBdEIOPqsSuvx]*i.*|--interactive")
_CODE = re.compile(r"-[A-Za-z]*[ce].*|-p|--(?:eval|print|test|run|check).*")
_SCRIPT = re.compile(r"-[A-Za-z]*c")
_SHELL_VALUES = ("-O", "-o", "+O", "+o", "--rcfile", "--init-file")
_VALUES = {
    **dict.fromkeys(_PYTHONS, ("-W", "-X")),
    **dict.fromkeys(_NODES, ("-r", "--require", "--import")),
}
"""Options with a value, which is no script."""


def opens_terminal(text: str) -> bool:
    """Whether a command line starts a program that reads commands from the terminal."""
    commands = read_script(text).commands
    return any(_is_interactive(command) for command in commands)


def _is_interactive(command: ShellCommand) -> bool:
    program, words = command.program, command.arguments
    if words and words[-1] in ("--version", "--help"):
        return False
    if program in _TERMINALS or (command.via in _PYTHONS and program in _CONSOLE_MODULES):
        return True
    is_shell = program in vocabulary("shells")
    if not is_shell and program not in vocabulary("interpreters"):
        return False
    operands = command.operands(*(_SHELL_VALUES if is_shell else _VALUES.get(program, ())))
    options = words[: words.index(operands[0])] if operands else words
    if program in _PYTHONS | _NODES and any(map(_STAYS.fullmatch, options)):
        return True
    if program in _PYTHONS and ("-m" in words or words == ("-V",)):
        return False
    if program == "php" and "-r" in options:
        return False
    if any(map((_SCRIPT if is_shell else _CODE).fullmatch, options)):
        return False
    is_fed = (
        command.document is not None
        or bool(command.upstream)
        or any(operator == "<" for operator, _ in command.redirects)
    )
    reads_input = operands[:1] in ([], ["-"], ["/dev/stdin"], ["/dev/tty"])
    return (reads_input or (is_shell and command.has("-s"))) and not is_fed
