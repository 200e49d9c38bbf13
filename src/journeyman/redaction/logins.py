"""Passwords in addresses, in the options of single programs and in SQL: rows, each with the group
that is the secret.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from journeyman.redaction.places import Found
from journeyman.redaction.values import looks_random, refers


class Login(NamedTuple):
    """A form in which a program or an address takes a password. The last group is the secret."""

    id: str
    gate: str
    pattern: str
    example: str
    reason: str
    family: str = "password"
    must_look_random: bool = False


LOGINS: tuple[Login, ...] = (
    Login(
        "address.password",
        "://",
        r"://[^\s/:@\"'<>?#]{0,100}:([^\s/\"'<>?#]{1,200})@(?=[\w\[.$%{-])",
        "postgresql://shop:hunter2@db.example/orders",
        "user and password before the host",
    ),
    Login(
        "address.user",
        "://",
        r"://([^\s/:@\"'<>?#]{16,200})@(?=[\w\[.-])",
        "https://" + "0a1b2c3d" * 4 + "@o1.ingest.example/42",
        "a key in the place of the user: Sentry's addresses, tokens of code hosts",
        "secret",
        must_look_random=True,
    ),
    Login(
        "curl.user",
        "-u",
        r"(?:curl|http|wget|xh)\b[^\n]{0,300}? (?:-u|--user)[ =]?[\"']?[^\s:\"']{0,80}:"
        r"([^\s\"']{1,200})",
        "curl -u bob:hunter2 https://host.example/",
        "curl's user and password",
    ),
    Login(
        "mysql.password",
        "-p",
        r"\b(?:mysql|mysqldump|mysqladmin|mariadb|mariadb-dump)\b[^\n|;]{0,300}? "
        r"-p[\"']?([^\s\"'-][^\s\"']{0,100})",
        "mysql -u root -phunter2 shop",
        "MySQL wants it glued to the option",
    ),
    Login(
        "program.password",
        "-p ",
        r"\b(?:sshpass|docker login|podman login|helm registry login)\b[^\n|;]{0,200}? "
        r"-p[ =]?[\"']?([^\s\"']{1,100})",
        "sshpass -p hunter2 ssh bob@host",
        "programs with a short option for it",
    ),
    Login("redis.password", "redis-cli", r"redis-cli\b[^\n|;]{0,99}? -a[ =]?[\"']?([^\s\"']{1,99})",
          "redis-cli -h cache -a hunter2 ping", "Redis' option"),
    Login("openssl.password", "pass:", r"-pass(?:in|out|word)? [\"']?pass:([^\s\"']{1,100})",
          "openssl rsa -passin pass:hunter2 -in key.pem", "OpenSSL's way"),
    Login("zip.password", "zip", r"\b(?:un)?zip\b[^\n|;]{0,100}? -P ?[\"']?([^\s\"']{1,100})",
          "unzip -P hunter2 archive.zip", "the password of an archive"),
    Login(
        "sudo.password",
        "sudo",
        r"echo (?:-[en] )?[\"']?([^\s\"'|]{1,100})[\"']? ?\| ?sudo (?:-\w{1,9} ){0,3}-\w{0,5}S",
        "echo hunter2 | sudo -S apt update",
        "a password piped to sudo",
    ),
    Login(
        "sql.password",
        " '",
        r"(?i:\b(?:password|identified by|identified with \w{1,40} by))\s{1,4}'([^'\n]{1,100})'",
        "CREATE USER bob WITH PASSWORD 'hunter2'",
        "SQL for a new user",
    ),
    Login("bearer", "earer ", r"\b[Bb]earer +([\w.~+/=-]{8,4000})", "-H Bearer " + "a1B2" * 6,
          "a token without its header", "secret", must_look_random=True),
    Login("basic", "asic ", r"\b[Bb]asic +([A-Za-z0-9+/]{8,400}={0,2})", "Basic Ym9iOmh1bnRlcjI=",
          "user and password in base64", "secret", must_look_random=True),
    Login("netrc", "machine ", r"machine \S{1,99}\s{1,9}login \S{1,99}\s{1,9}password (\S{1,99})",
          "machine host.example login bob password hunter2", "the file of curl and git"),
    Login("pgpass", ":5432:", r":5432:[^:\s]{1,60}:[^:\s]{1,60}:(\S{1,100})",
          "db.example:5432:shop:bob:hunter2", "PostgreSQL's password file"),
)  # fmt: skip


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def find_logins(text: str) -> Iterator[Found]:
    """Every password that one of the rows finds."""
    for row in LOGINS:
        if row.gate in text:
            for found in _compiled(row.pattern).finditer(text):
                secret = found[1]
                if not refers(secret) and (looks_random(secret) or not row.must_look_random):
                    yield Found(found.start(1), found.end(1), row.family)
