"""Rules on installing and removing software. What the project lists itself may be installed; what
is new to it, or changes the whole machine, is asked about.
"""

import re

from journeyman.gate.command import Command
from journeyman.gate.places import Places
from journeyman.gate.rule import Rule, both, either, has, no, programs, told
from journeyman.gate.rules.package_names import find_popular

_SYSTEM_PACKAGES = programs(
    "apt apt-get aptitude dpkg yum dnf microdnf rpm zypper pacman yay apk brew port snap flatpak "
    "choco winget scoop nix-env emerge pkg opkg apt-key add-apt-repository apt-add-repository"
)
_ASKS_PACKAGES = (
    *("list", "search", "show", "info", "policy", "depends", "rdepends", "madison", "query"),
    *("provides", "repolist", "check-update", "outdated", "leaves", "deps", "config", "doctor"),
    *("home", "--prefix", "audit", "desc", "log", "cat", "changelog", "showpkg", "stats"),
)
_SPECS = re.compile(r"\.{0,2}/.*|\.(\[.*\])?|(?!.*://).*\.(whl|tar\.gz|zip)")
_INSTALLS = frozenset({"install", "i", "add", "require", "get", "download", "inject", "dlx", "run"})
_NAME = re.compile(r"@?[A-Za-z][\w./-]*")
_REGISTRIES = {
    **dict.fromkeys(("pip", "uv", "python", "pipx", "uvx", "poetry", "pdm", "pipenv"), "pypi"),
    **dict.fromkeys(("npm", "yarn", "pnpm", "bun", "npx", "bunx", "pnpx"), "npm"),
    **dict.fromkeys(("cargo", "gem", "bundle", "composer"), "other"),
}


def _misspelt(command: Command, _: Places) -> bool:
    """A name that is nearly that of a popular package, behind the word that installs."""
    registry = _REGISTRIES[command.program]
    said = [text for text, _ in command.said()]
    starts = [at for at, text in enumerate(said) if text in _INSTALLS]
    if command.program in ("npx", "bunx", "pnpx", "uvx"):
        starts = [-1]
    found = (_NAME.match(text) for start in starts[:1] for text in said[start + 1 :])
    return any(one is not None and find_popular(one[0], registry) for one in found)


def _unverified(command: Command, _: Places) -> bool:
    return any(
        text in ("--strict-ssl=false", "--no-strict-ssl")
        or text.partition("=")[0] in ("--trusted-host", "--allow-insecure-host")
        for text in command.arguments
    )


def _from_address(command: Command, _: Places) -> bool:
    """What is to be installed comes from an address, not from the registry or the project."""
    said = [text for text, _ in command.said()]
    return not _INSTALLS.isdisjoint(said) and any(
        "://" in text or text.startswith(("git+", "github:", "git@"))
        for text in (*said, *command.values("-r", "--requirement", "-e", "--editable", "--git"))
    )


def _new_python_packages(command: Command, _: Places) -> bool:
    """Packages by name, which are fetched; not the project itself or what its files list."""
    readings = command.readings(
        *("-r", "-c", "-e", "--requirement", "--constraint", "--editable", "-i", "--index-url"),
        *("--extra-index-url", "-t", "--target"),
    )
    return any(_installs_new(command, list(said)) for said in readings)


def _installs_new(command: Command, texts: list[str]) -> bool:
    while texts[:1] in (["pip"], ["tool"]):
        texts = texts[1:]
    if texts[:1] not in (["install"], ["download"], ["wheel"]):
        return False
    elsewhere = command.has("--index-url", "--extra-index-url", "--break-system-packages", "--user")
    edited = [text for text in command.values("-e", "--editable") if "://" in text]
    named = [text for text in texts[1:] if not _SPECS.fullmatch(text)]
    return bool(named or edited) or elsewhere or command.value("-i") is not None


def _new_node_packages(command: Command, _: Places) -> bool:
    readings = command.readings(*("--prefix", "-w", "--workspace", "-C", "--cwd", "--filter", "-F"))
    if command.has("-g", "--global", "--location") and readings[0][:1] != ("list",):
        return True
    installs = ("install", "i", "add", "upgrade", "link", "dlx")
    return any(len(said) > 1 and said[0] in installs for said in readings)


def _installs_by_name(command: Command, _: Places) -> bool:
    """A package by name; not all that the project lists, nor the project itself."""
    readings = command.readings("-n", "--name", "-p", "--group", "-G", "--with", "--extras")
    return any(_names_a_package(command, said) for said in readings)


def _names_a_package(command: Command, said: tuple[str, ...]) -> bool:
    if said[:1] == ("tool",) or said[:2] == ("add", "package"):
        said = said[1:]
    verb, *named = said or ("",)
    if verb not in ("install", "add", "require", "get", "create"):
        return False
    return command.program == "cargo" or any(not text.startswith((".", "/")) for text in named)


def _from_afar(command: Command, _: Places) -> bool:
    """What is run is an address or a published package, not a file of the project."""
    said = command.subcommand()[1:]
    return command.program in ("pipx", "nix") or any("://" in text or "@" in text for text in said)


PACKAGES: tuple[Rule, ...] = (
    Rule(
        "package.address",
        "ask",
        "It installs what is at an address, past the registry.",
        (
            "pip install git+https://a.example/x",
            "pip install https://a.example/x.zip",
            "pip install -r https://a.example/list.txt",
            "npm install github:a/b",
            "cargo install --git https://a.example/x",
        ),
        frozenset(_REGISTRIES),
        _from_address,
    ),
    Rule(
        "package.misspelt",
        "ask",
        "The package's name is one slip away from that of a very popular one.",
        (
            "pip install reqeusts",
            "uv add python-dateutils",
            "npm install lodahs",
            "python -m pip install 'nunpy==1.26'",
            "npx -y expresss",
            "cargo add serde_jsom",
        ),
        frozenset(_REGISTRIES),
        _misspelt,
    ),
    Rule(
        "package.unverified",
        "ask",
        "It installs packages from a server without checking that it is the right one.",
        ("pip install --trusted-host a.example -r requirements.txt", "npm ci --strict-ssl=false"),
        frozenset(_REGISTRIES),
        _unverified,
    ),
    Rule(
        "package.system",
        "ask",
        "It installs, removes or updates software of the whole machine.",
        ("apt-get install -y nginx", "brew uninstall git", "dpkg -i x.deb", "pacman -Syu"),
        _SYSTEM_PACKAGES,
        both(
            lambda command, _: bool(command.arguments),
            no(told(*_ASKS_PACKAGES)),
            no(has("-l", "-L", "-q", "-Q", "--version", "--list", "-s", "--prefix")),
        ),
    ),
    Rule(
        "package.python",
        "ask",
        "It installs packages that the project does not list, or removes some.",
        ("pip install requests", "python -m pip install evil", "uv pip install x"),
        programs("pip uv python pipx easy_install"),
        both(
            either(no(lambda command, _: command.program == "python"), has("-m")),
            either(
                _new_python_packages,
                told("uninstall", "pip uninstall", "add", "tool install", "config set", "inject"),
                lambda command, _: command.program == "easy_install",
            ),
        ),
    ),
    Rule(
        "package.node",
        "ask",
        "It installs packages that the project does not list, or for the whole machine.",
        ("npm install left-pad", "npm i -g typescript", "yarn add x", "pnpm dlx x"),
        programs("npm yarn pnpm bun"),
        either(
            _new_node_packages,
            told("uninstall", "remove", "un", "rm", "config set", "set", "global"),
        ),
    ),
    Rule(
        "package.other",
        "ask",
        "It installs or removes packages.",
        ("cargo install ripgrep", "gem install rails", "go install a.example/x@latest"),
        programs(
            "cargo gem go composer poetry conda mamba luarocks cpan cpanm dotnet rustup pdm "
            "bundle hex opam stack cabal sdk nvm pyenv asdf mise helm-plugin code gh-extension"
        ),
        either(
            _installs_by_name,
            told(
                *("uninstall", "remove", "toolchain install", "self", "global", "env remove"),
            ),
        ),
    ),
    Rule(
        "package.fetched",
        "ask",
        "It fetches a package and runs it at once.",
        ("npx -y some-tool", "uvx some-tool", "pipx run x"),
        programs("npx bunx pnpx uvx pipx deno go nix"),
        either(
            both(
                lambda command, _: command.program == "npx",
                has("-y", "--yes", "-p", "--package"),
            ),
            lambda command, _: command.program in ("uvx", "bunx", "pnpx"),
            both(told("run"), _from_afar),
        ),
    ),
)
