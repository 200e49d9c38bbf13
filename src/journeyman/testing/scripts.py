"""The sessions of the sample corpus: which agent runs which errand, and how it goes."""

from collections.abc import Iterable

from journeyman.testing.bug_fixes import add_test, fix_bug, write_guide
from journeyman.testing.data_questions import ask_log, ask_stock
from journeyman.testing.moves import all_in_shell, elsewhere, lost, python_in_shell
from journeyman.testing.paperwork import change_config, keep_list, sum_up, survey
from journeyman.testing.script import Compress, Script, Step


def claude_code_scripts() -> list[Script]:
    """Sixteen sessions, two of them marathons, two with a subagent, one with a compaction."""
    scripts = [
        _script("invoicer", "Lost cents", fix_bug("lost cents"), "lost cents"),
        _script("invoicer", "Lost sign", fix_bug("lost sign", "path"), "lost sign"),
        _script(
            "invoicer", "Zero-rated food", fix_bug("zero is a rate", "blind"), "zero is a rate"
        ),
        _script("invoicer", "Ageing buckets", fix_bug("thirty days", "refused"), "thirty days"),
        _script(
            "invoicer",
            "Tax off by cents",
            fix_bug("rounded too soon", "sibling"),
            "rounded too soon",
        ),
        _script(
            "invoicer", "Early reminders", fix_bug("early is late", "stopped"), "early is late"
        ),
        _script("invoicer", "A guide to dates", write_guide(1) + add_test(2)),
        _script("weblog", "Revenue by region", ask_log("revenue", "wrong")),
        _script("weblog", "Slow search", ask_log("slow search") + lost("cat answers/*.md")),
        _script("stock", "Reorder Graz", ask_stock("reorder", "wrong")),
        _script("stock", "Value of the stock", ask_stock("value")),
        _script("notes", "Hydration", sum_up("hydration")),
        _script("notes", "Another summer?", survey(("yeast", "lighting"))),
        _script("deploy", "Checkout timeout", change_config("checkout timeout", "vague")),
        _script("invoicer", "A week of invoicer", _invoicer_marathon(), *_MARATHON_BUGS),
        _script("weblog", "Monday questions", _monday_marathon(), "whole hours"),
    ]
    return [_for("claude", script, python_in_shell(script.steps)) for script in scripts]


def codex_scripts() -> list[Script]:
    """Nine sessions, one of them a marathon; everything goes through the shell."""
    scripts = [
        _script("invoicer", "Half hours", fix_bug("whole hours", "typo"), "whole hours"),
        _script("invoicer", "Crooked tables", fix_bug("narrow table", "clumsy"), "narrow table"),
        _script("invoicer", "December", fix_bug("short year"), "short year"),
        _script("weblog", "The bad hour", ask_log("bad hour", "wrong")),
        _script("weblog", "Visitors", ask_log("visitors")),
        _script("stock", "Losses", ask_stock("losses") + lost("cat reports/*.md")),
        _script("notes", "Yeast", sum_up("yeast")),
        _script("deploy", "Longer cache", change_config("catalogue cache", "arguments", "refused")),
        _script("deploy", "Five chores", _chores_marathon(), "lost sign"),
    ]
    return [_for("codex", script, all_in_shell(script.steps)) for script in scripts]


def hermes_scripts() -> list[Script]:
    """Ten scripts; the last two are compressed, in place and by rotation."""
    scripts = [
        _script("invoicer", "Credit notes", fix_bug("lost sign", "arguments"), "lost sign"),
        _script("invoicer", "Irish food", fix_bug("zero is a rate", "typo"), "zero is a rate"),
        _script("weblog", "What comes back", ask_log("returns", "wrong")),
        _script("weblog", "Regions again", ask_log("revenue", "inline")),
        _script("stock", "Best sellers", ask_stock("sellers") + lost("ls reports")),
        _script("notes", "Sensor drift", sum_up("sensor drift", "regex")),
        _script("deploy", "Order export", change_config("order export", "vague", "refused")),
        _script("notes", "Lists", _lists()),
        _script("notes", "All the notes", _notes_marathon()),
        _script("invoicer", "Release 0.5", _release(), "narrow table", "whole hours"),
    ]
    return [_for("hermes", script, list(script.steps)) for script in scripts]


_MARATHON_BUGS = ("lost cents", "short year", "zero is a rate", "narrow table", "whole hours")


def _script(project: str, title: str, steps: Iterable[Step], *bugs: str) -> Script:
    return Script(name=title, project=project, title=title, steps=tuple(steps), bugs=bugs)


def _for(source: str, script: Script, steps: list[Step]) -> Script:
    return Script(
        name=f"{source} {script.name}",
        project=script.project,
        title=script.title,
        steps=tuple(steps),
        bugs=script.bugs,
    )


def _summary(done: str, left: str) -> Compress:
    return Compress(
        summary=f"1. What was asked: several errands, one after the other.\n2. What is done: {done}"
        f"\n3. What is left: {left}\n4. What works here: full paths for files, "
        "`python3 -m unittest -v tests.test_<module>` for tests, reading a file before changing it."
    )


def _invoicer_marathon() -> list[Step]:
    return [
        *fix_bug("lost cents", "module", "path"),
        *fix_bug("short year", "module", "tool"),
        *write_guide(0),
        *fix_bug("zero is a rate", "module", "refused"),
        *write_guide(2),
        _summary("three bugs (cents, December, zero rate), guides to money and tax.", "two bugs."),
        *fix_bug("narrow table", "module"),
        *add_test(5),
        *fix_bug("whole hours", "module", "clumsy"),
        *write_guide(3),
        *add_test(7),
    ]


def _monday_marathon() -> list[Step]:
    return [
        *ask_log("revenue", "path", "wrong"),
        *ask_log("returns"),
        *elsewhere("stock", ask_stock("losses", "wrong")),
        *ask_log("bad hour"),
        *ask_log("visitors", "wrong"),
        *elsewhere("stock", ask_stock("sellers")),
        *elsewhere("invoicer", fix_bug("whole hours", "module")),
        *elsewhere("deploy", change_config("mail batch")),
        *survey(("cold start", "soil moisture")),
    ]


def _chores_marathon() -> list[Step]:
    return [
        *change_config("checkout timeout", "vague"),
        *change_config("gift wrap"),
        *elsewhere("stock", ask_stock("value", "wrong")),
        *change_config("order export"),
        *elsewhere("notes", sum_up("lighting")),
        *elsewhere("invoicer", fix_bug("lost sign", "refused")),
        *elsewhere("weblog", ask_log("slow search")),
        *change_config("mail batch", "harmful"),
        *elsewhere("invoicer", write_guide(4)),
    ]


def _notes_marathon() -> list[Step]:
    return [
        *sum_up("hydration", "path"),
        *sum_up("lighting", "tool"),
        *elsewhere("weblog", ask_log("visitors", "wrong")),
        _summary("summaries of hydration and lighting, and a visitor count.", "three summaries."),
        *sum_up("cold start"),
        *sum_up("soil moisture", "regex"),
        *elsewhere("deploy", change_config("catalogue cache", "vague")),
        *sum_up("yeast"),
        *elsewhere("stock", ask_stock("reorder")),
    ]


def _lists() -> list[Step]:
    return [
        *keep_list("tools", ("saw", "hammer", "axe"), "pliers"),
        *keep_list("fruit", ("plum", "apple", "quince", "fig"), "medlar"),
        *keep_list("games", ("chess", "go", "halma"), "bridge"),
    ]


def _release() -> list[Step]:
    return [
        *fix_bug("narrow table", "module", "clumsy"),
        *write_guide(4),
        *add_test(3),
        _summary("the crooked tables, a guide to reports and a test.", "half hours."),
        *fix_bug("whole hours"),
        *write_guide(1),
    ]
