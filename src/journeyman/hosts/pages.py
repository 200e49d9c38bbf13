"""The hosts, each by its page."""

from collections.abc import Mapping

from journeyman.hosts.claude_code import ClaudeCode
from journeyman.hosts.codex import Codex
from journeyman.hosts.hermes import Hermes
from journeyman.hosts.host import HostPage
from journeyman.hosts.opencode import OpenCode
from journeyman.records.host import Host

PAGES: Mapping[Host, HostPage] = {
    page.name: page for page in (Hermes(), ClaudeCode(), Codex(), OpenCode())
}
