"""The environment of the agent's commands: what programs need to run, and no secrets. Names are
listed one by one, because a key can have any name.
"""

from collections.abc import Mapping
from pathlib import Path

from journeyman.agent.tools.confinement import toolchains

PASSED = (
    *("PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "SHELL"),
    *("VIRTUAL_ENV", "CONDA_PREFIX", "JAVA_HOME", "GOROOT", "PYENV_VERSION", "RUSTUP_TOOLCHAIN"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    "NODE_EXTRA_CA_CERTS",
)
"""What is taken over from the agent's own environment."""

_SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin"


def command_environment(
    given: Mapping[str, str], *, home: Path, own_home: Path, temporary: Path
) -> dict[str, str]:
    """The environment of a command, from that of the agent. `home` is the user's, which the
    command does not get; `own_home` the one it gets.
    """
    passed = {name: given[name] for name in PASSED if name in given}
    return {
        "PATH": _SEARCH_PATH,
        "LANG": "C.UTF-8",
        **passed,
        **{name: str(folder) for name, folder in toolchains(given, home)},
        "HOME": str(own_home),
        "TMPDIR": str(temporary),
        "TERM": "dumb",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        # What was printed before a time limit is worth having, and in the order it was printed.
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
