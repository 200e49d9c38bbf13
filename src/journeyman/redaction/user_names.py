"""User names in places that only have user names: prompts, logins over the network, owners of files
and processes, authors. Home folders are for `homes`.
"""

import re
from collections.abc import Callable
from typing import NamedTuple


class Owner(NamedTuple):
    """A place. The only group is the name; `gate` stands in every text that the pattern fits."""

    id: str
    gate: str
    pattern: str
    example: str
    reason: str


_N = r"([A-Za-z_][\w.-]{2,31})"
_LINE = r"(?:(?<![^\n])|(?<=\\n))"

OWNERS: tuple[Owner, ...] = (
    Owner("prompt", "@",
          rf"{_LINE}(?:\([\w.-]{{1,30}}\) )?{_N}@[\w.-]{{1,60}}:[~/][^\s$#]{{0,99}}[$#%] ",
          "alice@build-7:~/src$ make", "the prompt of a shell"),
    Owner("prompt.brackets", "@", rf"\[{_N}@[\w-]{{1,60}} [^\s\]]{{1,60}}\][$#]",
          "[alice@fedora src]$ ls",
          "the prompt of other systems"),
    Owner("prompt.mac", "@",
          rf"{_LINE}(?:\([\w.-]{{1,30}}\) )?{_N}@[\w-]{{1,60}} [^\s]{{1,60}} % ?",
          "(base) alice@Als-MacBook-Pro app % ls", "the prompt of a Mac"),
    Owner("network", "@", r"\b(?:ssh|scp|sftp|rsync|mosh|ssh-copy-id|sshfs)\b[^\n|;@]{0,200}?[ '\"]"
          rf"{_N}@(?=[\w.-]{{2,80}}(?:[:\s'\"\\]|\Z))", "ssh alice@10.0.0.3",
          "a login over the network"),
    Owner("whoami", "whoami", rf"whoami(?:\n|\\n){_N}(?=\s|\\n|\Z)", "$ whoami\nalice",
          "the answer itself"),
    Owner("id", "uid=", rf"\b[ug]id=\d{{1,10}}\({_N}\)", "uid=1000(alice) gid=1000(alice)",
          "the answer of id"),
    Owner("logname", "LOGNAME=", rf"\bLOGNAME=[\"']?{_N}(?=[\s\"';\\]|\Z)",
          "LOGNAME=alice", "a variable of the environment"),
    Owner("variable", "USER", rf"\b(?:USER|USERNAME|SUDO_USER)=[\"']?{_N}(?=[\s\"';\\]|\Z)",
          "USERNAME=alice", "variables of the environment"),
    Owner("owner", "rw",
          rf"[-dlbcps](?:[-r][-w][-xsStT]){{3}}[.+@]?[ \t]{{1,9}}\d{{1,9}}[ \t]{{1,4}}{_N}[ \t]",
          "-rw-r--r-- 1 alice staff 512 Jan 2 10:00 a.py", "the owner of a file"),
    Owner("process", " 0.0 ",
          rf"(?<![^\n]){_N} {{1,12}}\d{{1,8}} {{1,6}}\d{{1,3}}\.\d {{1,6}}\d{{1,3}}\.\d ",
          "alice  4242  0.0  0.1 python app.py", "the owner of a process"),
    Owner("author", ": ",
          r"\b(?:Author|Committer|Co-authored-by|Signed-off-by|Reviewed-by|Tagger): {1,4}"
          r"([^\W\d_][\w.' -]{1,60}?) <(?=<email:|[^>\n]{1,80}@)",
          "Co-authored-by: alice <<email:1>>",
          "who changed something"),
    Owner("git", "user.name",
          r"(?:\bconfig(?: --?[a-z]+){0,3} user\.name |-c user\.name=)\\?[\"']?"
          r"([^\W\d_][\w. -]{1,60}?)(?=\\?[\"'\n]|\\n|\Z| &| -|;)",
          "git config --global user.name alice", "the same in a setting"),
    Owner("chown", "chown ", rf"\bchown (?:-\w{{1,4}} ){{0,3}}{_N}(?=[: ])", "chown alice:alice f",
          "a new owner"),
    Owner("sudo", "sudo ", rf"\bsudo (?:-\w{{1,4}} ){{0,3}}-u ?{_N}(?=\s|\Z)", "sudo -u alice ls",
          "as another user"),
    Owner("domain", "TOP-", rf"\b(?:DESKTOP|LAPTOP)-[A-Z0-9]{{2,15}}\\{{1,4}}{_N}",
          "DESKTOP-Q1W2\\alice",
          "a machine of Windows and its user"),
)  # fmt: skip
_COMPILED = tuple((row.gate, re.compile(row.pattern)) for row in OWNERS)


def without_owners(text: str, put: Callable[[str], str]) -> str:
    """The text with the names replaced by what `put` gives for them."""

    def replaced(found: re.Match[str]) -> str:
        start, end = (place - found.start() for place in found.span(1))
        return found[0][:start] + put(found[1]) + found[0][end:]

    for gate, pattern in _COMPILED:
        if gate in text:
            text = pattern.sub(replaced, text)
    return text
