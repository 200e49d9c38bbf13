"""Which commands start a program that reads commands from a terminal."""

from tests.tables import table

from journeyman.gate.interactive import opens_terminal


@table(
    "command",
    [
        "bash",
        "bash -l",
        "bash -s",
        "bash 2>&1",
        "bash -O extglob",
        "bash --rcfile x",
        "bash -",
        "env bash",
        "exec bash",
        "FOO=1 bash",
        "cd x && bash",
        "ls; (bash)",
        "nohup bash",
        "setsid bash",
        "timeout 600 bash",
        "bash -c bash",
        "busybox sh",
        "/usr/bin/env python3",
        "/usr/bin/python3.12 -i",
        "python3 -i x.py",
        "python3 -qi x.py",
        "python3 -X dev",
        "python3 -m pdb x.py",
        "python3 -m code",
        "uv run python",
        "node",
        "node -r x",
        "script",
        "script -q /dev/null",
        "tmux new -d",
        "screen -dm bash",
        "ipython",
    ],
)
def test_terminals(command):
    assert opens_terminal(command)


@table(
    "command",
    [
        "",
        "ls",
        "bash run.sh",
        "bash -x run.sh",
        "bash -lc 'make test'",
        "bash --version",
        "bash < run.sh",
        "bash <<'EOF'\nls\nEOF",
        "echo x | bash -s",
        "python3 -m pytest",
        "python3 -m pytest -q -s",
        "python3 -V",
        "python3 -c 'print(1)'",
        "python3 -W ignore x.py",
        "python3 x.py -i",
        "python3 - <<'EOF'\nprint(1)\nEOF",
        "timeout 5 python3 - <<'EOF'\nprint(1)\nEOF",
        "cat x.py | python3 -",
        "perl -i -pe s/a/b/ x",
        "perl -ne print x",
        "node -e 1",
        "node --test",
        "php -r 'echo 1;'",
        "bun test",
        "deno run x.ts",
        "env A=1 python3 x.py",
        "uv run pytest",
        "echo bash",
        "which python3 node",
    ],
)
def test_everything_else(command):
    assert not opens_terminal(command)
