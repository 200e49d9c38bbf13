"""The page's files, read once and sent from memory. Nothing on them is made per request, so nothing
in a request can end up in them.
"""

import hashlib
from collections.abc import Mapping
from importlib.resources import files

from litestar import HttpMethod, Request, route
from litestar.datastructures import State
from litestar.handlers import HTTPRouteHandler

from journeyman.confirm.server.answer import Answer

KINDS = {
    "html": b"text/html; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "svg": b"image/svg+xml",
    "png": b"image/png",
    "webmanifest": b"application/manifest+json",
}
LANDINGS = ("/", "/open")
"""Where the page itself is: at home, and where links lead."""


def read_files() -> dict[str, Answer]:
    """The files of the page by their paths."""
    found: dict[str, Answer] = {}
    for file in files("journeyman.confirm").joinpath("page").iterdir():
        kind = KINDS.get(file.name.rpartition(".")[2])
        if kind is None or not file.is_file():
            continue
        content = file.read_bytes()
        tag = b'"%s"' % hashlib.sha256(content).hexdigest()[:32].encode()
        headers = ((b"etag", tag), (b"cache-control", b"no-cache"))
        answer = Answer(content, kind=kind, headers=headers)
        paths = LANDINGS if file.name == "index.html" else (f"/static/{file.name}",)
        found |= dict.fromkeys(paths, answer)
    return found


def page_routes(found: Mapping[str, Answer]) -> HTTPRouteHandler:
    """The route that sends them."""

    @route(sorted(found), http_method=[HttpMethod.GET, HttpMethod.HEAD], include_in_schema=False)
    async def page(request: Request[None, None, State]) -> Answer:
        file = found[request.scope["path"]]
        tag = dict(file.sent_headers)[b"etag"]
        if request.headers.get("if-none-match") == tag.decode():
            unchanged = Answer(b"", status=304, headers=((b"etag", tag),))
            unchanged.sent_headers = [(b"etag", tag), (b"cache-control", b"no-cache")]
            return unchanged
        return file

    return page
