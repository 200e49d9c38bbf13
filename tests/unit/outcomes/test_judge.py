"""The judge: the order of evidence, and the traps of rules that match words."""

import json

from tests.tables import table

from journeyman.outcomes.judge import judge
from journeyman.records import Call, ResultFlags


def judged(result, tool="some_tool", arguments=None, **recorded):
    return judge(
        Call(
            id="c1",
            tool=tool,
            arguments=json.dumps(arguments or {}),
            result=result,
            recorded=ResultFlags(**recorded) if recorded else None,
        )
    )


def bash(command, result, **recorded):
    return judged(result, "bash", {"command": command}, **recorded)


def terminal(command, **result):
    return judged(json.dumps(result), "terminal", {"command": command})


class TestOrderOfEvidence:
    def test_precedence_of_evidence(self):
        # No result is unknown.
        assert judged(None).status == "unknown"

        # The recorder's flag takes precedence over the text.
        assert judged("Error: no such user", is_error=False).status == "ok"
        assert judged("all is well", is_error=True).status == "failed"

        # The words determine what a flag means.
        refused = judged("The user doesn't want to proceed with this tool use.", is_error=True)
        assert (refused.status, refused.rule) == ("refused", "recorded.is_error")
        sibling = judged(
            "<tool_use_error>Sibling tool call errored</tool_use_error>", is_error=True
        )
        assert (sibling.status, sibling.kind) == ("interrupted", "sibling")
        missing = judged("File does not exist.", is_error=True)
        assert (missing.status, missing.kind) == ("failed", "not_found")

        # A recorded exit code takes precedence over the output.
        assert bash("pytest", "1 failed", exit_code=0).status == "ok"
        assert bash("pytest", "all passed", exit_code=1).status == "failed"

        # A recorded interruption.
        assert bash("sleep 9", "", interrupted=True).status == "interrupted"

        # A good status without a result is ok.
        assert judged(None, status="completed").status == "ok"

        # Structured fields take precedence over text.
        assert judged('{"success": true, "output": "Error: none was found"}').status == "ok"

    def test_rule_and_evidence(self):
        # A verdict names its rule and its evidence.
        verdict = judged("Error: Payment method visa_1 not found")
        assert verdict.rule == "words.error"
        assert verdict.kind == "not_found"
        assert "visa_1" in verdict.evidence

        # Evidence is short and on one line.
        verdict = judged("Error: " + "long\n" * 5000)
        assert len(verdict.evidence) <= 240
        assert "\n" not in verdict.evidence


class TestWordsInData:
    """The word "error" inside content that a tool shows is not a failure of the tool."""

    @table(
        ("tool", "result"),
        [
            ("Read", "     1→def fail():\n     2→    raise ValueError('error: not found')\n"),
            ("Grep", "src/errors.py:10:class NotFoundError(Exception):\nsrc/a.py:3: failed"),
            ("Grep", "No matches found"),
            ("web_search", "Title: Traceback (most recent call last): how to read it"),
            ("read_file", '{"content": "1|raise Exception(\\"failed\\")", "total_lines": 1}'),
            ("get_order", '{"order_id": "#W1", "status": "cancelled", "note": "payment failed"}'),
            ("list_jobs", '[{"id": 1, "status": "failed"}, {"id": 2, "status": "error"}]'),
            ("train", '{"epoch": 3, "error": 0.031}'),
            ("find_on_page", "Page 1 of 3\nThe search string 'Tower' was not found on this page."),
            ("speed_test", "Speed test failed: No Connection."),
            ("Read", "1\n2\n3\n4\nshown as [Request interrupted by user for tool use]"),
            ("Task", "I looked at the error handling. Two tests failed before my change."),
        ],
    )
    def test_is_not_a_failure(self, tool, result):
        assert judged(result, tool).status == "ok"

    @table(
        ("command", "output"),
        [
            ("cat build.log", "make: *** [all] Error 2\nmore of the log\nand its end"),
            ("grep -rn 'error:' src", "src/a.c:3:1: error: unknown type\nsrc/b.c:9: error: x"),
            ("git log --oneline", "abc123 Fix: fatal: error on start\ndef456 FAILED tests"),
            ("ls", "errors.txt\nfailed.log\nnot found.md"),
            ("cat app.log", "Error: no such user\nstarted\nstopped\nstarted\nready"),
            ("cat notes.md", "a\nb\nc\nd\nThen it said: Please fix your mistakes."),
            ("golangci-lint run", "0 issues."),
            ("pytest -q", "12 passed, 2 xfailed in 0.31s"),
            ("npm ci", "npm warn deprecated x\nadded 12 packages, found 0 vulnerabilities"),
        ],
    )
    def test_a_command_that_prints_or_passes_is_ok(self, command, output):
        assert bash(command, output).status == "ok"


class TestTraps:
    def test_what_is_not_an_error(self):
        # A null error is not an error.
        assert judged('{"output": "x", "error": null}').status == "ok"
        assert judged('{"error": ""}').status == "ok"
        assert judged('{"error": "none", "data": 1}').status == "ok"

        # A search without hits is not an error if the harness says so.
        said = terminal(
            "grep -rn needle .",
            output="",
            exit_code=1,
            error=None,
            exit_code_meaning="No matches found (not an error)",
        )
        assert (said.status, said.kind) == ("ok", "no_match")
        find = {"output": "a", "exit_code": 1, "error": None}
        meaning = "Some directories were inaccessible (not an error)"
        assert terminal("find / -name x", **find, exit_code_meaning=meaning).status == "ok"
        assert terminal("find / -name x", **find).status == "failed"
        assert terminal("rg needle", output="", exit_code=1, error=None).status == "ok"

        # A partial batch is ok, of the kind partial.
        some = [{"url": "a", "content": "x", "error": None}, {"url": "b", "error": "404"}]
        verdict = judged(json.dumps({"results": some}), "web_extract")
        assert (verdict.status, verdict.kind) == ("ok", "partial")
        none = judged(json.dumps({"results": some[1:]}), "web_extract")
        assert none.status == "failed"

        # Empty results.
        assert judged("").status == "ok"
        assert judged("[]").status == "ok"
        assert judged('{"total_count": 0}', "search_files").status == "ok"
        assert judged('{"total_count": 0, "error": "bad regex"}', "search_files").is_error

    ANSWERS = (
        *(
            "diff a b",
            "cmp a b",
            "test -f x",
            "[ -d y ]",
            "which node",
            "! grep x y",
            "pgrep -f serve",
        ),
        *(
            "cat a | grep b",
            "cd src && rg -n needle .",
            "git -C a diff --exit-code",
            "git diff --quiet",
        ),
        *("test -f x && echo found", "grep -q x y && cat y | head -3", "[[ -f x ]] && ls"),
    )

    @table("command", ANSWERS)
    def test_programs_that_answer_by_exit_code(self, command):
        recorded = ({"exit_code": 1}, {"is_error": True})
        for flags, result in zip(recorded, ("", "Exit code 1"), strict=True):
            verdict = bash(command, result, **flags)
            assert (verdict.status, verdict.kind) == ("ok", "no_match"), flags

    @table(
        ("command", "code", "output"),
        [
            ("grep x missing.txt", 2, "grep: missing.txt: No such file or directory"),
            ("grep x a; make", 1, ""),
            ("grep -q x a && make", 1, ""),
            ("grep x a; cat b", 1, ""),
            ("python grep.py", 1, ""),
            ("echo 'a && grep b'", 1, ""),
            ("grep x a", 1, "bash: line 3: oops: command not found"),
            ("curl -s http://x | cat", 6, ""),
        ],
    )
    def test_failures_that_look_like_answers(self, command, code, output):
        verdict = bash(command, output, exit_code=code)
        assert verdict.status == "failed"
        assert verdict.is_error

    def test_what_is_still_an_error(self):
        # A curl exit code has a meaning but is still a failure.
        said = terminal(
            "curl http://x",
            output="",
            exit_code=6,
            error=None,
            exit_code_meaning="Could not resolve host",
        )
        assert said.is_error

        # A masked failure.
        verdict = terminal(
            "rm x || echo FAIL", output="rm: cannot remove 'x'\nFAIL", exit_code=0, error=None
        )
        assert (verdict.status, verdict.kind, verdict.evidence) == ("failed", "masked", "FAIL")
        unmasked = terminal("rm x || echo FAIL", output="", exit_code=0, error=None)
        assert unmasked.status == "ok"
        question = bash('test -f a || echo "NOT FOUND"', "NOT FOUND", exit_code=0)
        assert question.status == "ok"

        # Hermes refusals.
        blocked = terminal(
            "rm -rf /", output="", exit_code=-1, error="BLOCKED: no", status="blocked"
        )
        assert blocked.status == "refused"
        waiting = terminal("sudo x", output="", exit_code=-1, error="", status="pending_approval")
        assert (waiting.status, waiting.kind) == ("refused", "pending")
        again = judged('{"error": "read three times", "guardrail_refusal": true}', "read_file")
        assert again.status == "refused"

        # A specific word after a general one.
        verdict = judged("Error: foo is not a valid tool, try one of [bar].")
        assert (verdict.status, verdict.kind) == ("invalid", "unknown_tool")

        # An interrupted command also has an exit code.
        stopped = bash("make", "Exit code 137\n[Request interrupted by user for tool use]")
        assert (stopped.status, stopped.rule) == ("interrupted", "exits.claude_code")
        late = bash("make", "Exit code 143\nCommand timed out after 2m 0.0s\nbuilding")
        assert (late.status, late.kind) == ("failed", "timeout")

        # A traceback is summarised by its last line.
        trace = "Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'city'"
        assert "KeyError" in judged(trace, "run_query").evidence

    def test_wrapped_truncated_and_unfinished(self):
        # The outcome of a background start is unknown.
        for started in (
            terminal(
                "./server", output="Background process started", pid=7, exit_code=0, error=None
            ),
            judged("Command running in background with ID: bash_1", "Bash"),
            judged("Command running in background with ID: bash_1", "Bash", is_error=False),
            judged(
                "Chunk ID: 1\nWall time: 1 s\nProcess running with session ID 7", "exec_command"
            ),
        ):
            assert (started.status, started.kind) == ("unknown", "background")

        # A wrapped result.
        inside = '{"success": false, "error": "Element not found"}'
        wrapped = (
            '<untrusted_tool_result source="browser_click">\nThe following content was retrieved '
            f"from outside.\n\n{inside}\n</untrusted_tool_result>"
        )
        assert judged(wrapped, "browser_click").status == "failed"
        fine = wrapped.replace(inside, '{"success": true, "clicked": "error-button"}')
        assert judged(fine, "browser_click").status == "ok"

        # A truncated result.
        cut = '{"output": "' + "x" * 3000 + '", "exit_code": 2, "err'
        assert judged(cut, "terminal").status == "failed"
        assert judged('{"error": "No such host: db", "output": "aaaa', "query").status == "failed"
        preview = (
            "<persisted-output>\nOutput too large (37.2KB). Full output saved to: a.txt\n\n"
            "Preview (first 2KB):\nsrc/errors.py: class Error\n</persisted-output>"
        )
        assert judged(preview, "Grep").status == "ok"

        # Notes after an object.
        noted = '{"success": false, "error": "locked"}\n\n[hermes note: this is the 3rd call]'
        assert judged(noted, "memory").status == "failed"

        # Content blocks are judged by their text.
        blocks = [{"type": "text", "text": "Error: no such repository"}]
        assert judged(json.dumps(blocks), "mcp__github__get").status == "failed"
        assert judged(json.dumps({"content": blocks}), "mcp__github__get").status == "failed"
        assert judged(json.dumps([{"type": "text", "text": "fine"}])).status == "ok"

    @table(
        ("message", "status"),
        [
            ("[Operation Cancelled] Reason: User did not allow tool call", "refused"),
            ("Unknown tool: serach", "invalid"),
            ("2 validation errors for SearchArguments", "invalid"),
            ("aborted by user", "interrupted"),
            ("No such host", "failed"),
        ],
    )
    def test_the_message_in_an_error_field_determines_the_status(self, message, status):
        assert judged(json.dumps({"error": message})).status == status


class TestKindsAndEvidence:
    @table(
        ("message", "kind"),
        [
            ("ModuleNotFoundError: No module named 'numpy'", "not_found"),
            ("ModuleNotFoundError: No module named 'timeout'", "not_found"),
            ("error: build/wait-timeout-0.2.1: Permission denied", "permission"),
            ("getaddrinfo ENOTFOUND api.example.com", "network"),
            ("error: Could not apply 1a2b3c... Fix", "conflict"),
        ],
    )
    def test_kinds(self, message, kind):
        assert bash("./run", message, exit_code=1).kind == kind

    def test_where_the_evidence_is(self):
        # Standard error, printed before the other output.
        output = (
            'Traceback (most recent call last):\n  File "a.py", line 3\nKeyError: 3\n'
            + "Result: fine\n" * 80
        )
        verdict = bash("python a.py", output, exit_code=1)
        assert verdict.evidence == "exit code 1: KeyError: 3"

        # An uninformative last line.
        verdict = bash("go test", "--- FAIL: TestAdd (0.00s)\nFAIL", exit_code=1)
        assert (verdict.kind, verdict.evidence) == (
            "tests",
            "exit code 1: --- FAIL: TestAdd (0.00s)",
        )

        # The evidence of a message is its first line.
        verdict = judged("String to replace not found in file.\nString: \tif x {", "Edit")
        assert verdict.evidence == "String to replace not found in file."


class TestBadInput:
    @table(
        "result",
        [
            "[" * 100_000,
            '{"a":' * 50_000,
            "<tool_use_error>" * 20_000,
            "<output>" * 20_000,
            "a:" * 100_000,
            "Permission to use " + "x " * 100_000,
            "Error: " * 50_000,
            "\x00\ud800\u202e" * 1000,
            '"\\ud800"',
            "=" * 200_000,
            "\n" * 200_000,
            "A." * 100_000,
            "`" * 100_000,
        ],
        ids=range(13),
    )
    @table("tool", ["bash", "some_tool"])
    def test_hostile_results_are_judged(self, tool, result):
        assert judged(result, tool, {"command": "a" * 50_000}).status


CARD = {"id": "c1", "action": "deploy", "digest": "d1", "expires_at": "x", "next": "Do not do it."}
BLOCKED = "It needs a person's decision, and {}. It was not run; do not try it another way."


REFUSALS = (
    # Claude Code
    ("person", "The user doesn't want to proceed with this tool use. The tool use was rejected"),
    ("hook", "PreToolUse:Bash hook error: [guard.sh]: main is protected, use a branch"),
    ("rule", "Permission to use Bash with command curl x has been denied."),
    ("rule", "<tool_use_error>File is in a directory that is denied by your permission settings."
             "</tool_use_error>"),
    ("mode", "Permission to use Write has been denied because Claude Code is running in don't "
             "ask mode. IMPORTANT: You *may* attempt to accomplish this in another way"),
    ("mode", "Cannot write to /repo/new.txt while in plan mode."),
    ("nobody", "Claude requested permissions to write to /repo/new.txt, but you haven't granted "
               "it yet."),
    ("nobody", "This Bash command contains multiple operations. The following parts require "
               "approval: cd /tmp"),
    ("nobody", "rm in '/repo/a.txt' needs approval. The path is inside the working directories"),
    ("rule", "rm in '/repo/a.txt' was blocked. For security, Claude Code may only remove files"),
    # Codex
    ("hook", "Command blocked by PreToolUse hook: deploys are frozen. Command: make deploy"),
    ("hook", "Tool call blocked by PreToolUse hook: deploys are frozen"),
    ("person", "exec command rejected by user"),
    ("rule", "patch rejected: writing outside of the project; rejected by user approval settings"),
    ("mode", "approval policy is Never; reject command — you cannot ask for escalated "
             "permissions if the approval policy is Never"),
    ("rule", 'exec_command failed: CreateProcess { message: "Rejected(\\"`/bin/bash -lc rm` '
             'rejected: rm -f style commands are not permitted. Use a safer approach\\")" }'),
    # opencode
    ("person", "The user rejected permission to use this specific tool call."),
    ("rule", "The user has specified a rule which prevents you from using this specific tool "
             "call. Here are some of the relevant rules []"),
    # Hermes
    ("hook", '{"error": "the release branch is frozen"}'),
    ("person", '{"error": "BLOCKED: User denied this potentially dangerous action (matched x)."}'),
    ("person", '{"output": "", "exit_code": -1, "error": "BLOCKED: User denied this command. '
               'Do NOT retry.", "status": "blocked"}\n\n[Tool loop warning: count=4]'),
    ("nobody", '{"error": "BLOCKED: execute_code script timed out without user response."}'),
    ("rule", '{"output": "", "exit_code": -1, "error": "BLOCKED (hardline): recursive delete of '
             'root filesystem. This command is on the unconditional blocklist", '
             '"status": "blocked"}'),
    ("rule", '{"error": "Refusing to write to sensitive system path: /etc/shadow"}'),
    # Journeyman itself
    ("person", json.dumps({"error": f"BLOCKED: {BLOCKED.format('the user said no')}",
                           "rule": "shell.deletes", "status": "blocked"})),
    ("nobody", json.dumps({"error": f"BLOCKED: {BLOCKED.format('no one is here to allow it')}",
                           "rule": "shell.deletes", "status": "blocked"})),
    ("person", '{"approved": false, "error": "BLOCKED: A person said no. Do not do it, and do '
               'not ask again.", "status": "blocked"}'),
    ("nobody", '{"approved": false, "error": "BLOCKED: No one can confirm this now. Do not do '
               'it; report it as not done.", "status": "blocked"}'),
    ("rule", '{"error": "BLOCKED: It leaves the workspace. It was not run.", "status": "blocked"}'),
    ("person", json.dumps({**CARD, "status": "denied"})),
    ("nobody", json.dumps({**CARD, "status": "expired"})),
)  # fmt: skip


class TestRefusals:
    """A no is not an error, and the verdict says whose no it was."""

    @table(("by", "result"), REFUSALS)
    def test_who_refused(self, by, result):
        for recorded in ({}, {"is_error": True}):
            verdict = judged(result, "terminal", {"command": "echo hello"}, **recorded)
            assert (verdict.status, verdict.by) == ("refused", by), recorded
            assert not verdict.counts
            assert verdict.evidence

    KINDS = (("person", "declined"), ("nobody", "pending"), ("hook", "policy"), ("mode", "policy"))

    @table(("by", "kind"), KINDS)
    def test_the_recorder_says_who(self, by, kind):
        verdict = judged("needs a look", is_error=True, refused_by=by)
        assert (verdict.status, verdict.kind, verdict.by) == ("refused", kind, by)
        assert verdict.rule == "recorded.refused"

    PASSED_ON = (
        ("person", "a person said no: denied by the user. The reason: not on a Friday."),
        ("nobody", "no one decided in time, which is not consent."),
        ("nobody", "no confirmation could be requested, because Journeyman did not answer."),
        ("rule", "the rule secret.read forbids it."),
        ("hook", "something else happened."),
    )

    @table(("by", "reason"), PASSED_ON)
    def test_a_hook_passes_on_whose_decision_it_was(self, by, reason):
        said = f"Blocked by Journeyman: {reason}"
        newer = judged(f"PreToolUse:Bash hook error: {said}", is_error=True, refused_by="hook")
        older = judged(said, "Bash", is_error=True, status="not_run")
        by_tool = judged(said, is_error=True, refused_by="person")
        codex = judged(f"Command blocked by PreToolUse hook: {said} Command: git push", "shell")
        assert (newer.by, newer.rule) == (by, "recorded.refused")
        assert older.by == (by if by != "hook" else "rule")  # only "blocked" says who
        assert by_tool.by == (by if by != "hook" else "person")
        assert codex.by == by

    def test_a_call_that_did_not_run(self):
        frozen = judged("Error: deploys are frozen", "Bash", is_error=True, status="not_run")
        assert (frozen.status, frozen.by) == ("refused", "hook")
        wrong = judged("Invalid arguments: x", "bash", is_error=True, status="not_run")
        assert wrong.status == "invalid"

    NOT_REFUSED = (
        ("terminal", '{"error": "Error executing tool: connection lost"}'),
        ("terminal", '{"output": "", "exit_code": 1, "error": "the release branch is frozen"}'),
        ("read_file", '{"error": "the release branch is frozen"}'),
        ("some_tool", json.dumps({"status": "denied", "id": "claim-7", "total": 12})),
    )

    @table(("tool", "result"), NOT_REFUSED)
    def test_is_no_refusal(self, tool, result):
        assert judged(result, tool).status != "refused"


class TestUnfinishedAndEmptied:
    UNKNOWN = (
        "[Duplicate tool output — same content as a more recent call]",
        "[Old tool result content cleared]",
        "[Old tool output cleared to save context space]",
        "[read_file] read src/app.py from line 1 (12,034 chars)",
        "[search_files] content search for 'todo' in src -> 12 matches",
        "Async agent launched successfully.\nagentId: a1 (internal ID)",
        "Command running in background with ID: b1. Output is being written to: /tmp/b1.output",
    )

    @table("result", UNKNOWN)
    def test_is_unknown(self, result):
        for recorded in ({}, {"is_error": False}):
            assert judged(result, "read_file", **recorded).status == "unknown", recorded

    LAUNCHED = (
        '{"status": "dispatched", "mode": "background", "count": 1, "note": "Subagent is running"}',
        '{"output": "Background process started", "pid": 7, "exit_code": 0, "error": null}',
    )

    @table("result", LAUNCHED)
    def test_a_launch_is_unknown(self, result):
        verdict = judged(result, "delegate_task")
        assert (verdict.status, verdict.kind) == ("unknown", "background")

    def test_a_recorded_launch_is_unknown(self):
        verdict = judged("started", "Agent", status="async_launched")
        assert (verdict.status, verdict.kind) == ("unknown", "background")


GO_FAILED = "--- FAIL: TestAdd (0.00s)\n    add_test.go:3: 2\nFAIL\nFAIL\tcalc\t0.1s\nFAIL"
PYTEST_OK = "....  [100%]\n4 passed in 0.31s"
TRACEBACK = 'Traceback (most recent call last):\n  File "a.py", line 1\nKeyError: 3\nstarting'


class TestHiddenRuns:
    """A test, lint or build whose exit code the command hides is judged by its own words."""

    CASES = (
        ("failed", "go test ./... 2>&1 | tail -20", GO_FAILED),
        ("failed", "go test ./... 2>&1 | tail -2", "FAIL\tcalc\t0.1s\nFAIL"),
        ("failed", "pytest -q || true", "tests/a.py F.. [100%]\n1 failed, 2 passed in 0.31s"),
        ("failed", "make lint; echo done", "src/a.py:3:5: unused variable\ndone"),
        ("failed", "OUT=$(pytest 2>&1); echo \"$OUT\" | tail", "E   assert 1 == 2\nmore\nmore"),
        ("failed", "(cd a && mise run lint) | head -9", "[lint] a.go:1:2: unused (revive)\n}"),
        ("failed", "pytest | grep -c passed", "ERROR: file or directory not found: x\n0"),
        ("failed", "python test_a.py | head", TRACEBACK),
        ("failed", "ruff check . && pytest | tail -1", "All checks passed!\nKeyError: 'home'"),
        ("failed", "pytest > log; echo \"exit: $?\"", "exit: 1"),
        ("failed", "npm test | tail -3; echo ${PIPESTATUS[0]}", "ran all suites\n1"),
        ("failed", "cargo test 2>&1 | tail", "\x1b[31mtest result: FAILED\x1b[0m. 1 passed"),
        ("ok", "pytest -q 2>&1 | tail -5", PYTEST_OK),
        ("ok", "pytest -q 2>&1 | head -5", PYTEST_OK),
        ("ok", "pytest > log; echo \"exit: $?\"", "exit: 0"),
        ("ok", "make test 2>&1 | tail -5", "test_error_is_raised (a.T.test_error) ... ok\n\nOK"),
        ("ok", "go build ./... 2>&1 | head -20", ""),
        ("ok", "set -eo pipefail\npytest | tail -3\necho done", "done"),
        ("ok", "set -o pipefail; make | tail -3", "gcc -c a.c"),
        ("ok", "cat test.log | grep -c FAIL", "FAIL"),
        ("unknown", "make 2>&1 | tail -3", "gcc -c a.c\ngcc -c b.c"),
        ("unknown", "go build ./... 2>&1 | grep error", ""),
        ("unknown", "pytest -v 2>&1 | head -2", "a.py::test_a PASSED\na.py::test_b PASSED"),
    )  # fmt: skip

    @table(("status", "command", "output"), CASES)
    def test_a_hidden_run(self, status, command, output):
        assert bash(command, output).status == status
        assert bash(command, output, is_error=False).status == status
        if "exit:" not in command:
            assert terminal(command, output=output, exit_code=0, error=None).status == status

    def test_a_filter_that_finds_nothing_says_nothing_of_the_run(self):
        assert bash("pytest | grep FAILED", "", exit_code=1).status == "unknown"
        assert bash("pytest | grep FAILED", "Exit code 1", is_error=True).status == "unknown"


class TestMissingThings:
    def test_a_missing_skill_is_not_an_unknown_tool(self):
        for result in (
            "Skill 'x' not found.",
            "Unknown skill: x",
            '{"error": "Skill \'x\' not found"}',
        ):
            verdict = judged(result, "skill_view")
            assert (verdict.status, verdict.kind) == ("failed", "not_found"), result

    INVALID = (
        '{"output": "", "exit_code": -1, "error": "Invalid command: expected string, got None"}',
        "No command provided",
        "Error: command is required",
        "<tool_use_error>InputValidationError: Bash failed due to the following issue:\n"
        "The required parameter `command` is missing</tool_use_error>",
        "failed to parse function arguments: missing field `cmd` at line 1 column 2",
        "The bash tool was called with invalid arguments: SchemaError(Missing key",
    )

    @table("result", INVALID)
    def test_a_missing_command_is_invalid(self, result):
        verdict = judged(result, "terminal")
        assert (verdict.status, verdict.kind) == ("invalid", "invalid_arguments")

    BARE = (
        ("Permission denied", "permission"),
        ("Access denied.", "permission"),
        ("file not found", "not_found"),
        ("Search failed: timeout", "timeout"),
        ("error! error failed", "error"),
    )

    NO_FAILURE = (
        *("None failed.", "Zero failed", "Nothing failed", "Never failed", "Not failed"),
        *("Without error", "Zero error", "Parse error: none", "Last error: 0", "Never timed out"),
    )
