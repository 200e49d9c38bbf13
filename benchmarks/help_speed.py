"""How quickly other programs can start Journeyman: processor time of `journeyman --help`, and of
`journeyman mcp` until it has answered a client and ended, beside a bare `python -c pass`. They run
in turn; the best of ten runs each counts.
"""

import json
import os
import subprocess
import sys

_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "1"},
    },
}
_PROGRAMS = {
    "python -c pass": ["-c", "pass"],
    "journeyman --help": ["-m", "journeyman", "--help"],
    "journeyman mcp": ["-m", "journeyman", "mcp"],
}


def cpu_ms(arguments: list[str]) -> float:
    """Return the processor time of a program that gets a client's first request."""
    with subprocess.Popen(
        [sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin
        assert process.stdout
        if "mcp" in arguments:
            process.stdin.write(json.dumps(_HELLO).encode() + b"\n")
            process.stdin.flush()
            assert b"serverInfo" in process.stdout.readline()
        process.stdin.close()
        process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return 1_000 * (usage.ru_utime + usage.ru_stime)


def main() -> None:
    rounds = [{name: cpu_ms(words) for name, words in _PROGRAMS.items()} for _ in range(10)]
    best = {name: min(times[name] for times in rounds) for name in _PROGRAMS}
    bare = best["python -c pass"]
    for name, best_ms in best.items():
        print(f"{name:18s} {best_ms:4.0f} ms   bare Python x {best_ms / bare:.1f}")


if __name__ == "__main__":
    main()
