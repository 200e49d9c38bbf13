"""The tools other than terminal and execute_code."""

from tests.gate_cases import HOME, WORKSPACE
from tests.tables import table

from journeyman.gate.gate import Gate

GATE = Gate(WORKSPACE, home=HOME)
V4A = "*** Begin Patch\n*** Update File: {}\n@@\n-a\n+b\n*** End Patch"


@table("tool", ["write_file", "patch", "read_file", "search_files"])
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
def test_places(tool, path, answer):
    assert GATE.decide(tool, {"path": path}).answer == answer


@table(
    "path",
    [
        *(".git/hooks/pre-commit", ".git/config", "sub/.git/hooks/x", ".bashrc", ".profile"),
        *(".ssh/authorized_keys", ".env", ".env.local", ".github/workflows/ci.yml", ".envrc"),
        *(".pre-commit-config.yaml", ".gitattributes", ".gitmodules", ".devcontainer/x.json"),
        *(".vscode/launch.json", ".vscode/tasks.json", ".mise.toml", "AGENTS.md", "CLAUDE.md"),
        *(".cursor/rules/a.mdc", ".GIT/hooks/x", "docs/agents.md", "sub/.vscode/tasks.json"),
        *("crontab", ".npmrc", ".gitlab-ci.yml", "sitecustomize.py", ".husky/pre-push"),
    ],
)
def test_files_that_steer_programs_are_asked_about(path):
    for tool in ("write_file", "patch"):
        decision = GATE.decide(tool, {"path": path, "content": ""})
        assert (decision.answer, decision.rule) == ("ask", "file.steering")


@table(
    "path",
    [
        *(".env", "config/.env.production", "server.pem", "tls/private.key", "id_rsa"),
        *("credentials.json", ".netrc", ".aws/credentials", "secrets.yaml", ".ssh/id_ed25519"),
    ],
)
def test_secrets_are_asked_about(path):
    for tool in ("read_file", "search_files"):
        decision = GATE.decide(tool, {"path": path})
        assert (decision.answer, decision.rule) == ("ask", "file.secret")


@table("path", [".env.example", ".env.sample", "key.pub", "docs/env.md"])
def test_what_only_looks_like_a_secret(path):
    assert GATE.decide("read_file", {"path": path}).answer == "allow"


def test_links_are_followed(tmp_path):
    workspace, elsewhere = tmp_path / "workspace", tmp_path / "elsewhere"
    workspace.mkdir()
    elsewhere.mkdir()
    (workspace / "link").symlink_to(elsewhere)
    (workspace / "loop").symlink_to("loop")
    gate = Gate(workspace, home=tmp_path)
    assert gate.decide("write_file", {"path": "link/a.txt"}).answer == "refuse"
    assert gate.decide("write_file", {"path": "loop"}).answer == "allow"


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
def test_patches_of_several_files(text, answer):
    assert GATE.decide("patch", {"mode": "patch", "patch": text}).answer == answer


@table(
    ("tool", "arguments", "answer"),
    [
        ("memory", {"action": "remove"}, "allow"),
        ("skills_list", {}, "allow"),
        ("skill_view", {"name": "x"}, "allow"),
        ("skill_manage", {"action": "patch"}, "allow"),
        ("skill_manage", {"action": "delete"}, "ask"),
        ("session_search", {"query": "x"}, "allow"),
        ("warm_session", {"action": "show"}, "allow"),
        ("warm_session", {"action": "delete"}, "ask"),
        ("request_confirmation", {}, "allow"),
        ("launch_rocket", {}, "ask"),
        ("", {}, "ask"),
        ("terminal", {}, "ask"),
        ("terminal", {"command": ["ls"]}, "ask"),
        ("execute_code", {"code": None}, "ask"),
        ("write_file", {}, "ask"),
        ("read_file", {"path": 5}, "ask"),
        ("search_files", {"pattern": "x"}, "allow"),
    ],
)
def test_the_other_tools(tool, arguments, answer):
    assert GATE.decide(tool, arguments).answer == answer


def test_a_path_with_invisible_characters_is_asked_about():
    assert GATE.decide("write_file", {"path": "src/a\u200b.py"}).rule == "invisible"
    assert GATE.decide("read_file", {"path": "src/\ud800"}).rule == "invisible"


def test_a_decision_says_why():
    decision = GATE.decide("terminal", {"command": "git push"})
    assert decision.rule == "git.push"
    assert decision.reason == "It publishes commits to where others see them."
