"""Rules on what is lost: trees, wildcards, files outside the workspace, whole disks."""

import re

from journeyman.gate.command import Command
from journeyman.gate.effects import deletes, moved_away, removes_trees
from journeyman.gate.emptying import emptied
from journeyman.gate.places import Places
from journeyman.gate.rule import Rule, When, both, either, has, programs

_DISKS = programs("mkfs mke2fs mkswap mkntfs mkdosfs newfs wipefs blkdiscard sgdisk cfdisk sfdisk")
# By its name a file and no folder; deleting one of those asks nobody.
_FILE = re.compile(
    r"[^*?\[]+\.(?:json|lock|txt|md|rst|py|js|ts|tsx|jsx|c|h|cpp|rs|go|java|rb|sh|html|css|ya?ml|toml|"
    r"ini|cfg|csv|xml|sql|db|sqlite3?|zip|gz|tgz|tar|png|jpe?g|svg|pdf|out|exe|so|a|whl)"
)
_RECORD = re.compile(
    r"(?:^|[/._-])(?:audit(?:[._-][^/]*)?|[wb]tmp|lastlog|auth\.log|secure|\w*_history)$"
)
_PARTITIONS = programs("fdisk parted gdisk gparted cryptsetup lvremove vgremove pvremove zpool")


def _everything(command: Command, places: Places) -> bool:
    if not removes_trees(command):
        return False
    resolved = [places.resolve(word.text, command.cwd) for word in deletes(command)]
    return any(path is not None and places.is_vital(path) for path in resolved)


def _unknown(command: Command, places: Places) -> bool:
    if command.program == "rmdir":
        return False
    resolved = [(word, places.resolve(word.text, command.cwd)) for word in deletes(command)]
    return any(
        path is None or (not word.known and not places.is_remade(path)) for word, path in resolved
    )


def _outside(command: Command, places: Places) -> bool:
    trees = removes_trees(command)
    for word in deletes(command):
        path = places.resolve(word.text, command.cwd)
        if path is None or places.is_inside(path) or places.is_remade(path):
            continue
        if trees or word.pattern or not places.is_scratch(path):
            return True
    return False


def _tree(command: Command, places: Places) -> bool:
    if not removes_trees(command):
        return False
    resolved = [places.resolve(word.text, command.cwd) for word in deletes(command)]
    return any(
        path is None or not (places.is_remade(path) or _FILE.fullmatch(path.name))
        for path in resolved
    )


def _pattern(command: Command, places: Places) -> bool:
    return any(word.pattern for word in deletes(command)) and _any_to_keep(command, places)


def _any_to_keep(command: Command, places: Places) -> bool:
    resolved = [places.resolve(word.text, command.cwd) for word in deletes(command)]
    return any(path is None or not places.is_remade(path) for path in resolved)


def _emptied(command: Command, places: Places) -> bool:
    resolved = [places.resolve(word.text, command.cwd) for word in emptied(command)]
    return any(
        path is None
        or (places.is_inside(path) and not places.is_remade(path))
        or not (places.is_inside(path) or places.is_scratch(path))
        for path in resolved
    )


def _records(command: Command, _: Places) -> bool:
    lost = [word.text for word in deletes(command)]
    lost += [one.target.text for one in command.redirects if one.operator in (">", ">|")]
    if command.program in ("truncate", "shred"):
        lost += command.arguments
    return any(_RECORD.search(text) for text in lost)


def _moved(command: Command, places: Places) -> bool:
    resolved = [places.resolve(word.text, command.cwd) for word in moved_away(command)]
    return any(path is not None and not places.is_inside(path) for path in resolved)


def _steering(command: Command, places: Places) -> bool:
    resolved = [places.resolve(word.text, command.cwd) for word in deletes(command)]
    return any(
        path is not None and (places.is_steering(path) or places.is_secret(path))
        for path in resolved
    )


def _on_a_device(command: Command, places: Places) -> bool:
    resolved = [places.resolve(word.text, command.cwd) for word in command.words[1:]]
    return any(path is not None and places.is_device(path) for path in resolved)


def _disk_program(command: Command, places: Places) -> bool:
    return _is_disk_program(command) and _on_a_device(command, places)


def _is_disk_program(command: Command) -> bool:
    return command.program in _DISKS or command.program.startswith(("mkfs.", "newfs_"))


def _no_listing(*options: str) -> When:
    return lambda command, _: bool(command.arguments) and not command.has(*options)


DELETING: tuple[Rule, ...] = (
    Rule(
        "delete.everything",
        "refuse",
        "It would delete the whole system, a home folder or the folder that holds the workspace.",
        ("rm -rf /", "rm -rf ~", 'rm -rf "$HOME"/*', "find / -delete", "cd / && rm -rf *"),
        when=_everything,
    ),
    Rule(
        "disk.format",
        "refuse",
        "It would erase a disk.",
        ("mkfs.ext4 /dev/sda1", "wipefs -a /dev/nvme0n1"),
        when=_disk_program,
    ),
    Rule(
        "disk.change",
        "ask",
        "It formats or repartitions a disk or an image of one.",
        ("mkfs.ext4 disk.img",),
        when=lambda command, _: _is_disk_program(command) and not command.has("-l", "--list"),
    ),
    Rule(
        "disk.partition",
        "ask",
        "It changes how a disk is divided.",
        ("fdisk /dev/sda", "parted /dev/sda mklabel gpt"),
        _PARTITIONS,
        _no_listing("-l", "--list"),
    ),
    Rule(
        "delete.unknown",
        "ask",
        "What it deletes cannot be told before it runs.",
        ('rm "$FILE"', "cat list.txt | xargs rm"),
        when=_unknown,
    ),
    Rule(
        "delete.outside",
        "ask",
        "It deletes files outside the workspace.",
        ("rm /var/log/syslog", "rm -r ../other-project"),
        when=_outside,
    ),
    Rule(
        "delete.steering",
        "ask",
        "It deletes a file that steers programs or holds secrets.",
        ("rm .git/HEAD", "rm .env"),
        when=_steering,
    ),
    Rule(
        "delete.tree",
        "ask",
        "It deletes a folder with all that is in it, and no tool makes that folder again.",
        ("rm -rf src", "find . -type f -delete"),
        when=_tree,
    ),
    Rule(
        "delete.pattern",
        "ask",
        "It deletes every file that fits a pattern.",
        ("rm *.py", "rm -f data/*"),
        when=_pattern,
    ),
    Rule(
        "delete.emptied",
        "ask",
        "It empties every file that fits a pattern.",
        (
            "truncate -s 0 *",
            "sed -i d *.py",
            "tee *.py < /dev/null",
            "for f in *.py; do :>$f; done",
            "find . -name '*.py' -exec cp /dev/null {} \\;",
        ),
        when=_emptied,
    ),
    Rule(
        "delete.record",
        "ask",
        "It deletes or empties the record of what was done.",
        ("rm logs/audit.log", ": > audit.jsonl", "truncate -s 0 audit.log"),
        when=_records,
    ),
    Rule(
        "delete.moved",
        "ask",
        "It moves files out of the workspace.",
        ("mv src /tmp/gone", "mv * /tmp/"),
        programs("mv"),
        _moved,
    ),
    Rule(
        "delete.packed",
        "ask",
        "It deletes files after packing or copying them.",
        ("tar --remove-files -cf x.tar src", "zip -rm x.zip src", "7z a -sdel x.7z src"),
        programs("tar zip 7z 7za rsync"),
        either(
            has("--remove-files", "-sdel", "--remove-source-files", "--move"),
            both(lambda command, _: command.program == "zip", has("-m")),
        ),
    ),
    Rule(
        "delete.shred",
        "ask",
        "It overwrites files so that they cannot be recovered.",
        ("shred -u notes.txt",),
        programs("shred srm wipe"),
    ),
)
