"""Claude Code as a host."""

from journeyman.hosts.host import HostPage


class ClaudeCode(HostPage):
    """What we know of Claude Code."""

    name = "claude-code"
    title = "Claude Code"
    program = "claude"
    variable = "CLAUDE_CONFIG_DIR"
    folder = ".claude"
    file = "settings.json"
    nested = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID")
    install = "npm install -g @anthropic-ai/claude-code"
    log_in = "claude auth login"
