"""Asks a process that has the program loaded for a run of it (see `tests.loaded`). As a program,
it is `journeyman` in a shell: it takes arguments and passes on its folder, its environment and its
three files. It imports little, because it is started for every line of a shell.
"""

import json
import os
import socket
import sys
from collections.abc import Iterable


def ask(address: str, files: Iterable[int], **asked: object) -> socket.socket:
    """Ask for a run that reads and writes these files. On the connection that is returned comes
    the run's process id; after a byte sent there, its exit code when it is over, negative for a
    signal. Closing the connection ends the run.
    """
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    socket.send_fds(connection, [b"."], list(files))
    connection.sendall(json.dumps(asked).encode() + b"\n")
    return connection


if __name__ == "__main__":
    with (
        ask(
            sys.argv[1],
            (0, 1, 2),
            arguments=sys.argv[2:],
            environ=dict(os.environ),
            folder=os.getcwd(),  # noqa: PTH109 - pathlib takes as long as all the rest
        ) as connection,
        connection.makefile() as answers,
    ):
        next(answers)
        connection.sendall(b".")
        code = int(next(answers))
    sys.exit(code if code >= 0 else 128 - code)
