"""What the texts that hosts get would have contained of the commands that later sessions needed.

    python benchmarks/host_foresight.py LOGS…

LOGS are folders or files of Claude Code, Codex or Hermes. The earlier 60 % of the sessions teach.
Each later session then runs through the same code as in a host: the text at its start, the texts
with its requests, and, for hosts that take messages, one opening for its first request. Counted are
the commands that worked in a request and that not every agent knows anyway (`ls` and `git status`
do not count), and whether the session had been shown them by then. The alternative in the same run
is the list of the 20 most used such commands. The ratio of the texts to the list is printed last.
"""

import argparse
import re
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

from journeyman import Journeyman
from journeyman.hosts.opening_parts import stored_openings
from journeyman.hosts.openings import OpeningRequest, SessionOpenings
from journeyman.models.embedder import Embedder
from journeyman.store.episodes import EpisodeRow, Episodes
from journeyman.store.store import Store
from journeyman.templates.commands import commands_of, is_everyday

_CODE = re.compile(r"`([^`\n]+)`|^- \"[^\n]*?\": ([^\n→]+)", re.M)
_LISTED = 20
_EARLIER = 0.6
_LATE_S = 60.0


def commands_in(text: str) -> set[str]:
    """Return the commands that a text shows, in code or as the calls of an earlier request."""
    lines = (part for match in _CODE.findall(text) for whole in match for part in whole.split("; "))
    return {command.name for line in lines for command in commands_of(line)}


def specific(episode: EpisodeRow) -> set[str]:
    """Return the commands that worked in an episode and that not every agent knows."""
    return {use.name for use in episode.facts.commands if use.worked and not is_everyday(use.name)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("logs", nargs="+", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Journeyman(home=folder) as journeyman:
        journeyman.import_logs(asked.logs)
        journeyman.learn()
        with Store(journeyman.settings.database) as store:
            measure(journeyman, store.episodes)


def measure(journeyman: Journeyman, stored: Episodes) -> None:
    episodes = stored.rows()
    began: dict[str, float] = {}
    for episode in episodes:
        began[episode.session] = min(began.get(episode.session, 1e12), episode.at or 1e12)
    ordered = sorted(began, key=lambda session: (began[session], session))
    teaching = set(ordered[: int(len(ordered) * _EARLIER)])
    uses = Counter[str]()
    later: defaultdict[str, list[EpisodeRow]] = defaultdict(list)
    for episode in episodes:
        if episode.session in teaching:
            uses.update({use.name: use.worked for use in episode.facts.commands if use.worked})
        else:
            later[episode.session].append(episode)
    recorded_episodes = stored.by_row([one.row for rows in later.values() for one in rows])
    texts = {row: episode.request for row, episode in recorded_episodes.items()}
    ranked = sorted(uses, key=lambda name: (-uses[name], name))
    listed = set([name for name in ranked if not is_everyday(name)][:_LISTED])
    for session in later:
        journeyman.forget(session=session)
    openings, count = (
        SessionOpenings(journeyman, journeyman.host_sessions),
        Embedder().count_tokens,
    )
    found, tokens = Counter[str](), Counter[str]()
    for session, rows in later.items():
        ends = time.monotonic() + _LATE_S
        cwd = rows[0].project
        text = openings.project_text("claude-code", session, cwd, ends)
        tokens["texts"] += count(text)
        shown = commands_in(text)
        first = next((texts[one.row] for one in rows if texts.get(one.row, "").strip()), "")
        request = OpeningRequest(session=session, task=first, cwd=cwd)
        openings.opening("hermes", request, ends)
        record = openings.find("hermes", session)
        given = stored_openings(record) if record else ()
        whole = "\n".join(one.messages("text") for one in given)
        tokens["one opening"] += count(whole)
        in_opening = commands_in(whole)
        for episode in rows:
            prompt = texts.get(episode.row, "")
            if prompt.strip():
                part = openings.task_text("claude-code", session, prompt, cwd, ends)
                tokens["texts"] += count(part)
                shown |= commands_in(part)
            needed = specific(episode)
            found["needed"] += len(needed)
            found["texts"] += len(needed & shown)
            found["one opening"] += len(needed & in_opening)
            found["list"] += len(needed & listed)
    total = found["needed"] or 1
    print(f"{len(teaching)} sessions teach; {len(later)} later ones needed {total} commands")
    print(f"{'':32s}{'contained':>10s}{'tokens a session':>18s}")
    names = {
        "texts": "texts at the start and with requests",
        "one opening": "one opening for the first request",
        "list": f"list of the {_LISTED} most used",
    }
    tokens["list"] = len(later) * count("\n".join(sorted(listed)))
    for name, title in names.items():
        share, cost = found[name] / total, tokens[name] / max(len(later), 1)
        print(f"{title:38s}{share:6.2f}{cost:16.0f}")
    print(f"ratio to the list: {found['texts'] / max(found['list'], 1):.2f}")


if __name__ == "__main__":
    main()
