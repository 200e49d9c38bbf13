"""What a call was for."""

from tests.tables import table
from tests.turns import Turn, agent, call, messages, user

from journeyman.templates.cleaning import INTENT_LIMIT, clipped_intent
from journeyman.templates.mining.requests import Request, requests

BOOK = "Please book a flight from Rome to Oslo"


def intents(*turns: Turn) -> list[str]:
    said = messages(*turns)
    found = requests(said)
    return [
        clipped_intent(request.intent())
        for message, request in zip(said, found.under, strict=True)
        if message.tool_calls
    ]


def test_the_users_request_is_the_intent():
    assert intents(user(BOOK), call("search")) == [BOOK]


def test_an_answer_goes_on_with_the_request():
    turns = user(BOOK), agent("On which day?"), user("On the third of May"), call("search")
    assert intents(*turns) == [f"{BOOK} … On the third of May"]


@table("nod", ["yes", "Yes, please.", "ok go ahead", "thanks", "👍", "1"])
def test_a_nod_says_nothing(nod):
    assert intents(user(BOOK), agent("Shall I?"), user(nod), call("book")) == [BOOK]


def test_a_yes_with_more_is_an_answer_though_nobody_asked():
    turns = user(BOOK), agent("I would take flight 7."), user("Yes, with window seat"), call("book")
    assert intents(*turns) == [f"{BOOK} … Yes, with window seat"]


def test_what_comes_after_a_statement_is_a_new_request():
    turns = user(BOOK), call("book"), agent("It is booked."), user("Cancel the hotel"), call("drop")
    assert intents(*turns) == [BOOK, "Cancel the hotel"]
    numbers = [one.number for one in requests(messages(*turns)).under]
    assert (numbers[0], numbers[-1]) == (1, 2)


@table(
    "words",
    ["commit this", "push it", "run the tests", "yes, now fix the linter", "ok, please merge it"],
)
def test_a_short_imperative_is_a_request(words):
    turns = user(BOOK), call("book"), agent("It is booked. Anything else?"), user(words), call("do")
    assert intents(*turns) == [BOOK, words]


@table("asks", ["Please provide the day.", "Let me know which.", "Which? Any."])
def test_asking_needs_no_mark_at_the_end(asks):
    assert intents(user(BOOK), agent(asks), user("the fifth of May"), call("search")) == [
        f"{BOOK} … the fifth of May"
    ]


def test_where_nobody_asked_there_is_no_intent():
    assert intents(call("search", says="I will look for flights.")) == [""]


@table(
    "turn",
    [
        user("<system-reminder>write it down</system-reminder>"),
        user("[CONTEXT SUMMARY]: they wanted a flight"),
        user("Book everything in sight", kind="harness"),
        user("Earlier we talked about trains", kind="summary"),
        user("[IMPORTANT: You are running as a scheduled cron job. Report the weather]"),
    ],
    ids=["reminder", "summary", "harness", "kind-summary", "cron"],
)
def test_what_programs_write_is_no_request(turn):
    assert intents(user(BOOK), turn, call("search")) == [BOOK]
    assert intents(turn, call("search", says="Looking.")) == [""]


def test_a_simulated_users_end_mark_is_left_out():
    assert intents(user(f"{BOOK} ###STOP###"), call("search")) == [BOOK]


@table("length", [50, 300, 5_000])
def test_an_intent_is_never_too_long(length):
    text = "word " * (length // 5)
    for request in (Request(wanted=text), Request(wanted=text, answer=text)):
        assert 0 < len(clipped_intent(request.intent())) <= INTENT_LIMIT
    assert Request(answer=text).intent() == ""


def test_cutting():
    # A word without end is cut all the same.
    assert len(clipped_intent(Request(wanted="x" * 9_000).intent())) == INTENT_LIMIT

    # Tags and lead ins are left out.
    text = "<pr_description>\nConsider the following PR description:\nCards lose digits <email:1>"
    assert intents(user(text), call("read")) == ["Cards lose digits <email:1>"]


def slash(name, arguments=""):
    text = f"<command-name>{name}</command-name>\n<command-args>{arguments}</command-args>"
    return user(text, kind="harness")


def test_slash_commands():
    # One with an argument is a request, however its name is written.
    assert intents(slash("/review", "the parser"), call("read")) == ["/review the parser"]
    assert intents(slash("review", "the parser"), call("read")) == ["/review the parser"]

    # Without one, or where it only changes the program, it is none.
    for harness in (slash("/review"), slash("/model", "large"), slash("/clear", "all of it")):
        assert intents(user(BOOK), harness, call("search")) == [BOOK]


def test_what_an_editor_adds_is_left_out():
    added = "<ide_opened_file>The user opened a.py</ide_opened_file>"
    assert intents(user(f"{added}\nFix the parser"), call("read")) == ["Fix the parser"]
    assert intents(user("Fix the parser <ide_selection>def a"), call("read")) == ["Fix the parser"]


def test_a_correction_begins_the_request_anew():
    said = messages(user(BOOK), call("book"), user("No, to Bergen instead"), call("book"))
    found = requests(said)
    assert found.rejected == {1}
    last = found.under[-1]
    assert (last.number, last.wanted, last.answer) == (2, BOOK, "No, to Bergen instead")
    assert not last.ends


def test_what_only_takes_back_ends_the_work():
    found = requests(messages(user(BOOK), call("book"), user("Undo that."), call("drop")))
    assert found.rejected == {1}
    assert found.under[-1].ends


def test_nothing_is_rejected_before_anything_was_done():
    assert requests(messages(user(BOOK), user("No, to Bergen instead"))).rejected == frozenset()


def test_a_no_to_a_question_is_an_answer():
    turns = user(BOOK), call("book"), agent("Shall I add a bag?"), user("No, only hand luggage")
    assert requests(messages(*turns)).rejected == frozenset()


def test_an_interruption_is_noted_once_work_has_begun():
    stop = user("[Request interrupted by user for tool use]", kind="harness")
    assert requests(messages(user(BOOK), call("book"), stop)).interrupted == {1}
    assert requests(messages(user(BOOK), stop)).interrupted == frozenset()
