"""How patterns look in the terminal: what was wanted, what was called, what came back."""

from rich.console import Console
from rich.text import Text

from journeyman.cli import shown
from journeyman.records import Pattern, Step

_INDENT = "   "


def show_pattern(console: Console, pattern: Pattern, *, number: int, full: bool) -> None:
    """A pattern with its steps, each on two lines unless all is asked for."""
    head = Text(f"{number}. ", style="dim").append(pattern.kind, style="bold cyan")
    head.append(f"  {tools(pattern)}", style="bold")
    head.append(f"  {seen(pattern)}, {pattern.tokens:,} tokens", style="dim")
    console.print(head)
    _show_rest(console, pattern, full=full)


def tools(pattern: Pattern) -> str:
    return shown.plain(", ".join(pattern.tools))


def seen(pattern: Pattern) -> str:
    """How often it was seen, and in how many sessions."""
    times = "once" if pattern.times == 1 else f"{pattern.times:,} times"
    return f"seen {times} in {shown.many(pattern.session_count, 'session')}"


def _show_rest(console: Console, pattern: Pattern, *, full: bool) -> None:
    if pattern.quarantined:
        said = f"in quarantine ({shown.plain(pattern.quarantined)}): it is in no opening"
        console.print(Text(f"{_INDENT}{said}", style="red"))
    _show_intent(console, pattern, full=full)
    _show_steps(console, pattern, full=full)


def _show_intent(console: Console, pattern: Pattern, *, full: bool) -> None:
    _show_line(console, Text(_INDENT), pattern.intent or "(no request was recorded)", full=full)


def _show_steps(console: Console, pattern: Pattern, *, full: bool) -> None:
    for step in pattern.steps:
        call = Text(f"{_INDENT}→ ", style="cyan").append(shown.plain(step.tool), style="bold")
        _show_line(console, call.append(" "), step.arguments, full=full)
        _show_line(console, _result_head(step), step.result or "(no output)", full=full, dim=True)


def _result_head(step: Step) -> Text:
    head = Text(f"{_INDENT}  ")
    return head if step.worked else head.append("[did not work] ", style="red")


def _show_line(console: Console, head: Text, text: str, *, full: bool, dim: bool = False) -> None:
    room = max(console.width - head.cell_len, 20)
    inner = f"\n{_INDENT}  "
    line = shown.plain(text).replace("\n", inner) if full else shown.one_line(text, room)
    # Assembled, because appended text would take over the style of the head.
    console.print(Text.assemble(head, (line, "dim" if dim else "")), soft_wrap=True)
