"""The HTML report: a self-contained page that shows the profile, whatever text was recorded."""

import re
from functools import cache
from html.parser import HTMLParser

import msgspec
from tests.tables import table

from journeyman.records import (
    JudgedCall,
    JudgedSession,
    SessionId,
    Verdict,
    VerdictKind,
    VerdictStatus,
)
from journeyman.reliability.groups import grouped
from journeyman.reliability.html_report import render_page
from journeyman.reliability.markup import Markup, join_markup, markup
from journeyman.reliability.profile import Profile, profile
from journeyman.text.display import printable

WITHOUT_END = {"meta", "wbr", "br"}
BLOCKS = {"title", "h1", "h2", "h3", "p", "pre", "dt", "dd", "th", "td", "text"}
SPACE = "\N{NO-BREAK SPACE}"


def call(
    tool: str = "Bash",
    status: VerdictStatus = "ok",
    evidence: str = "",
    *,
    kind: VerdictKind = "",
    rule: str = "words.error",
) -> JudgedCall:
    verdict = Verdict(status=status, rule=rule, kind=kind, evidence=evidence)
    return JudgedCall(call_id="c", tool=tool, verdict=verdict)


def session(
    name: str, *calls: JudgedCall, messages: int = 10, source: str = "hermes", model: str = "m"
) -> JudgedSession:
    return JudgedSession(
        id=SessionId(name),
        source=source,
        model=model,
        messages=messages,
        tags=(),
        calls=tuple(msgspec.structs.replace(one, index=at) for at, one in enumerate(calls)),
    )


def sessions() -> list[JudgedSession]:
    """Return sessions with data for every section: long, short and failing."""
    failed = call("Edit", "failed", "No file /a/b.py", kind="not_found")
    made = [
        session(
            f"long{at}",
            call("Edit"),
            *[call()] * 9,
            failed if at < 6 else call("Edit"),
            call("Read"),
            failed,
            messages=120,
        )
        for at in range(9)
    ]
    made += [session(f"mid{at}", call("Edit"), call(), call("Read"), messages=30) for at in (1, 2)]
    made.append(session("apart", call(status="refused"), call(status="unknown"), call()))
    return made


@cache
def full_profile() -> Profile:
    return profile(sessions())


def page(found: Profile, **more: object) -> str:
    options = {"title": "Reliability", "made_at": 0.0} | more
    return render_page(found, **options)  # type: ignore[arg-type]


@cache
def full_page() -> str:
    return page(full_profile())


class ParsedPage(HTMLParser):
    """The page as a browser parses it: balanced elements, attributes and plain text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.tags: list[str] = []
        self.words: list[str] = []
        self.headings: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in WITHOUT_END:
            self.open.append(tag)
        if tag == "h2":
            self.headings.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag in BLOCKS:
            self.words.append(" | ")

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "h2":
            self.headings[-1] += data
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).replace(SPACE, " ").split())


class TestSelfContained:
    def test_page_fetches_and_runs_nothing(self) -> None:
        text = page(full_profile(), groups=[("source", grouped(sessions(), "source"))])
        read = ParsedPage(text)
        assert not {"script", "link", "img", "iframe", "object", "base", "image"} & set(read.tags)
        fetching = {"src", "href", "xlink:href", "srcset", "data", "action", "poster", "background"}
        for tag, name, value in read.attributes:
            assert name not in fetching, (tag, name, value)
            assert not name.startswith("on"), (tag, name, value)
            assert "http" not in value or name.startswith("xmlns"), (tag, name, value)
            assert "url(" not in value, (tag, name, value)
        assert "@import" not in text
        assert "url(" not in text
        assert "@font-face" not in text

        # A content security policy forbids fetching.
        assert ("meta", "content", "default-src 'none'; style-src 'unsafe-inline'") in ParsedPage(
            full_page()
        ).attributes

        # HTML 5 in UTF-8.
        text = full_page()
        assert text.startswith("<!DOCTYPE html>\n<html lang=")
        assert '<meta charset="utf-8">' in text[:120]
        text.encode()

        # Charts are embedded.
        assert ParsedPage(full_page()).tags.count("svg") == 3


class TestContent:
    def test_summary_and_sections(self) -> None:
        # Sections in order.
        groups = [(by, grouped(sessions(), by)) for by in ("model", "source")]
        assert ParsedPage(page(full_profile(), groups=groups)).headings == [
            "What fails",
            "By tool",
            "Along the session",
            "How sessions get going",
            "By type of work",
            "By length of the session",
            "By model",
            "By source",
            "How to read this",
        ]

        # Summary.
        text = ParsedPage(
            page(full_profile(), title="Sessions of May", made_at=1_780_000_000.0)
        ).text
        assert (
            "Sessions of May | In 12 sessions with 126 tool calls, 12.1 % of the counted calls "
            "failed (15 of 124; 95 % interval: 7.0 to 20.0 %). | Created on 28 May 2026."
        ) in text

        # Key figures.
        text = ParsedPage(full_page()).text
        assert "Counted separately | 1 | 1 refused, 0 interrupted" in text
        assert "Unknown | 1 | not counted" in text
        assert "Errors | 15 | 15 failed, 0 invalid" in text

        # Additional groups.
        groups = [("model", grouped([session("s", call(), model="gpt <4>")], "model"))]
        assert (
            "By model | Model | Error rate |"
            in ParsedPage(page(full_profile(), groups=groups)).text
        )
        assert "gpt &lt;4&gt;" in page(full_profile(), groups=groups)

    def test_failures(self) -> None:
        # A search without a match is not an error.
        found = profile([session("s", call(status="failed", kind="no_match"), call())])
        text = ParsedPage(page(found)).text
        assert "Errors | 0 | 0 failed, 0 invalid" in text
        assert "No match | 1 | not an error" in text
        assert "No counted call failed." in text

        # A failure with its example.
        text = ParsedPage(full_page()).text
        assert (
            "No file <path> | 15 errors (100.0 % of all) in 9 sessions · Edit · not found | "
            "No file /a/b.py | Session long0, call 11, Edit, judged by the rule words.error |"
        ) in text

        # An invalid call.
        invalid = call("Read", "invalid", "no path given", kind="invalid_arguments")
        text = ParsedPage(page(profile([session("s", invalid)]))).text
        assert "· Read · invalid arguments, invalid call |" in text

        # Failures beyond the list are counted.
        words = [f"it was {letter}" for letter in "abcdefghijkl"]
        found = profile([session("s", *[call(status="failed", evidence=one) for one in words])])
        text = ParsedPage(page(found)).text
        assert "And 2 further groups of failures with 2 errors in total." in text

        # Many tools with the same failure.
        calls = [call(f"t{at}", "failed", "no") for at in range(8)]
        text = ParsedPage(page(profile([session("s", *calls)]))).text
        assert "t0, t1, t2, t3, t4 and 3 more tools" in text

    def test_tools_and_learning(self) -> None:
        # Table of tools.
        text = ParsedPage(full_page()).text
        assert "Editmostly: No file <path> | 51.7 % | 32.4 to 70.6 % | 15 | 29 | 11 | |" in text
        not_counted = "1 refused or interrupted, 1 unknown"
        assert f"Bash | 0.0 % | 0.0 to 5.5 % | 0 | 84 | 12 | {not_counted} |" in text

        # The length of a bar is its rate relative to the highest.
        calls = [call("a", "failed"), call("a"), *[call("b", "failed"), *[call("b")] * 3]]
        widths = re.findall(r"width:([\d.]+)%", page(profile([session("s", *calls)])))
        # Tools a and b, then one type and three bands of length, of which one has calls.
        assert widths == ["50.0", "100.0", "100.0", "100.0"]

        # Learning shows the crude and the stratified figure.
        found = full_profile()
        text = ParsedPage(page(found)).text
        assert found.learning.reading in text
        assert (
            "Early and late calls, same tools compared | 83.3 points more errors (95 % interval: "
            in text
        )
        assert (
            "Early and late calls, all tools pooled | 55.6 points more errors (95 % interval: "
            in text
        )
        assert "First and later uses of a tool, same tools compared | " in text
        assert "Early means the first 20 % of a session's calls, late the last 20 %" in text

        # A difference from too little data is not stated.
        text = ParsedPage(page(profile([session("s", *[call()] * 5)]))).text
        assert "same tools compared | Unknown: 1 session" in text

    @table(
        "word",
        ["Wilson", "Refused", "Unknown", "No match", "Calls within one session are correlated"],
    )
    def test_terms_are_explained(self, word: str) -> None:
        assert word in ParsedPage(full_page()).text.partition("How to read this")[2]


EMPTY_PROFILES = {
    "no sessions": ([], "There are no sessions to profile."),
    "no calls": ([session("s")], "There are no tool calls in these sessions"),
    "nothing counts": ([session("s", call(status="refused"))], "No call can be counted"),
}


class TestSmallAndLargeProfiles:
    @table("case", EMPTY_PROFILES.values(), ids=EMPTY_PROFILES)
    def test_profile_without_a_rate_states_the_reason(
        self, case: tuple[list[JudgedSession], str]
    ) -> None:
        judged, why = case
        read = ParsedPage(page(profile(judged)))
        assert why in read.text
        assert "svg" not in read.tags
        assert not re.findall(r"\d\.\d %|nan|None", read.text)

    def test_one_call_and_thousands_of_tools_and_groups(self) -> None:
        # One call.
        read = ParsedPage(page(profile([session("s", call(status="failed", evidence="no"))])))
        assert "In 1 session with 1 tool call, 100.0 %" in read.text
        assert "No tool has 5 counted calls, so there is no chart." in read.text
        assert "No session has 10 counted calls, so there is no curve." in read.text

        # Thousands of tools.
        calls = [call(f"tool{at:04}") for at in range(3000)]
        text = page(profile([session("s", *calls)]))
        assert (
            "And 2,975 more tools with 2,975 counted calls and 0 errors in total."
            in ParsedPage(text).text
        )
        assert len(text) < 100_000

        # Thousands of groups.
        groups = [
            ("model", grouped([session(f"s{at}", call(), model=f"m{at}") for at in range(99)], by))
            for by in ("model",)
        ]
        assert (
            "And 74 more groups with 74 counted calls and 0 errors in total."
            in ParsedPage(page(full_profile(), groups=groups)).text
        )


HOSTILE = "</pre><script>alert(1)</script>\x00\x1b[31m\u202eevil\u2066\ud800\"' onload=x"


@cache
def hostile_page() -> str:
    calls = [call(HOSTILE, "failed", HOSTILE, rule=HOSTILE)] * 5
    made = [session(HOSTILE, *calls, source=HOSTILE, model=HOSTILE)]
    groups = [(HOSTILE, grouped(made, "model")), ("source", grouped(made, "source"))]
    return render_page(profile(made), title=HOSTILE, made_at=0, groups=groups)


class TestRecordedText:
    def test_recorded_text_is_never_markup(self) -> None:
        read = ParsedPage(hostile_page())
        assert "script" not in read.tags
        assert "onload" not in {name for _, name, _ in read.attributes}
        assert read.text.count("<script>alert(1)</script>") > 8

        # Invisible characters are replaced.
        text = hostile_page()
        assert not re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e]", text)
        assert not re.findall(r"[\u2060-\u206f\ufeff\ud800-\udfff]", text)
        text.encode()

        # A dollar sign is not a placeholder.
        found = profile([session("s", call(status="failed", evidence="costs $body"))])
        assert "costs $body" in ParsedPage(page(found, title="$title")).text


class TestMarkup:
    def test_only_markup_is_unescaped(self) -> None:
        # Text is escaped and markup is not.
        inner = markup("<b>{}</b>", "1 < 2")
        assert join_markup(("a & b ", inner)) == "a &amp; b <b>1 &lt; 2</b>"
        form = '<p class="{}">{}</p>'
        assert markup(form, '"x"', inner) == '<p class="&quot;x&quot;"><b>1 &lt; 2</b></p>'

        # Only `Markup` counts as markup.
        assert join_markup([Markup("<b>")]) == "<b>"
        assert join_markup([str(Markup("<b>"))]) == "&lt;b&gt;"

    @table(
        ("text", "expected"),
        [
            ("plain é 日本", "plain é 日本"),
            ("two\nlines", "two\nlines"),
            ("tab\there\r\n", "tab here \n"),
            ("\x1b[1m\x00\x7f", "�[1m��"),
            ("\u202eabc\u2069\u200b\ufeff", "�abc���"),
            ("\ud83d\uffff", "��"),
        ],
        ids=["plain", "lines", "spaces", "control", "direction", "not a character"],
    )
    def test_printable_text(self, text: str, expected: str) -> None:
        assert printable(text) == expected
