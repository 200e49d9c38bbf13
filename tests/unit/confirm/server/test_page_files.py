"""The static files of the page over HTTP."""

import re
from importlib.resources import files

from tests.confirm_server import ConfirmServer
from tests.tables import table

PAGE = files("journeyman.confirm").joinpath("page")
KINDS = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}


@table("path", ["/", "/open"])
def test_page_is_served_at_the_root_and_for_links(server: ConfirmServer, path: str) -> None:
    answer = server.get(path, page=True)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.content == PAGE.joinpath("index.html").read_bytes()


def test_every_file_is_served_unchanged(server: ConfirmServer) -> None:
    named = re.findall(r'(?:src|href)="/static/([^"]+)"', server.get("/", page=True).text)
    assert {*named} <= {file.name for file in PAGE.iterdir()}
    for file in PAGE.iterdir():
        kind = KINDS.get(file.name.rpartition(".")[2])
        if kind is not None:
            answer = server.get(f"/static/{file.name}", page=True)
            assert answer.content == file.read_bytes()
            assert answer.headers["content-type"].startswith(kind)


def test_head_request(server: ConfirmServer) -> None:
    answer = server.send("HEAD", "/", page=True)
    assert (answer.status_code, answer.content) == (200, b"")
    assert int(answer.headers["content-length"]) > 0


@table(
    "path",
    [
        "/static/",
        "/static/../service.py",
        "/static/%2e%2e/service.py",
        "/static/..%2f..%2fservice.py",
        "/static/nothing.js",
        "/index.html",
        "/static/index.html",
    ],
)
def test_other_files_are_not_served(server: ConfirmServer, path: str) -> None:
    assert server.get(path, page=True).status_code == 404
