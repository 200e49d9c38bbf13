"""Names of very popular packages, and which names are so near to one that they are taken for it: by
a slip of the hand, or because somebody has published a trap under the wrong name.
"""

from functools import cache

from journeyman.gate.words import names

POPULAR: dict[str, frozenset[str]] = {
    "pypi": names(
        "requests numpy pandas scipy matplotlib django flask fastapi sqlalchemy pytest urllib3 "
        "boto3 botocore setuptools python-dateutil pyyaml cryptography pydantic pillow "
        "tensorflow torch transformers scikit-learn beautifulsoup4 selenium colorama certifi "
        "aiohttp httpx jinja2 click rich tqdm psycopg2 paramiko redis celery pyjwt openai "
        "anthropic langchain virtualenv poetry uvicorn gunicorn"
    ),
    "npm": names(
        "react react-dom preact lodash express axios chalk commander typescript webpack eslint "
        "prettier electron mongoose moment jquery next vite vitest esbuild rollup dotenv "
        "cross-env node-fetch socket.io discord.js puppeteer playwright tailwindcss angular "
        "request requests nodemon jsonwebtoken bcrypt uuid yargs debug underscore"
    ),
    "other": names(
        "serde serde_json tokio clap rand anyhow reqwest rails nokogiri bundler devise sidekiq "
        "rspec puma symfony laravel guzzle monolog phpunit"
    ),
}
"""Names as they are written, by registry."""

_SHORTEST = 5
"""Shorter names have honest neighbours."""


@cache
def find_popular(name: str, registry: str) -> str:
    """The popular package that a name is one slip away from; empty if there is none, or if the name
    itself is popular.
    """
    popular = POPULAR[registry]
    given = name.casefold().replace("_", "-") if registry == "pypi" else name.casefold()
    if len(given) < _SHORTEST or given in popular:
        return ""
    near = (one for one in sorted(popular) if len(one) >= _SHORTEST)
    return next((one for one in near if _is_one_slip(given, one)), "")


def _is_one_slip(one: str, other: str) -> bool:
    """Whether one letter was added, left out, changed, or swapped with the next."""
    if abs(len(one) - len(other)) > 1:
        return False
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    rest, wanted = one[start:], other[start:]
    return (
        rest[1:] == wanted[1:]
        or rest[1:] == wanted
        or rest == wanted[1:]
        or (rest[:2] == wanted[:2][::-1] and rest[2:] == wanted[2:])
    )
