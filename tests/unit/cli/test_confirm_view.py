"""Confirmations on a terminal."""

from journeyman.cli.confirm_view import changed_lines


def test_the_arguments_of_file_tools_as_diffs() -> None:
    edit = {"old_string": "a\nb", "new_string": "a\nc"}
    diff = ["@@ -1,2 +1,2 @@", " a", "-b", "+c"]
    patch = "*** Begin Patch\n-a\n*** End Patch"
    table = [
        ({**edit, "file_path": "x"}, diff),
        ({"edits": [edit, edit]}, [*diff, *diff]),
        ({"content": "x"}, ["@@ -0,0 +1 @@", "+x"]),
        ({"patchText": patch}, patch.split("\n")),
        ({"command": "ls"}, []),
        ("text", []),
    ]
    for arguments, lines in table:
        assert changed_lines(arguments) == lines, arguments
