"""Decisions on tools that do not run commands, by the risk of the tool."""

from tests.gate_cases import HOME, WORKSPACE
from tests.tables import table

from journeyman.gate.gate import Gate

GATE = Gate(WORKSPACE, home=HOME)
V4A = "*** Begin Patch\n*** Update File: {}\n@@\n-a\n+b\n*** End Patch"


@table("risk", ["write", "read", "search"])
@table(
    ("path", "answer"),
    [
        ("src/app.py", "allow"),
        ("./src/../docs/a.md", "allow"),
        ("/work/project/src/app.py", "allow"),
        ("pyproject.toml", "allow"),
        ("package.json", "allow"),
        ("Makefile", "allow"),
        ("../other/a.py", "refuse"),
        ("src/../../other/a.py", "refuse"),
        ("/work/project-2/a.py", "refuse"),
        ("/etc/passwd", "refuse"),
        ("~/notes.txt", "refuse"),
        ("/", "refuse"),
    ],
)
def test_paths_must_be_inside_the_workspace(risk, path, answer):
    assert GATE.decide(risk, {"path": path}).answer == answer


@table(
    "path",
    [
        *(".git/hooks/pre-commit", ".git/config", "sub/.git/hooks/x", ".bashrc", ".profile"),
        *(".ssh/authorized_keys", ".env", ".env.local", ".github/workflows/ci.yml", ".envrc"),
        *(".pre-commit-config.yaml", ".gitattributes", ".gitmodules", ".devcontainer/x.json"),
        *(
            ".vscode/launch.json",
            ".vscode/tasks.json",
            ".mise.toml",
        ),
        *(".cursor/rules/a.mdc", ".GIT/hooks/x", "sub/.vscode/tasks.json"),
        *("crontab", ".npmrc", ".gitlab-ci.yml", "sitecustomize.py", ".husky/pre-push"),
    ],
)
def test_writing_files_that_steer_programs_needs_approval(path):
    decision = GATE.decide("write", {"path": path, "content": ""})
    assert (decision.answer, decision.rule) == ("ask", "file.steering")


@table(
    "path",
    [
        *(".env", "config/.env.production", "server.pem", "tls/private.key", "id_rsa"),
        *("credentials.json", ".netrc", ".aws/credentials", "secrets.yaml", ".ssh/id_ed25519"),
    ],
)
def test_reading_secrets_needs_approval(path):
    for risk in ("read", "search"):
        decision = GATE.decide(risk, {"path": path})
        assert (decision.answer, decision.rule) == ("ask", "file.secret")


@table("path", [".env.example", ".env.sample", "key.pub", "docs/env.md"])
def test_files_that_only_look_like_secrets_are_allowed(path):
    assert GATE.decide("read", {"path": path}).answer == "allow"


def test_symbolic_links_are_followed(tmp_path):
    workspace, elsewhere = tmp_path / "workspace", tmp_path / "elsewhere"
    workspace.mkdir()
    elsewhere.mkdir()
    (workspace / "link").symlink_to(elsewhere)
    (workspace / "loop").symlink_to("loop")
    gate = Gate(workspace, home=tmp_path)
    assert gate.decide("write", {"path": "link/a.txt"}).answer == "refuse"
    assert gate.decide("write", {"path": "loop"}).answer == "allow"


@table(
    ("text", "answer"),
    [
        (V4A.format("src/a.py"), "allow"),
        (V4A.format("../a.py"), "refuse"),
        (V4A.format("a.py") + "\n*** Add File: /etc/x\n", "refuse"),
        (V4A.format("a.py") + "\n*** Delete File: .git/config\n", "ask"),
        ("--- a/src/a.py\n+++ b/src/a.py\n", "allow"),
        ("--- /dev/null\n+++ b/../../x\n", "refuse"),
        ("nothing", "ask"),
    ],
)
def test_patches_are_decided_by_every_path(text, answer):
    assert GATE.decide("write", {"mode": "patch", "patch": text}).answer == answer


@table(
    ("risk", "arguments", "answer"),
    [
        ("knowledge", {"action": "remove"}, "allow"),
        ("recall", {}, "allow"),
        ("recall", {"name": "x"}, "allow"),
        ("knowledge", {"action": "patch"}, "allow"),
        ("knowledge", {"action": "delete"}, "ask"),
        ("recall", {"query": "x"}, "allow"),
        ("templates", {"action": "show"}, "allow"),
        ("templates", {"action": "delete"}, "ask"),
        ("report", {}, "allow"),
        ("unknown", {}, "ask"),
        ("unknown", {"path": "a.py"}, "ask"),
        ("command", {}, "ask"),
        ("command", {"command": ["ls"]}, "ask"),
        ("code", {"code": None}, "ask"),
        ("write", {}, "ask"),
        ("read", {}, "ask"),
        ("read", {"path": 5}, "ask"),
        ("search", {"pattern": "x"}, "allow"),
    ],
)
def test_other_tools(risk, arguments, answer):
    assert GATE.decide(risk, arguments).answer == answer


def test_path_with_invisible_characters_needs_approval():
    assert GATE.decide("write", {"path": "src/a\u200b.py"}).rule == "invisible"
    assert GATE.decide("read", {"path": "src/\ud800"}).rule == "invisible"


def test_decision_states_its_reason():
    decision = GATE.decide("command", {"command": "git push"})
    assert decision.rule == "git.push"
    assert decision.reason == "It publishes commits where others can see them."
