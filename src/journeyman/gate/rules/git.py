"""Rules on git and the sites around it: what publishes work and what loses it. Local steps that
git can undo (commit, merge, rebase, stash) are everyday work and ask nobody.
"""

import re

from journeyman.gate.command import Command
from journeyman.gate.places import Places
from journeyman.gate.rule import Rule, When, both, either, has, no, programs, told

_GIT = programs("git")
_VALUES = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env")

# Settings by which git runs a program or goes to another place than it says.
_RUNS = re.compile(
    r"alias\..*|core\.(?:hookspath|sshcommand|pager|editor|fsmonitor|askpass|gitproxy|worktree|"
    r"alternaterefscommand|attributesfile)|credential\..*|filter\..*|diff\.(?:external|.*\.(?:command|"
    r"textconv))|merge\..*\.driver|mergetool\..*|difftool\..*|url\..*|include(?:if)?\..*|"
    r"gpg\..*program|gpg\.program|sequence\.editor|uploadpack\..*|remote\..*\.(?:uploadpack|"
    r"receivepack|vcs|pushurl)|protocol\..*|pager\..*|browser\..*|man\..*|web\..*|init\.templatedir|"
    r"submodule\..*\.update|http\..*proxy.*|http\.sslverify|sendemail\..*|interactive\.difffilter",
    re.IGNORECASE,
)
_UNVERIFIED = re.compile(r"http\.(?:.*\.)?sslverify=(?:false|0|no|off)?", re.IGNORECASE)
_UNSIGNED = re.compile(r"(?:commit|tag)\.gpgsign=(?:false|0|no|off)?", re.IGNORECASE)
_HARMLESS_VALUE = frozenset({"", "cat", "less", "more", "true", ":", "false", "vim", "vi", "nano"})


def git(*commands: str) -> When:
    return told(*commands, with_value=_VALUES, exact=True)


def _operands(command: Command) -> tuple[str, ...]:
    return command.subcommand(*_VALUES)


def _discards(command: Command, _: Places) -> bool:
    """`checkout` of files, not of a branch."""
    if command.has("-f", "--force", "--ours", "--theirs"):
        return True
    after_dashes = "--" in command.arguments and command.arguments[-1] != "--"
    said = _operands(command)[1:]
    if len(said) > 1 and not command.has("-b", "-B", "-t", "--track", "--orphan", "--detach"):
        return True
    return after_dashes or any(text == "." or text.endswith(("/", "/.")) for text in said)


def _unknown_command(command: Command, _: Places) -> bool:
    operands = command.operands(*_VALUES)
    return bool(operands) and not operands[0].known


def _by_option(command: Command, _: Places) -> bool:
    """`git -c name=value`, before the command's own options."""
    for text in command.values("-c", "--config", "--config-env"):
        name, _equals, value = text.partition("=")
        if _RUNS.fullmatch(name) and value not in _HARMLESS_VALUE:
            return True
    return command.has("--exec-path=") or any(
        text.startswith("--exec-path=") for text in command.arguments
    )


def _unverified(command: Command, _: Places) -> bool:
    return any(map(_UNVERIFIED.fullmatch, command.values("-c", "--config")))


def _unsigned(command: Command, _: Places) -> bool:
    said = _operands(command)
    settings = ["=".join(said[1:3])] if said[:1] == ("config",) and len(said) > 2 else []
    return any(map(_UNSIGNED.fullmatch, (*settings, *command.values("-c", "--config"))))


def _skips_hooks(command: Command, _: Places) -> bool:
    return any(name in ("SKIP", "HUSKY", "LEFTHOOK") and value for name, value in command.settings)


def _by_config(command: Command, _: Places) -> bool:
    said = [text for text in _operands(command)[1:] if text not in ("set", "get", "unset")]
    return bool(said) and len(said) > 1 and bool(_RUNS.fullmatch(said[0]))


def _strange_address(command: Command, _: Places) -> bool:
    return any(text.startswith(("ext::", "fd::")) for text in command.arguments)


_SITE_CHANGES = programs(
    "create delete merge close edit comment set remove reopen review upload archive rename fork "
    "sync transfer lock run cancel rerun enable disable token login logout add install ready "
    "approve delete-asset update-branch note publish new"
)


_SITE_VALUES = ("-R", "--repo", "--hostname")
_changes_site = either(
    told(*(f"* {one}" for one in sorted(_SITE_CHANGES)), with_value=_SITE_VALUES),
    both(lambda command, _: command.program == "hub", told(*sorted(_SITE_CHANGES))),
)


GIT: tuple[Rule, ...] = (
    Rule(
        "git.unknown",
        "ask",
        "What git is told to do cannot be told before it runs.",
        ("git $ACTION",),
        _GIT,
        _unknown_command,
    ),
    Rule(
        "git.unchecked",
        "ask",
        "It skips the checks or the signature that the project asks of every commit.",
        (
            "git commit --no-verify -m x",
            "git commit -anm x",
            "git push --no-verify",
            "git -c commit.gpgsign=false commit -m x",
            "git config commit.gpgsign false",
            "SKIP=mypy git commit -m x",
        ),
        _GIT,
        either(
            has("--no-verify", "--no-gpg-sign", "--no-pre-commit"),
            both(git("commit"), has("-n")),
            _unsigned,
            _skips_hooks,
        ),
    ),
    Rule(
        "git.unverified",
        "ask",
        "It talks to a server without checking that it is the right one.",
        ("git -c http.sslVerify=false clone https://a.example/x",),
        _GIT,
        _unverified,
    ),
    Rule(
        "git.push",
        "ask",
        "It publishes commits to where others see them.",
        ("git push", "git push --force origin main", "git -C sub push"),
        _GIT,
        both(
            git("push", "send-email", "svn dcommit", "p4 submit", "lfs push", "subtree push"),
            no(has("--dry-run")),
        ),
    ),
    Rule(
        "git.reset",
        "ask",
        "It throws away changes that are not committed.",
        ("git reset --hard HEAD~1", "git reset --merge"),
        _GIT,
        both(git("reset"), has("--hard", "--merge", "--keep")),
    ),
    Rule(
        "git.clean",
        "ask",
        "It deletes files that git does not know; they cannot be brought back.",
        ("git clean -fd", "git clean -fdx"),
        _GIT,
        both(git("clean"), no(has("-n", "--dry-run"))),
    ),
    Rule(
        "git.discard",
        "ask",
        "It replaces files by an older state; changes that are not committed are lost.",
        ("git checkout -- .", "git checkout .", "git restore src/a.py", "git switch -f main"),
        _GIT,
        either(
            both(git("checkout"), _discards),
            both(git("switch"), has("-f", "--force", "--discard-changes")),
            both(git("restore"), either(no(has("-S", "--staged")), has("-W", "--worktree"))),
            git("checkout-index", "read-tree"),
        ),
    ),
    Rule(
        "git.forget",
        "ask",
        "It removes a name or a stash; the commits behind it can be lost.",
        ("git branch -D topic", "git stash drop", "git tag -d v1", "git worktree remove -f x"),
        _GIT,
        either(
            both(
                git("branch"), either(has("-D"), both(has("-d", "--delete"), has("-f", "--force")))
            ),
            git("stash drop", "stash clear"),
            both(git("tag"), has("-d", "--delete")),
            both(git("worktree remove"), has("-f", "--force")),
            git("update-ref"),
            both(git("rm"), has("-r", "-f"), no(has("--cached"))),
            git("submodule deinit", "notes remove", "replace"),
            both(git("symbolic-ref *"), lambda command, _: len(_operands(command)) > 2),
            both(git("symbolic-ref"), has("-d", "--delete")),
        ),
    ),
    Rule(
        "git.rewrite",
        "ask",
        "It rewrites the whole history or removes what git keeps for undoing.",
        ("git filter-branch --all", "git reflog expire --expire=now --all", "git gc --prune=now"),
        _GIT,
        either(
            git("filter-branch", "filter-repo", "reflog expire", "reflog delete", "prune"),
            both(git("gc"), has("--prune", "--aggressive")),
            git("fast-import", "lfs migrate", "lfs prune", "repack -a"),
        ),
    ),
    Rule(
        "git.global",
        "ask",
        "It changes git's settings for all projects of this user.",
        ("git config --global user.name x", "git config --system core.editor vi"),
        _GIT,
        both(
            git("config"),
            has("--global", "--system", "--file"),
            no(has("--get", "--list", "-l", "--get-all", "--get-regexp")),
            lambda command, _: len(_operands(command)) != 2 or command.has("--unset", "--edit"),
        ),
    ),
    Rule(
        "git.runs",
        "ask",
        "It makes git run another program or go to another place than it shows.",
        ("git -c core.pager='sh x' log", "git config alias.x '!rm -r y'", "git clone ext::x y"),
        _GIT,
        either(
            _by_option,
            both(git("config"), _by_config),
            _strange_address,
            has("--upload-pack", "--receive-pack", "--open-files-in-pager"),
            both(git("grep"), has("-O")),
        ),
    ),
    Rule(
        "git.credentials",
        "ask",
        "It shows or changes the passwords that git keeps.",
        ("git credential fill", "git credential-store get"),
        _GIT,
        git("credential", "credential-store", "credential-cache", "credential-manager"),
    ),
    Rule(
        "git.site",
        "ask",
        "It changes something on the site that hosts the project.",
        ("gh pr merge 5", "gh release create v1", "gh repo delete x", "gh api -X DELETE repos/x"),
        programs("gh glab hub tea"),
        either(
            _changes_site,
            both(
                told("api"), has("-X", "--method", "-f", "-F", "--field", "--raw-field", "--input")
            ),
        ),
    ),
)
