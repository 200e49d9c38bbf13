"""execute_code: a script in the workspace, and what is told of it."""


def test_what_is_printed_comes_back(use):
    content = use("execute_code", code="import sys\nprint(1)\nprint(2, file=sys.stderr)").content
    assert content.pop("duration_seconds") >= 0
    assert content == {"status": "success", "output": "1\n2\n", "exit_code": 0}


def test_a_script_may_be_long(use):
    code = f"x = {'1' * 300_000!r}\nprint(len(x))"
    assert use("execute_code", code=code).content["output"] == "300000\n"


def test_modules_of_the_workspace_can_be_imported(use, root):
    (root / "prices.py").write_text("def price(): return 42\n")
    content = use("execute_code", code="from prices import price\nprint(price())").content
    assert content["output"] == "42\n"
    assert [path.name for path in root.iterdir()] == ["prices.py"]


def test_a_traceback_shows_the_line_and_no_chance_path(use, workspace):
    content = use("execute_code", code="x = {}\nx['rate']").content
    assert content["error"] == "Script exited with code 1: KeyError: 'rate'"
    assert 'File "script.py", line 2' in content["output"]
    assert "x['rate']" in content["output"]
    assert str(workspace.private) not in content["output"]


def test_there_is_no_input(use):
    assert "EOFError" in use("execute_code", code="input()").content["output"]


def test_what_was_printed_before_the_limit_is_kept(use):
    code = "import time\nprint('begun')\ntime.sleep(60)"
    content = use("execute_code", code=code, timeout=5).content
    assert (content["status"], content["output"]) == ("timeout", "begun\n")
    assert content["error"] == "Script timed out after 5s"


def test_the_script_is_not_left_behind(use, workspace):
    use("execute_code", code="print(1)")
    assert {path.name for path in workspace.private.iterdir()} == {"home", "tmp"}
