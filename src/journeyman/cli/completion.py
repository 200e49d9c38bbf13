"""`journeyman completion`: the script with which a shell completes commands and options."""

import os
from pathlib import Path
from typing import NamedTuple

import click
from click.shell_completion import get_completion_class

from journeyman.text.atomic_write import replace_file

_VARIABLE = "_JOURNEYMAN_COMPLETE"
_PROGRAM = "journeyman"


class _Shell(NamedTuple):
    """Where a shell finds the script, below the user's home, and what its start file needs."""

    folder_variable: str
    folder: str
    file: str
    also: str = ""


_SHELLS = {
    "bash": _Shell("XDG_DATA_HOME", ".local/share", "bash-completion/completions/journeyman"),
    "zsh": _Shell(
        "ZDOTDIR",
        "",
        ".zfunc/_journeyman",
        "Add this to your .zshrc, before compinit, if it is not there yet: fpath+={folder}",
    ),
    "fish": _Shell("XDG_CONFIG_HOME", ".config", "fish/completions/journeyman.fish"),
}
_BASH_NOTE = (
    "It works in new shells if the package bash-completion is installed; otherwise add this to "
    "your .bashrc: source {file}"
)


@click.command(
    epilog="""\b
Examples:
  journeyman completion bash --install
  journeyman completion zsh > _journeyman
  eval "$(journeyman completion bash)\""""
)
@click.argument("shell", type=click.Choice([*_SHELLS]))
@click.option("--install", is_flag=True, help="Write it to the folder that the shell reads.")
@click.pass_context
def completion(ctx: click.Context, *, shell: str, install: bool) -> None:
    """Print the script with which SHELL completes commands, options and their values.

    With --install, write it to the folder in which the shell looks for it.
    """
    completer = get_completion_class(shell)
    assert completer is not None
    script = completer(ctx.find_root().command, {}, _PROGRAM, _VARIABLE).source()
    if not install:
        click.echo(script)
        return
    place = _SHELLS[shell]
    home = Path(os.environ.get("HOME") or Path.home())
    folder = Path(os.environ.get(place.folder_variable) or home / place.folder)
    file = folder / place.file
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, f"{script}\n".encode(), mode=0o644)
    click.echo(f"Written to {file}. It takes effect in new shells.")
    if note := place.also or (_BASH_NOTE if shell == "bash" else ""):
        click.echo(note.format(file=file, folder=file.parent))
