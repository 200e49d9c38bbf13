"""A command among the words of a program that nobody knows: `eatmydata rm -r src` runs `rm`,
whatever `eatmydata` may be. Programs that are known to take words for text or names are left alone.
"""

import re

from journeyman.gate.command import Command
from journeyman.gate.inner import Inner, Nested
from journeyman.gate.interpreters import INTERPRETERS, SHELLS
from journeyman.gate.prefixes import PREFIXES, SCRIPT_OPTIONS
from journeyman.gate.words import names
from journeyman.gate.wrappers import JOINED, SPECIAL

# Names that are no words of any language, so that whoever says one means the program.
_UNMISTAKABLE = names(
    "rm rmdir shred dd wipefs git docker podman nerdctl kubectl helm terraform tofu aws gcloud "
    "curl wget nc ncat socat ssh scp rsync sudo doas chmod chown chgrp chattr find xargs killall "
    "pkill kill npm npx pnpm yarn pip pipx uv uvx twine cargo gem gh glab psql mysql sqlite3 "
    "dropdb "
    "redis-cli mongosh crontab systemctl apt apt-get dnf yum brew truncate tee mv cp ln unlink "
    "env nohup setsid timeout mkfs mkfs.ext4 busybox"
)
_CODE = SHELLS | names("python pypy perl ruby node php lua")

TAKE_TEXT = names(
    "echo printf ls cat cd cp mv rm rmdir mkdir touch ln find fd grep egrep fgrep rg ag ack zgrep "
    "sed awk gawk head tail less more sort uniq wc cut tr tee diff cmp comm patch file stat du df "
    "tree test [ [[ which whereis type man info help apropos whatis tldr cheat vim vi nvim nano "
    "emacs code open git hg svn jq yq ps pgrep date seq read basename dirname realpath readlink "
    "tar zip unzip gzip chmod chown export set unset alias unalias hash command declare local "
    "typeset readonly return case for select let expr logger notify-send cowsay figlet say wall "
    "bat pygmentize cloc tokei scc highlight column paste join fold fmt nl rev tac shuf split "
    "complete compgen compopt history bind abbr fzf gum dialog whiptail zenity dpkg-query rpm "
    "curl wget http dig host nslookup ping md5sum sha256sum base64 xxd od strings ldd nm objdump "
    "brew apt apt-get apt-cache apk dnf yum pacman pip npm yarn pnpm cargo gem poetry uv conda "
    "gh glab task jira todo note hub pass zoxide z autojump tig lazygit delta dot make gmake "
    "dirs id groups users whoami uname hostname locale getconf dpkg command_not_found_handle"
)
"""Programs whose words are text, names or files."""

_MARKS = frozenset({"--", "--args"})
_INSTALLED = re.compile(r"(?:/(?:usr/)?(?:local/)?s?bin/)?[\w.+-]+")
MOST = 6
"""How many words of one command are taken for programs."""


def carried(command: Command) -> list[Inner]:
    """The commands that may begin at a later word."""
    program = command.program
    has_marks = not _MARKS.isdisjoint(command.arguments)
    known = program in TAKE_TEXT or program in _KNOWN
    if not program or (known and (not has_marks or program in _ONLY_TEXT)):
        return []
    found: list[Inner] = []
    words = command.words
    for at in range(1, len(words) - 1):
        before = words[at - 1].text
        if known and before not in _MARKS:
            continue
        if words[at].known and not words[at].pattern and _INSTALLED.fullmatch(words[at].text):
            inner = command.inner(words[at:])
            may_be_value = before.startswith("-") and before not in _MARKS
            if inner.program in _UNMISTAKABLE or (inner.program in _CODE and not may_be_value):
                found.append(Nested(inner))
                if len(found) >= MOST:
                    break
    return found


_KNOWN = _UNMISTAKABLE.union(_CODE, PREFIXES, SCRIPT_OPTIONS, INTERPRETERS, SPECIAL, JOINED)
_ONLY_TEXT = TAKE_TEXT - names("npm yarn pnpm cargo pip gem poetry uv conda brew make")
