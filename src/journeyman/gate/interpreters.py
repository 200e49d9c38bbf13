"""Interpreters: where the code is that they will run, in a word, in a file or in what they are fed.
Judging the code is for `python_code` and `code_words`.
"""

import re
from typing import NamedTuple

from journeyman.gate.command import Command
from journeyman.gate.inner import Code, File, Inner, Language, Script, Unseen
from journeyman.gate.words import Word, names

SHELLS = names("sh bash dash zsh ksh mksh ash fish rbash rksh yash csh tcsh")

ALSO_SHELLS = frozenset({"source", "."})
"""Builtins that run a file in the shell itself."""


class Interpreter(NamedTuple):
    """A program that runs code: the options whose value is code, those that take another value,
    and those that mean that the next word is no file of code.
    """

    language: Language
    code: tuple[str, ...]
    with_value: tuple[str, ...] = ()
    no_file: tuple[str, ...] = ()
    reads_stdin: bool = True


INTERPRETERS: dict[str, Interpreter] = {
    "python": Interpreter("python", ("-c",), ("-W", "-X"), ("-m",)),
    "pypy": Interpreter("python", ("-c",), ("-W", "-X"), ("-m",)),
    "ipython": Interpreter("python", ("-c",), (), ("-m",)),
    "perl": Interpreter("perl", ("-e", "-E"), ("-I", "-M", "-F")),
    "ruby": Interpreter("ruby", ("-e",), ("-I", "-r", "-E")),
    "node": Interpreter("node", ("-e", "-p", "--eval", "--print"), ("-r", "--require")),
    "nodejs": Interpreter("node", ("-e", "-p", "--eval", "--print"), ("-r", "--require")),
    "bun": Interpreter(
        "node", ("-e", "--eval", "-p"), (), ("run", "test", "install"), reads_stdin=False
    ),
    "deno": Interpreter("node", (), (), ("run", "test", "fmt", "lint", "task"), reads_stdin=False),
    "php": Interpreter("php", ("-r", "-B", "-R", "-E"), ("-d", "-c", "-f")),
    "lua": Interpreter("lua", ("-e",), ("-l",)),
    "luajit": Interpreter("lua", ("-e",), ("-l",)),
    "Rscript": Interpreter("other", ("-e",)),
    "osascript": Interpreter("other", ("-e",), ("-l",)),
    "pwsh": Interpreter("other", ("-c", "-Command", "-command"), ()),
    "tsx": Interpreter("node", ("-e", "--eval"), ("-r", "--require"), reads_stdin=False),
    "ts-node": Interpreter("node", ("-e", "--eval"), ("-r", "-P"), reads_stdin=False),
    "tclsh": Interpreter("other", ()),
    "expect": Interpreter("other", ("-c",)),
    "gdb": Interpreter("other", ("-ex", "--eval-command"), reads_stdin=False),
    "groovy": Interpreter("other", ("-e",)),
    "scala": Interpreter("other", ("-e",), reads_stdin=False),
    "elixir": Interpreter("other", ("-e",)),
    "ghc": Interpreter("other", ("-e",), reads_stdin=False),
    "julia": Interpreter("other", ("-e", "-E")),
    "vim": Interpreter("vim", ("-c", "--cmd"), reads_stdin=False),
    "vi": Interpreter("vim", ("-c", "--cmd"), reads_stdin=False),
    "nvim": Interpreter("vim", ("-c", "--cmd"), reads_stdin=False),
    "ex": Interpreter("vim", ("-c",)),
    "ed": Interpreter("vim", ()),
    "emacs": Interpreter("other", ("--eval", "-eval"), reads_stdin=False),
}
_PROGRAM_FIRST: dict[str, tuple[Language, tuple[str, ...], tuple[str, ...]]] = {
    "awk": ("awk", ("-F", "-v", "-f", "--file"), ("-e", "--source")),
    "sed": ("sed", ("-e", "-f", "-l", "--expression", "--file"), ("-e", "--expression")),
}
_LIKE = {"gawk": "awk", "mawk": "awk", "nawk": "awk", "gsed": "sed"}
_RUN_A_FILE = names("pdb cProfile profile trace runpy debugpy memory_profiler kernprof viztracer")
_SOURCE = re.compile(r"\.[cm]?[jt]sx?$")
_MODULE = re.compile(r"-[bBdEiIOPqsSuvx]*m")
_RUNS_FILES = frozenset({"vim", "vi", "nvim", "ex", "ed", "emacs"})


def interpreted(command: Command) -> list[Inner]:
    """The code that a command runs."""
    program = _LIKE.get(command.program, command.program)
    if program in SHELLS:
        return _shell(command)
    if program in ALSO_SHELLS:
        operands = command.operands()
        return [File(operands[0].text, "shell", tuple(operands[1:]))] if operands else []
    if program in _PROGRAM_FIRST:
        return _program_first(command, *_PROGRAM_FIRST[program])
    interpreter = INTERPRETERS.get(program)
    return [] if interpreter is None else _with_code(command, interpreter)


def _shell(command: Command) -> list[Inner]:
    words = list(command.words[1:])
    found: list[Inner] = []
    takes_code = False
    at = 0
    while at < len(words) and words[at].text[:1] in ("-", "+") and len(words[at].text) > 1:
        text = words[at].text
        if text in ("--rcfile", "--init-file"):
            found += [File(word.text, "shell") for word in words[at + 1 : at + 2]]
            at += 1
        elif not text.startswith("--"):
            takes_code = takes_code or "c" in text[1:]
            at += text.endswith(("o", "O")) and "c" not in text
        at += 1
        if text == "--":
            break
    rest = words[at:]
    if takes_code:
        if not rest:
            return found
        return [*found, Script(rest[0].text, tuple(rest[2:]))]
    if rest and rest[0].text not in ("-", "/dev/stdin") and not command.has("-s"):
        return [*found, File(rest[0].text, "shell", tuple(rest[1:]))]
    return [*found, *_fed(command, tuple(rest[1:]))]


def _fed(command: Command, positional: tuple[Word, ...]) -> list[Inner]:
    if command.stdin is None:
        return []
    if command.stdin.text is None:
        return [Unseen()]
    return [Script(command.stdin.text, positional)]


def _with_code(command: Command, known: Interpreter) -> list[Inner]:
    """Code in an option's value, bundled letters included: `perl -ne CODE`, `python -Bc CODE`."""
    words = command.words[1:]
    found: list[Inner] = []
    at = 0
    while at < len(words):
        text = words[at].text
        name, equals, value = text.partition("=")
        if equals and name in known.code:
            found.append(Code(known.language, value))
        elif _takes_code(text, known):
            found += [Code(known.language, word.text) for word in words[at + 1 : at + 2]]
            at += 1
        elif text[:2] in known.code and len(text) > 2 and known.language != "perl":
            found.append(Code(known.language, text[2:]))
        elif text[:2] in ("-M", "-r") and len(text) > 2 and known.language in ("perl", "ruby"):
            found.append(Code(known.language, text))
        elif text in known.with_value:
            at += 1
        elif known.language == "vim" and text.startswith("+"):
            found.append(Code("vim", text[1:]))
        elif text == "eval" and command.program == "deno":
            found += [Code("node", word.text) for word in words[at + 1 : at + 2]]
        elif text in known.no_file:
            after = [word.text for word in words[at + 1 :] if _SOURCE.search(word.text)]
            return [*found, *(File(path, "node") for path in after[:1] if text == "run")]
        elif not text.startswith("-"):
            if not found and command.program not in _RUNS_FILES:
                found.append(File(text, known.language))
            break
        at += 1
    if not found and known.reads_stdin and command.stdin is not None:
        text_in = command.stdin.text
        found.append(Unseen() if text_in is None else Code(known.language, text_in))
    return found


def modules(command: Command) -> list[Inner]:
    """`python -m name`: a file of the workspace if there is one, or the file that it runs."""
    known = INTERPRETERS.get(command.program)
    if known is None or known.language != "python":
        return []
    texts = command.arguments
    at = next((at for at, text in enumerate(texts) if _MODULE.match(text)), len(texts))
    attached = [text for text in (_MODULE.sub("", each) for each in texts[at : at + 1]) if text]
    name, *rest = [*attached, *texts[at + 1 :]] or [""]
    if not name:
        return []
    place = name.replace(".", "/")
    files = [f"{place}.py", f"{place}/__main__.py"]
    if name in _RUN_A_FILE:
        files += [text for text in rest if text.endswith(".py")][:1]
    return [File(path, "python") for path in files]


def _takes_code(text: str, known: Interpreter) -> bool:
    if text in known.code:
        return True
    bundle = text.startswith("-") and not text.startswith("--") and text[1:].isalnum()
    return bundle and len(text) <= 6 and f"-{text[-1]}" in known.code and "=" not in text


def _program_first(
    command: Command, language: Language, with_value: tuple[str, ...], code: tuple[str, ...]
) -> list[Inner]:
    found: list[Inner] = [File(text, language) for text in command.values("-f", "--file")]
    found += [Code(language, text) for text in command.values(*code)]
    if found:
        return found
    operands = command.operands(*with_value)
    return [Code(language, operands[0].text)] if operands else []
