"""The user request behind each call."""

from tests.tables import table
from tests.turns import Turn, agent, call, messages, user

from journeyman.learning.requests import UserRequest, requests
from journeyman.learning.sanitizer import INTENT_LIMIT, clipped_intent

BOOK = "Please book a flight from Rome to Oslo"


def intents(*turns: Turn) -> list[str]:
    said = messages(*turns)
    found = requests(said)
    return [
        clipped_intent(request.intent())
        for message, request in zip(said, found, strict=True)
        if message.tool_calls
    ]


def test_the_users_request_is_the_intent():
    assert intents(user(BOOK), call("search")) == [BOOK]


def test_answer_extends_the_request():
    turns = user(BOOK), agent("On which day?"), user("On the third of May"), call("search")
    assert intents(*turns) == [f"{BOOK} … On the third of May"]


@table("reply", ["yes", "Yes, please.", "ok go ahead", "thanks", "👍", "1"])
def test_bare_approval_adds_nothing(reply):
    assert intents(user(BOOK), agent("Shall I?"), user(reply), call("book")) == [BOOK]


def test_yes_with_details_is_an_answer_to_a_statement():
    turns = user(BOOK), agent("I would take flight 7."), user("Yes, with window seat"), call("book")
    assert intents(*turns) == [f"{BOOK} … Yes, with window seat"]


def test_message_after_a_statement_is_a_new_request():
    turns = user(BOOK), call("book"), agent("It is booked."), user("Cancel the hotel"), call("drop")
    assert intents(*turns) == [BOOK, "Cancel the hotel"]
    numbers = [one.number for one in requests(messages(*turns))]
    assert (numbers[0], numbers[-1]) == (1, 2)


@table(
    "words",
    ["commit this", "push it", "run the tests", "yes, now fix the linter", "ok, please merge it"],
)
def test_short_imperative_is_a_request(words):
    turns = user(BOOK), call("book"), agent("It is booked. Anything else?"), user(words), call("do")
    assert intents(*turns) == [BOOK, words]


@table("question", ["Please provide the day.", "Let me know which.", "Which? Any."])
def test_questions_need_no_final_question_mark(question):
    assert intents(user(BOOK), agent(question), user("the fifth of May"), call("search")) == [
        f"{BOOK} … the fifth of May"
    ]


def test_call_without_a_request_has_no_intent():
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
def test_program_messages_are_not_requests(turn):
    assert intents(user(BOOK), turn, call("search")) == [BOOK]
    assert intents(turn, call("search", says="Looking.")) == [""]


@table("length", [50, 300, 5_000])
def test_intent_length_is_limited(length):
    text = "word " * (length // 5)
    for answer in ("", text):
        request = UserRequest(number=1, text=text, answer=answer)
        assert 0 < len(clipped_intent(request.intent())) <= INTENT_LIMIT
    assert UserRequest(number=1, answer=text).intent() == ""


def test_intent_is_trimmed():
    # An overlong word is truncated.
    assert len(clipped_intent(UserRequest(number=1, text="x" * 9_000).intent())) == INTENT_LIMIT

    # Tags are removed.
    text = "<pr_description>\nCards lose digits <email:1>"
    assert intents(user(text), call("read")) == ["Cards lose digits <email:1>"]


def slash(name, arguments=""):
    text = f"<command-name>{name}</command-name>\n<command-args>{arguments}</command-args>"
    return user(text, kind="harness")


def test_slash_commands():
    # A command with an argument is a request, with or without the slash in its name.
    assert intents(slash("/review", "the parser"), call("read")) == ["/review the parser"]
    assert intents(slash("review", "the parser"), call("read")) == ["/review the parser"]

    # A command without an argument, or one that only configures the program, is not.
    for harness in (slash("/review"), slash("/model", "large"), slash("/clear", "all of it")):
        assert intents(user(BOOK), harness, call("search")) == [BOOK]


def test_editor_context_is_removed():
    added = "<ide_opened_file>The user opened a.py</ide_opened_file>"
    assert intents(user(f"{added}\nFix the parser"), call("read")) == ["Fix the parser"]
    assert intents(user("Fix the parser <ide_selection>def a"), call("read")) == ["Fix the parser"]


def test_correction_restarts_the_request():
    first, *_, last = requests(
        messages(user(BOOK), call("book"), user("No, to Bergen instead"), call("x"))
    )
    assert first.is_rejected
    assert (last.number, last.text, last.answer) == (2, BOOK, "No, to Bergen instead")
    assert not last.is_withdrawal


def test_withdrawal_ends_the_work():
    first, *_, last = requests(messages(user(BOOK), call("book"), user("Undo that."), call("drop")))
    assert first.is_rejected
    assert last.is_withdrawal


@table(
    "turns",
    [
        (user(BOOK), user("No, to Bergen instead")),  # nothing was done
        (user(BOOK), call("book"), agent("Shall I add a bag?"), user("No, only hand luggage")),
    ],
    ids=["before any work", "answer"],
)
def test_not_every_no_is_a_rejection(turns):
    assert not any(request.is_rejected for request in requests(messages(*turns)))


def test_interruption_counts_only_after_work_has_begun():
    stop = user("[Request interrupted by user for tool use]", kind="harness")
    assert requests(messages(user(BOOK), call("book"), stop))[0].is_interrupted
    assert not requests(messages(user(BOOK), stop))[0].is_interrupted
