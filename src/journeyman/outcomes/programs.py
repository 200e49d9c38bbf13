"""How shells and programs complain, for commands whose exit code nobody recorded. The words must
begin a line near the end of the output. A command that only shows files or history is believed
less, because what it shows may hold any words.
"""

import re
from typing import NamedTuple

from journeyman.outcomes.commands import only_shows
from journeyman.outcomes.rule import Rule, on_any_line

SHELL: tuple[Rule, ...] = (
    Rule(
        "programs.command_not_found",
        "failed",
        "not_found",
        (
            r"(?:/\S{0,40}/)?(?:ba|z|da|k)?sh: "
            r"(?:line )?(?:\d+: ?)?(?:[^\s:]{1,80}: )?(?:command )?not found\b",
            r"\(eval\):\d+: (?:[^\s:]{1,80}: )?command not found\b",
            r"(?:zsh|bash|fish):(?:\d+:)? (?:[Uu]nknown command|command not found)",
            r"'[^'\n]{1,80}' is not recognized as an? ",
            r"[^\n:]{1,80}+: The term '",
            r"sudo: [^\n:]{1,80}: command not found",
        ),
        "bash: line 1: pytst: command not found",
        "every shell, in its own words",
    ),
    Rule(
        "programs.system_error",
        "failed",
        "",
        (
            r"(?:[\w./+-]{1,80}+|\(eval\)):(?:[\w ]{1,20}:)? ?(?:[^\n]{0,300}: ?)?(?:[Nn]o such "
            r"file or directory"
            r"|[Ii]s a directory|[Nn]ot a directory|[Pp]ermission denied"
            r"|[Oo]peration not permitted|[Ff]ile exists"
            r"|[Dd]irectory not empty|[Nn]o space left|[Rr]ead-only file system"
            r"|cannot (?:access|stat|open|remove|create|overwrite|move|copy|touch|find)\b"
            r"|can't (?:read|open|cd)\b"
            r"|no matches found|[Nn]o module named|parse error|syntax error|unexpected EOF"
            r"|(?:unrecogni[sz]ed|illegal|invalid|unknown) option|(?:extra|missing) operand"
            r"|bad substitution"
            r"|ambiguous redirect|event not found|unbound variable|not a valid identifier)",
        ),
        "cat: notes.txt: No such file or directory",
        "a program's name, then what the system told it",
    ),
    Rule(
        "programs.fatal",
        "failed",
        "",
        (r"fatal: [^\n]", r"(?:git|hg|svn): '[^'\n]{1,60}' is not a "),
        "fatal: not a git repository (or any of the parent directories): .git",
        "git, when it gives up",
    ),
)

SUMMARIES: tuple[Rule, ...] = (
    Rule(
        "programs.exception",
        "failed",
        "",
        (
            r"(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception|DoesNotExist|Failed"
            r"|Timeout|Expired|Interrupt"
            r"|Configured|Refused|Invalid|Unsupported)(?::[^\n]{0,2000})?(?=\s*\Z)",
            r"(?:Error|Exception|SystemExit): [^\n]{0,2000}(?=\s*\Z)",
            r"(?:Uncaught |Unhandled )?[A-Z]\w{0,60}Error: [^\n]{0,600}\n +at ",
            r"Node\.js v\d",
            r"thread '[^'\n]{1,80}' panicked at ",
            r"panic: ",
            r"Exception in thread ",
            r"Unhandled exception",
        ),
        'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nValueError: 3',
        "a program that died of an exception ends with it",
    ),
    Rule(
        "programs.tests",
        "failed",
        "tests",
        (
            r"FAILED \((?:[a-z ]+=\d+(?:, )?)+\)",
            r"=+ [^\n]{0,120}\b[1-9]\d* (?:failed|errors?)\b[^\n]{0,120} in [\d.:]+",
            r"[1-9]\d* (?:failed|errors?)(?:, [^\n]{1,80})? in [\d.]+s",
            r"=+ no tests ran in ",
            r"FAIL(?:\t[^\n]*)?$",
            r"--- FAIL: ",
            r"test result: FAILED",
            r"=+ tests finished: [^\n]{0,200}\b[1-9]\d* (?:failed|exceptions?)\b",
            r"DO \*NOT\* COMMIT!",
            r"Tests?:? +[^\n]{0,80}\b[1-9]\d* failed",
            r"Test Suites: [^\n]{0,80}\b[1-9]\d* failed",
            r" +[1-9]\d* (?:failing|failed)$",
            r"\d+ examples?, [1-9]\d* failures?",
            r"Tests run: [^\n]{0,120}(?:Failures|Errors): [1-9]",
            r"FAILURES!",
        ),
        "=========== 1 failed, 12 passed in 0.31s ===========",
        "runners of tests count at the end",
    ),
    Rule(
        "programs.build",
        "failed",
        "",
        (
            r"\[[^\]\n]{1,60}\] ERROR task failed",
            r"error: [Rr]ecipe [^\n]{1,120} failed",
            r"g?make(?:\[\d+\])?: \*\*\* ",
            r"npm (?:ERR!|error)\b",
            r" ?ELIFECYCLE\s",
            r"error Command failed with",
            r"BUILD FAIL(?:ED|URE)\b",
            r"FAILURE: Build failed",
            r"Build FAILED",
            r"\[INFO\] BUILD FAILURE",
            r"ninja: (?:build stopped|error)",
            r"CMake Error",
            r"(?:ERROR: )?[Ff]ailed to (?:solve|compile|build)\b",
            r"error during build",
            r"exit status [1-9]\d*$",
            r"rake aborted!",
        ),
        "make: *** [Makefile:3: all] Error 2",
        "programs that run others and stop at the first that fails",
    ),
    Rule(
        "programs.compiler",
        "failed",
        "syntax",
        (
            r"[^\s:]{1,200}+:\d+(?::\d+)?(?:: (?:fatal )?error:| - error TS|: undefined: "
            r"|: [A-Z]\d{3,4} |: syntax error|: no required module)",
            r"error\[E\d+\]: ",
            r"error: (?:could not compile|aborting due to)",
            r"[^\s(]{1,200}+\(\d+,\d+\): error ",
            r"# [\w./-]+(?: \[[\w./-]+\])?\n\S+\.go:\d+:\d+: ",
            r"Found [1-9]\d* errors?\b",
            r"[1-9]\d* errors?(?: generated)?\.?$",
            r"[1-9]\d* issues?:$",
            r"✖ \d+ problems? \([1-9]",
            r"Your code has been rated at (?!10)",
        ),
        "main.c:3:5: error: unknown type name 'itn'",
        "compilers and linters",
    ),
    Rule(
        "programs.command_line",
        "failed",
        "",
        (
            r"[\w./ -]{1,80}+: error: ",
            r"(?:error|Error|ERROR): (?:unknown|unrecogni[sz]ed|invalid|no such|missing|cannot"
            r"|could not|failed|unable"
            r"|pathspec|not found|file or directory|usage|No matching|Could not|Cannot|Failed"
            r"|Your local changes"
            r"|src refspec|patch|The following)\b",
            r"unknown (?:flag|option|command|shorthand flag)[: ]",
            r"CONFLICT \(",
            r"Automatic merge failed",
            r" ?! \[(?:remote )?rejected\]",
            r"Hunk #\d+ FAILED",
            r"\d+ out of \d+ hunks? FAILED",
            r"curl: \(\d+\) ",
            r"(?:ssh|scp|rsync|wget|psql|jq|gh|tar|docker|gcloud|aws|kubectl|helm): (?:error"
            r"|connect|[A-Z]|\d+ compile)",
            r"go: (?:updates to|cannot|no |errors? |[\w./@-]+: )",
            r"Error response from daemon",
            r"Error from server",
            r"(?:ERROR|FATAL|PANIC):  ",
            r"ERROR \d{3,5} \(",
            r"(?:PHP )?(?:Fatal|Parse) error:",
            r"E: [A-Z]",
            r"[\w-]{1,40}+: +cannot find or open ",
            r"(?:Segmentation fault|Killed|Bus error|Aborted|Illegal instruction)\b",
            r"Try '[^'\n]{1,80} --help'",
            r"Usage: [^\n]{1,300}\Z",
            r"no Go files in ",
            r"package [\w./-]+ is not in ",
            r"merge: \S{1,200} - not something we can merge",
            r"The command is terminated due to an error",
            r"pull request create failed",
            r"import cycle not allowed",
        ),
        "prog.py: error: unrecognized arguments: --fast",
        "programs of the command line, each in its own words",
    ),
)

_shell = on_any_line(SHELL)
_any = on_any_line((*SHELL, *SUMMARIES))

_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_LAST = 500
_SHORT = 600
_FIRST = 4000
_TELLING = 12
"""A last line such as FAIL is shorter than this, and a line before it says more."""

_RAISED = re.compile(
    r"^(?:\w{1,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception)\b[^\n]{0,300}", re.MULTILINE
)


class Complaint(NamedTuple):
    """A line that complains, and the row that knows it."""

    rule: Rule | None
    line: str


def complaint(arguments: str, output: str) -> Complaint | None:
    """What a command complains of, when nobody recorded its exit code."""
    end = _end(output)
    found = _any(end)
    if found is None:
        return None
    if only_shows(arguments):
        # The program's own complaint stands alone, first or last.
        end = end.rstrip().rpartition("\n")[2]
        found = _shell(end)
        if found is None and len(output) < _SHORT:
            end = output.partition("\n")[0]
            found = _shell(end)
        if found is None:
            return None
    return Complaint(found.rule, end[found.start :].partition("\n")[0])


def what_went_wrong(output: str) -> Complaint:
    """The line of a failed command's output that says most, else its last words."""
    end = _end(output)
    last = end.rpartition("\n")[2]
    found = _any(last)
    if found is not None and len(last) > _TELLING:
        return Complaint(found.rule, last)  # most programs say it last
    found = _any(end)
    if found is not None:
        return Complaint(found.rule, end[found.start :].partition("\n")[0])
    # What goes to another stream can stand before all else.
    raised = _RAISED.search(output[:_FIRST]) if "Traceback" in output[:_FIRST] else None
    return Complaint(None, raised[0] if raised else last)


def _end(output: str) -> str:
    # The tags that some harnesses put around an output are no line of it.
    end = output[-_LAST:].rstrip().removesuffix("</output>").removesuffix("</output_tail>").rstrip()
    return _COLOURS.sub("", end) if "\x1b" in end else end
