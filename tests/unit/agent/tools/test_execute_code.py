"""execute_code: running a script in the workspace and reporting its result."""


def test_stdout_and_stderr_are_returned(use):
    content = use("execute_code", code="import sys\nprint(1)\nprint(2, file=sys.stderr)").content
    assert content.pop("duration_seconds") >= 0
    assert content == {"status": "success", "output": "1\n2\n", "exit_code": 0}


def test_workspace_modules_can_be_imported(use, root):
    (root / "prices.py").write_text("def price(): return 42\n")
    content = use("execute_code", code="from prices import price\nprint(price())").content
    assert content["output"] == "42\n"
    assert [path.name for path in root.iterdir()] == ["prices.py"]


def test_traceback_shows_the_line_without_the_temporary_path(use, workspace):
    content = use("execute_code", code="x = {}\nx['rate']").content
    assert content["error"] == "Script exited with code 1: KeyError: 'rate'"
    assert 'File "script.py", line 2' in content["output"]
    assert "x['rate']" in content["output"]
    assert str(workspace.private) not in content["output"]


def test_output_before_a_timeout_is_kept(use):
    code = "import time\nprint('begun')\ntime.sleep(60)"
    content = use("execute_code", code=code, timeout=5).content
    assert (content["status"], content["output"]) == ("timeout", "begun\n")
    assert content["error"] == "Script timed out after 5s"
