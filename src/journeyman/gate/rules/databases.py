"""Rules on databases: what drops, empties or changes whole tables, or lets the
database run a program. Looking, inserting and changing chosen rows is everyday work.
"""

import re
from itertools import pairwise

from journeyman.gate.command import Command, is_known
from journeyman.gate.places import Places
from journeyman.gate.rule import Rule, both, either, has, programs

_CLIENTS = programs(
    "psql mysql mariadb sqlite3 sqlite sqlcmd duckdb clickhouse-client cqlsh pgcli mycli usql "
    "cockroach snowsql bq sqlplus"
)
_SQL_VALUES = (
    *("-h", "-p", "-U", "-u", "-d", "-D", "--host", "--port", "--user", "--username"),
    *("--dbname", "--database", "-S", "-f", "-o", "-v", "-cmd"),
)
_QUOTED = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
_LOSES = re.compile(
    r"\s*(?:drop|truncate)\b|.*\balter\s+table\b.*\bdrop\b|\s*(?:grant|revoke)\b|"
    r".*\bcopy\b.*\b(?:program|from\s+program)\b|\s*attach\b|\s*(?:vacuum\s+into|flush)\b|"
    r"\s*(?:with\b.*)?\b(?:delete\s+from|update)\b(?!.*\bwhere\b)",
    re.IGNORECASE | re.DOTALL,
)
_ALWAYS = re.compile(r"\bwhere\s+(?:1\s*=\s*1|true|1|'?(\w+)'?\s*=\s*'?\1'?)\s*$", re.IGNORECASE)
_SHELL_OUT = re.compile(
    r"^\s*(?:\\!|\\copy\b.*\bprogram\b|\.shell|\.system|\.load|system\b|!|"
    r"(?:\\o|\.(?:output|once|save|backup|clone|log|excel))\s+['\"]?[/~|])",
    re.MULTILINE,
)


def loses_data(sql: str) -> bool:
    """Whether a text of SQL drops, empties or changes whole tables, or starts a program."""
    if _SHELL_OUT.search(sql):
        return True
    return any(
        _LOSES.match(statement) or _ALWAYS.search(statement.strip())
        for statement in _QUOTED.sub("''", sql).split(";")
        if statement.strip()
    )


def _sql(command: Command, _: Places) -> bool:
    texts = command.values("-c", "-e", "--command", "--execute", "-q", "--query", "-Q", "-cmd")
    texts += [word.text for word in command.operands(*_SQL_VALUES)]
    if command.stdin is not None and command.stdin.text is not None:
        texts.append(command.stdin.text)
    return any(loses_data(text) for text in texts)


def _unknown_sql(command: Command, _: Places) -> bool:
    texts = command.values("-c", "-e", "--command", "--execute")
    return any(not is_known(text) for text in texts)


_TASKS = re.compile(
    r"(?:db|database|migrate|ecto|schema|doctrine):(?:\w+:)*(?:drop|reset|purge|wipe|fresh|refresh|"
    r"truncate_all|undo:all|rollback)|ecto\.(?:drop|reset)|reset_db|sqlflush|flush|dropdb"
)
_TASK_PAIRS = frozenset(
    {("migrate", "reset"), ("db", "push"), ("downgrade", "base"), ("db", "downgrade")}
    | {("database", "drop"), ("database", "reset"), ("db", "reset"), ("schema", "drop")}
)


def _framework(command: Command, _: Places) -> bool:
    said = command.subcommand("-m", "-c", "-e")
    if command.program == "python" and not any(text.endswith("manage.py") for text in said):
        return False
    pairs = pairwise(said)
    return any(_TASKS.fullmatch(text) for text in said) or any(one in _TASK_PAIRS for one in pairs)


def _eval(command: Command, _: Places) -> bool:
    text = " ".join([*command.arguments, (command.stdin and command.stdin.text) or ""]).lower()
    if command.program in ("mongo", "mongosh"):
        text = text.replace("--eval", "")  # there an option that runs any statement
    return any(
        word in text
        for word in (
            "drop",
            "flushall",
            "flushdb",
            "deletemany",
            "remove(",
            "shutdown",
            "del ",
            "config set",
            "script",
            "debug",
            "slaveof",
            "replicaof",
            "eval",
            "unlink",
        )
    )


DATABASES: tuple[Rule, ...] = (
    Rule(
        "database.loses",
        "ask",
        "It drops, empties or changes whole tables, or lets the database run a program.",
        (
            'psql -c "DROP TABLE users"',
            "sqlite3 app.db 'delete from users'",
            'mysql -e "truncate t"',
            'psql -c "update users set admin = true"',
        ),
        _CLIENTS,
        _sql,
    ),
    Rule(
        "database.unknown",
        "ask",
        "What the database is told cannot be told before it runs.",
        ('psql -c "$SQL"',),
        _CLIENTS,
        _unknown_sql,
    ),
    Rule(
        "database.framework",
        "ask",
        "It drops or empties the database that the project's framework knows.",
        (
            "rails db:drop",
            "python manage.py flush --noinput",
            "php artisan migrate:fresh",
            "npx prisma migrate reset",
        ),
        programs(
            "rails rake python php prisma knex sequelize typeorm alembic flask diesel sqlx mix npm "
            "yarn pnpm drizzle-kit supabase"
        ),
        _framework,
    ),
    Rule(
        "database.remove",
        "ask",
        "It removes a database or empties it.",
        ("dropdb app", "redis-cli flushall", "mongosh --eval 'db.dropDatabase()'"),
        programs(
            "dropdb dropuser mysqladmin redis-cli mongo mongosh pg_restore rabbitmqctl etcdctl"
        ),
        either(
            lambda command, _: command.program in ("dropdb", "dropuser"),
            both(lambda command, _: command.program == "pg_restore", has("-c", "--clean")),
            both(
                lambda command, _: command.program not in ("pg_restore",),
                _eval,
            ),
        ),
    ),
)
