"""What kind of failure a message speaks of. Only the message of something already known to have
failed is asked; these words decide nothing by themselves.
"""

from typing import NamedTuple

from journeyman.records import Kind


class KindRow(NamedTuple):
    """Phrases, in lower case, and the kind that a message with one of them is of. The first row
    that fits wins.
    """

    kind: Kind
    phrases: tuple[str, ...]
    example: str
    reason: str


KINDS: tuple[KindRow, ...] = (
    KindRow(
        "conflict",
        (
            "conflict",
            "already exist",
            "already used",
            "already in use",
            "already been",
            "has been modified",
            "not been read yet",
            "string to replace",
            "old_string",
            "old_str",
            "no changes to make",
            "matches of the string",
            "eexist",
            "duplicate",
            "would be overwritten",
            "failed to find expected lines",
            "non-fast-forward",
        ),
        "String to replace not found in file.",
        "the state is not the one that the call assumed; asked first, since such messages also "
        "say that something was not found",
    ),
    KindRow(
        "timeout",
        ("timed out", "timeout", "time out", "time limit", "deadline exceeded", "etimedout"),
        "Command timed out after 120 seconds",
        "programs and harnesses agree on these words",
    ),
    KindRow(
        "unknown_tool",
        (
            "unknown tool",
            "no such tool",
            "unknown function",
            "unknown skill",
            "unsupported call",
            "not a valid tool",
            "is not a tool",
            "agent type '",
            "tool not found",
            "available tools",
        ),
        "Unknown skill: commit",
        "a name that the harness does not know",
    ),
    KindRow(
        "invalid_arguments",
        (
            "validation error",
            "validationerror",
            "invalid argument",
            "invalid_argument",
            "invalid parameter",
            "invalid params",
            "invalid input",
            "invalid option",
            "invalid request",
            "invalid value",
            "missing required",
            "required argument",
            "required parameter",
            "required property",
            "required positional",
            "unexpected keyword",
            "unexpected argument",
            "field required",
            "unknown flag",
            "unknown option",
            "illegal option",
            "unrecognized argument",
            "unrecognized option",
            "bad request",
            "unprocessable",
            "usage: ",
        ),
        "1 validation error for Payment: payment_id Field required",
        "what was asked for has the wrong form",
    ),
    KindRow(
        "permission",
        (
            "permission denied",
            "permissionerror",
            "access denied",
            "access is denied",
            "not permitted",
            "eacces",
            "eperm",
            "forbidden",
            "unauthorized",
            "unauthorised",
            "read-only file system",
            "status code 401",
            "status code 403",
            "403 client error",
            "outside allowed",
            "outside the allowed",
            "outside the workspace",
            "sandbox denied",
        ),
        "bash: ./run: Permission denied",
        "somebody has to allow it first",
    ),
    KindRow(
        "network",
        (
            "connection refused",
            "connection reset",
            "connection error",
            "connectionerror",
            "connection aborted",
            "connection timed",
            "econn",
            "network error",
            "network is unreachable",
            "name resolution",
            "name or service not known",
            "could not resolve host",
            "getaddrinfo",
            "enotfound",
            "certificate verify failed",
            "max retries exceeded",
            "remote end closed",
            "socket hang up",
            "bad gateway",
            "service unavailable",
            "internal server error",
            "fetch failed",
        ),
        "connect ECONNREFUSED 127.0.0.1:5432",
        "the other side could not be reached",
    ),
    KindRow(
        "syntax",
        (
            "syntaxerror",
            "syntax error",
            "invalid syntax",
            "parse error",
            "unexpected token",
            "unexpected end of",
            "unexpected eof",
            "indentationerror",
            "jsondecodeerror",
            "undefined:",
            "error ts",
            "error[e",
            "cannot use ",
            "undeclared",
            "[build failed]",
            ": error:",
        ),
        "SyntaxError: invalid syntax",
        "the code does not compile",
    ),
    KindRow(
        "not_found",
        (
            "not found",
            "notfound",
            "no such file",
            "no such table",
            "does not exist",
            "doesn't exist",
            "enoent",
            "cannot find",
            "could not find",
            "can't find",
            "no module named",
            "importerror",
            "keyerror",
            "cannot open",
            "can't open",
            "can't read",
            "cannot access",
            "no matches found",
            "unknown revision",
            "no results found",
            "not a git repository",
            "status code 404",
        ),
        "cat: notes.txt: No such file or directory",
        "the thing is not there",
    ),
    KindRow(
        "limit",
        (
            "exceeds",
            "exceeded",
            "too many",
            "too large",
            "too long",
            "rate limit",
            "quota",
            "out of memory",
            "memoryerror",
            "no space left",
            "enospc",
            "not enough",
            "killed",
        ),
        "File content (28766 tokens) exceeds maximum allowed tokens (25000)",
        "there is more than is allowed, or less than is needed",
    ),
    KindRow(
        "tests",
        (
            "--- fail",
            "failed (",
            "failures=",
            "assertionerror",
            "assertion failed",
            "tests failed",
            "test failed",
            " failed, ",
            " failed in ",
            " passed",
            "fail\t",
        ),
        "FAILED (failures=2)",
        "checks ran and said no",
    ),
    KindRow(
        "exception",
        (
            "traceback (most recent",
            "exception",
            "panic:",
            "unhandled",
            "typeerror",
            "valueerror",
            "nameerror",
            "attributeerror",
            "runtimeerror",
            "indexerror",
            "divisionerror",
            "operationalerror",
            "integrityerror",
            "recursionerror",
            "unboundlocalerror",
            "referenceerror",
            "rangeerror",
            "oserror",
            "nullpointer",
        ),
        "ZeroDivisionError: division by zero",
        "the program raised something",
    ),
)

_PHRASES = tuple((phrase, row.kind) for row in KINDS for phrase in row.phrases)
_MOST = 600


def kind_of(message: str, otherwise: Kind = "error") -> Kind:
    """The kind that the words of a failure tell."""
    if len(message) > 2 * _MOST:
        # What went wrong is said first or last, seldom in the middle.
        message = message[:_MOST] + "\n" + message[-_MOST:]
    words = message.lower()
    for phrase, kind in _PHRASES:
        if phrase in words:
            return kind
    return otherwise
