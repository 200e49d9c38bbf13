"""Places in the file system, by what may be done there: the workspace, scratch folders, devices,
files that steer programs, files that hold secrets. Only paths are looked at, never contents.
"""

import fnmatch
import os
import re
from functools import cache
from pathlib import Path

from journeyman.gate.words import OUTPUT, UNKNOWN, names

SCRATCH = ("/tmp", "/var/tmp", "/private/tmp", "/dev/shm")  # noqa: S108
_IN_SCRATCH = tuple(f"{one}/" for one in SCRATCH)
_MOST_REMEMBERED = 4_096
MADE_TEMPORARY = "/tmp/made-by-mktemp"  # noqa: S108
"""Stands for the name that `mktemp` makes up."""

HARMLESS_DEVICES = names("null stdout stderr stdin fd zero full random urandom")
_OWN_STREAM = re.compile(r"/dev/(?:stdin|stdout|stderr|fd/\d+)|/proc/self/fd/\d+")

# Where somebody types or reads: whoever reads here gets what is typed.
TERMINALS = re.compile(
    r"/dev/(?:tty\w*|pts(?:/.*)?|ptmx|console|vcs\w*|input(?:/.*)?|hidraw\w*|uinput)|"
    r"/proc/(?!self/)[^/]+/fd(?:/.*)?"
)
ACCOUNTS = re.compile(
    r"/(?:private/)?etc/(?:passwd-?|shadow-?|gshadow-?|group|sudoers(?:\.d(?:/.*)?)?|"
    r"master\.passwd|pam\.d(?:/.*)?)"
)

# What a program reads and then does; a change here works later and elsewhere.
STEERING = (
    *(".git", ".git/*", "*/.git", "*/.git/*", ".husky/*", "*/.husky/*", ".gitconfig"),
    *(".github/workflows/*", "*/.github/workflows/*", ".gitlab-ci.yml", ".circleci/*"),
    *("Jenkinsfile", "azure-pipelines.yml", ".travis.yml", "bitbucket-pipelines.yml"),
    *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile"),
    *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".kshrc", ".cshrc", ".tcshrc", ".login"),
    *(".inputrc", ".xinitrc", ".xprofile", ".xsessionrc", "config.fish", ".vimrc", ".exrc"),
    *(".ssh", ".ssh/*", "*/.ssh/*", "authorized_keys", ".env", ".env.*", ".envrc", ".netrc"),
    *(".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", "pip.conf", ".pip/*", ".git-credentials"),
    *("crontab", "crontabs/*", "*/cron.d/*", "*.cron", ".config/autostart/*", "*.service"),
    *(".vscode/tasks.json", ".vscode/settings.json", ".vscode/launch.json", ".devcontainer/*"),
    *(".devcontainer.json", ".pre-commit-config.yaml", ".gitattributes", ".gitmodules"),
    *(".mise.toml", "mise.toml", ".mise/*", ".tool-versions", "AGENTS.md", "CLAUDE.md"),
    *("GEMINI.md", ".cursor/*", ".cursorrules", ".github/copilot-instructions.md"),
    *(".cargo/config.toml", ".cargo/config"),
    *("sitecustomize.py", "usercustomize.py", "*.pth", ".mcp.json", ".claude/settings*.json"),
)
_LOW_STEERING = tuple(one.lower() for one in STEERING)

SECRETS = (
    *(".env", ".env.*", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore"),
    *("*.kdbx", "*.ppk", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk"),
    *("credentials.json", "credentials.y*ml", "client_secret*.json"),
    *("service-account*.json", "service_account*.json", "secrets.json", "secrets.y*ml"),
    *("secrets.toml", "secrets.env", "secret.json", "secret.y*ml", "secret.txt", "secrets.txt"),
    *(".netrc", "_netrc", ".pgpass", ".my.cnf", ".npmrc", ".pypirc", ".git-credentials"),
    *(".htpasswd", ".vault-token", ".docker/config.json", ".kube/config", ".boto", ".s3cfg"),
    *(".bash_history", ".zsh_history", ".python_history"),
    *(
        "wallet.dat",
        "*.tfvars",
        "Cookies",
        "Login Data",
        "logins.json",
        "key4.db",
        "cookies.sqlite",
        "*.token",
    ),
)
_SECRET_FOLDERS = names(
    ".ssh .aws .azure .gnupg .password-store .kube keyrings gcloud gh Keychains"
)
_NOT_SECRET = (
    *("*.pub", "known_hosts*", "*.example", "*.sample", "*.template", "*.dist", "*.tmpl"),
    *(".env.test", ".env.ci", ".env.defaults", ".env.schema", "example.*"),
)
_PASSWORDS = re.compile(r"/etc/(?:g?shadow|sudoers|ssl/private|ssh/.*key$|krb5\.keytab|s[*?\[h].*)")
_ENVIRONMENT = re.compile(r"/proc/[^/]+/(environ|mem|maps|cmdline)")
_MIXED_FOLDERS = frozenset({"gh", "gcloud"})

# Made by tools and made again by them, so that losing them costs only time.
REMADE = (
    *("build", "dist", "out", "target", "node_modules", "__pycache__", ".pytest_cache"),
    *(".mypy_cache", ".ruff_cache", ".hypothesis", ".tox", ".nox", "htmlcov", "coverage"),
    *(".coverage", ".coverage.*", "*.egg-info", ".eggs", ".cache", ".next", ".nuxt", ".turbo"),
    *(".parcel-cache", ".gradle", ".svelte-kit", ".venv", "venv", "_build", "site", "tmp"),
    *("*.pyc", "*.pyo", "*.o", "*.obj", "*.log", "*.tmp", "*.bak", "*.swp", "*.class", "*~"),
    *(
        "*.orig",
        "*.rej",
        ".DS_Store",
        "cmake-build-*",
        "bin/Debug",
        "obj",
        "test-results",
        ".nyc_output",
    ),
)
_INSTALLED = re.compile(
    r"/(?:usr|bin|sbin|lib|lib64|opt|nix|snap|Library|System|Applications|home/linuxbrew)(?:/|$)"
)
_OWN_PROGRAMS = re.compile(
    r"\.(?:local|cargo|nvm|pyenv|rbenv|asdf|bun|deno|volta|npm-global|rustup|pixi|sdkman)/|"
    r"(?:go/bin|miniconda3|anaconda3|miniforge3|\.conda)/"
)


class Places:
    """The places as one workspace and one home see them. Where they are `foreign`, this machine's
    file system is not looked at, and no folder counts as one that tools can make again: what is
    `build` there may be something else here.
    """

    def __init__(self, workspace: Path, home: Path, *, foreign: bool = False) -> None:
        self._foreign = foreign
        self._real = os.path.normpath if foreign else os.path.realpath
        self.workspace = Path(self._real(workspace))
        self.home = Path(self._real(home))
        self._tops = tuple(f"{str(top).rstrip('/')}/" for top in (self.workspace, self.home))
        self._resolved: dict[tuple[str, Path | None], Path | None] = {}
        self._secret: dict[Path, bool] = {}

    def look_again(self) -> None:
        """Forgets where paths led; between two decisions links may have changed."""
        self._resolved.clear()
        self._secret.clear()

    def resolve(self, text: str, cwd: Path | None) -> Path | None:
        """Where a path leads, through `..` and links; None where it begins with something unknown.
        What is unknown later in it is taken for a plain name.
        """
        key = (text, cwd)
        if key not in self._resolved:
            if len(self._resolved) > _MOST_REMEMBERED:
                self.look_again()
            self._resolved[key] = self._resolve(text, cwd)
        return self._resolved[key]

    def _resolve(self, text: str, cwd: Path | None) -> Path | None:
        # What a file system cannot name, no file is named.
        text = text.removeprefix("file://").encode(errors="replace").decode()
        if not text or text[0] in (UNKNOWN, OUTPUT):
            return None
        text = text.replace(UNKNOWN, "unknown").replace(OUTPUT, "unknown")
        if text == "~" or text.startswith("~/"):
            text = str(self.home) + text[1:]
        if _OWN_STREAM.fullmatch(text):
            # Where these lead for the gate is not where they lead for the command.
            return Path(text)
        if text.startswith("/"):
            return Path(self._real("/" + text.lstrip("/")))
        return None if cwd is None else Path(self._real(f"{cwd}/{text}"))

    def is_inside(self, path: Path) -> bool:
        return f"{path}/".startswith(self._tops[0])

    def is_scratch(self, path: Path) -> bool:
        """Where anyone may leave things: temporary folders, and devices that keep nothing."""
        return self.is_harmless_device(path) or f"{path}/".startswith(_IN_SCRATCH)

    def is_harmless_device(self, path: Path) -> bool:
        parts = path.parts
        return (len(parts) > 2 and parts[1] == "dev" and parts[2] in HARMLESS_DEVICES) or (
            parts[1:4] == ("proc", "self", "fd")
        )

    def is_terminal(self, path: Path) -> bool:
        """A terminal or a keyboard, or what another process has open."""
        return TERMINALS.fullmatch(str(path)) is not None

    def is_device(self, path: Path) -> bool:
        """A disk, memory or any other device that keeps what is written."""
        return (
            path.is_relative_to("/dev")
            and path != Path("/dev")
            and not self.is_scratch(path)
            and not self.is_terminal(path)
            and not path.is_relative_to("/dev/tcp")
            and not path.is_relative_to("/dev/udp")
        )

    def is_account_file(self, path: Path) -> bool:
        return ACCOUNTS.fullmatch(str(path)) is not None

    def is_vital(self, path: Path) -> bool:
        """The root, a folder of the system, somebody's home, or what holds the workspace: losing
        it is losing nearly everything. A pattern for all in such a folder counts as the folder.
        """
        if path.name in ("*", ".*", "..*", "?*", "**") or path.name == ".[!.]*":
            path = path.parent
        if path == self.workspace:
            return False
        if self.workspace.is_relative_to(path) or self.home.is_relative_to(path):
            return True
        if path.parent == Path("/home") or path.parent == Path("/Users"):
            return True
        return len(path.parts) <= 2 and not any(path == Path(one) for one in SCRATCH)

    def is_steering(self, path: Path) -> bool:
        """A file that tells programs what to do."""
        below = self._below(path)
        # Some file systems do not tell capitals from small letters.
        name, below = path.name.lower(), below.lower()
        return not _is_example(path) and (
            _matches(name, below, _LOW_STEERING) or ".git" in below.split("/")
        )

    def is_secret(self, path: Path) -> bool:
        """A file that holds keys, passwords or what somebody typed."""
        if path not in self._secret:
            self._secret[path] = self._is_secret(path)
        return self._secret[path]

    def _is_secret(self, path: Path) -> bool:
        if _ENVIRONMENT.match(str(path)) or _PASSWORDS.match(str(path)):
            return True
        below = self._below(path)
        if _is_example(path):
            return False
        folders = {*below.split("/")[:-1], path.name}
        if path.parent.name != ".config":
            folders -= _MIXED_FOLDERS if ".config" not in path.parts else set()
        return bool(folders & _SECRET_FOLDERS) or _matches(path.name, below, SECRETS)

    def is_remade(self, path: Path) -> bool:
        """Made by tools that can make it again, or made up by the same script."""
        if path.is_relative_to(MADE_TEMPORARY):
            return True
        if self._foreign or not self.is_inside(path) or path == self.workspace:
            return False
        below = path.relative_to(self.workspace)
        if ".git" in below.parts:
            return False
        remade = _any_of(REMADE, from_top=False)
        return any(remade.match(part) for part in below.parts)

    def is_installed(self, path: Path) -> bool:
        """Where installed programs are."""
        if _INSTALLED.match(str(path)):
            return True
        return path.is_relative_to(self.home) and bool(
            _OWN_PROGRAMS.match(str(path.relative_to(self.home)))
        )

    def _below(self, path: Path) -> str:
        whole = str(path)
        for top in self._tops:
            if f"{whole}/".startswith(top):
                return whole[len(top) :] or "."
        return whole


def _is_example(path: Path) -> bool:
    """A public key, or a file that shows what a secret one looks like."""
    return _any_of(_NOT_SECRET, from_top=False).match(path.name) is not None


@cache
def _any_of(patterns: tuple[str, ...], *, from_top: bool) -> re.Pattern[str]:
    """All patterns as one: those on names, or those on whole paths."""
    chosen = [one for one in patterns if ("/" in one) == from_top]
    return re.compile("|".join(fnmatch.translate(one) for one in chosen))


def _matches(name: str, below: str, patterns: tuple[str, ...]) -> bool:
    """Whether a path is meant by one of the patterns, by its name or from the top or from any
    folder. A path may be a pattern itself, as the shell was given it; then a few letters must
    agree.
    """
    if any(one in name for one in "*?["):
        start = re.split(r"[*?\[]", name)[0]
        return len(start) > 1 and any(
            fnmatch.fnmatchcase(one.rpartition("/")[2], name) for one in patterns
        )
    if _any_of(patterns, from_top=False).match(name):
        return True
    tops = _any_of(patterns, from_top=True)
    parts = below.split("/")
    return any(tops.match("/".join(parts[at:])) is not None for at in range(len(parts) - 1))
