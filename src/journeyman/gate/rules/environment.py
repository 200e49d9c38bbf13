"""Rules on variables by which one program makes another run code, look elsewhere or keep no record.
Variables that only change what a program prints are everyday.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from journeyman.gate.command import Command
from journeyman.gate.places import Places
from journeyman.gate.rule import Rule
from journeyman.gate.words import UNKNOWN

_ALWAYS = re.compile(
    r"LD_PRELOAD|LD_AUDIT|DYLD_INSERT_LIBRARIES|DYLD_.*|BASH_ENV|ENV|"
    r"PROMPT_COMMAND|PS0|SHELLOPTS|BASHOPTS|PYTHONSTARTUP|PYTHONHOME|PYTHONINSPECT|PYTHONBREAKPOINT|"
    r"PERL5OPT|PERL5DB|PERL5LIB|RUBYOPT|RUBYLIB|LUA_INIT.*|GIT_SSH|GIT_SSH_COMMAND|GIT_EXTERNAL_DIFF|"
    r"GIT_SEQUENCE_EDITOR|GIT_ASKPASS|SSH_ASKPASS|SUDO_ASKPASS|GIT_CONFIG|GIT_CONFIG_.*|GIT_EXEC_PATH|"
    r"GIT_TEMPLATE_DIR|GIT_PROXY_COMMAND|LESSOPEN|LESSCLOSE|LESSKEY.*|RUSTC_WRAPPER|RUSTC|"
    r"CARGO_TARGET_.*_RUNNER|GLIBC_TUNABLES|GCONV_PATH|"
    r"NPM_CONFIG_.*|npm_config_.*|PIP_INDEX_URL|PIP_EXTRA_INDEX_URL|UV_INDEX_URL|GOPROXY|"
    r"TAR_OPTIONS|RSYNC_RSH|CVS_RSH|BASH_FUNC_.*|FPATH|CDPATH|GLOBIGNORE|TERMINFO|OPENSSL_CONF|"
    r"PYTHONPYCACHEPREFIX|NODE_TLS_REJECT_UNAUTHORIZED|GIT_SSL_NO_VERIFY|PYTHONHTTPSVERIFY|GOINSECURE|"
    r"PIP_TRUSTED_HOST|UV_INSECURE_HOST|"
    r"HISTFILE|HISTSIZE|HISTFILESIZE",
)
_PROGRAMS = re.compile(
    r"(?:GIT_)?(?:PAGER|EDITOR)|VISUAL|MANPAGER|BROWSER|SHELL|FCEDIT|SYSTEMD_PAGER|PSQL_PAGER|"
    r"PSQL_EDITOR|CC|CXX|LD|AR|PYTHON|CARGO|MAKE|GIT_MERGE_TOOL|FZF_DEFAULT_COMMAND|TMUX_COMMAND|"
    r"AWS_PAGER|DELTA_PAGER|BAT_PAGER|SUDO_EDITOR|KUBE_EDITOR"
)
_PLAIN_PROGRAM = re.compile(r"|[\w.+:-]+|/(?:usr/)?(?:local/)?bin/[\w.+-]+")
_LOADS = re.compile(
    r"-r\b|--require|--import|--loader|-javaagent|-agent|--inspect|OnOutOfMemory|--eval|SHELL|"
    r"toolexec|linker|@"
)


class Variable(NamedTuple):
    """Variables by name, and when a value of theirs is a reason to ask."""

    names: re.Pattern[str]
    when: Callable[[str, Command, Places], bool]


def _folders(value: str, command: Command, places: Places) -> bool:
    """Whether a list of folders begins elsewhere than in the workspace or among what is
    installed.
    """
    for piece in value.split(":"):
        if piece.startswith(UNKNOWN) and len(piece.strip(UNKNOWN)) == 0:
            continue
        path = places.resolve(piece or ".", command.cwd)
        if path is None or not (places.is_inside(path) or places.is_installed(path)):
            return True
    return False


VARIABLES: tuple[Variable, ...] = (
    Variable(_ALWAYS, lambda value, *_: value != ""),
    Variable(_PROGRAMS, lambda value, *_: not _PLAIN_PROGRAM.fullmatch(value)),
    Variable(re.compile(r"PATH|PYTHONPATH|LD_LIBRARY_PATH|NODE_PATH|CLASSPATH"), _folders),
    Variable(
        re.compile(r"NODE_OPTIONS|.*JAVA_(?:TOOL_)?OPTIONS|(?:GNU)?MAKEFLAGS|GOFLAGS|RUSTFLAGS"),
        lambda value, *_: bool(_LOADS.search(value)) or UNKNOWN in value,
    ),
    Variable(re.compile(r"PS4"), lambda value, *_: "$" in value or "`" in value),
)


def _given_to_make(command: Command) -> list[tuple[str, str]]:
    """`make SHELL=…` sets a variable just as well."""
    if command.program not in ("make", "gmake", "export", "declare", "typeset", "readonly"):
        return []
    texts = [text for text in command.arguments if "=" in text and not text.startswith("-")]
    return [(text.partition("=")[0], text.partition("=")[2]) for text in texts]


def _steers(command: Command, places: Places) -> bool:
    return any(
        row.names.fullmatch(name) and row.when(value, command, places)
        for name, value in (*command.settings, *_given_to_make(command))
        for row in VARIABLES
    )


ENVIRONMENT: tuple[Rule, ...] = (
    Rule(
        "environment.steers",
        "ask",
        "It sets a variable by which programs run other code, look elsewhere or keep no record.",
        (
            "LD_PRELOAD=./x.so ls",
            "export BASH_ENV=x.sh",
            "PATH=/tmp/bin:$PATH make",
            "GIT_SSH_COMMAND='sh x' git fetch",
            "env PYTHONSTARTUP=x.py python",
            "PAGER='sh -c id' git log",
            "NODE_OPTIONS='--require ./x.js' npm test",
            "HISTFILE=/dev/null",
        ),
        when=_steers,
    ),
)
