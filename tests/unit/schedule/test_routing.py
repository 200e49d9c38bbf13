"""Which model a job asks."""

from msgspec.structs import replace
from tests.tables import table

from journeyman.records.job import Job, JobId, Schedule
from journeyman.schedule.routing import SIGNS, Route, Sign, find_hard, route

SCHEDULE = Schedule(text="every 1h", kind="every", timezone="UTC", seconds=3600)
SIMPLE = Job(id=JobId("j1"), name="n", prompt="Tell me the weather in Graz.", schedule=SCHEDULE)


def routed(job: Job, *, simple: str = "small", words: int = 30) -> Route:
    return route(
        job,
        usual_model="usual",
        simple_model=simple,
        simple_provider="near",
        simple_words=words,
    )


def test_a_simple_job_goes_to_the_simple_model() -> None:
    found = routed(SIMPLE)
    assert (found.model, found.provider) == ("small", "near")
    assert found.why == "A simple job: short, with plain words."


def test_without_a_simple_model_it_is_the_usual_one() -> None:
    found = routed(SIMPLE, simple="")
    assert (found.model, found.provider) == ("usual", "")
    assert "No model for simple jobs" in found.why


@table("prompt", ["Tell me the weather.", "Debug the server."])
def test_the_jobs_own_model_settles_it(prompt: str) -> None:
    found = routed(replace(SIMPLE, prompt=prompt, model="mine", provider="far"))
    assert found == Route(model="mine", provider="far", why="The job names its model.")


def test_the_jobs_own_provider_has_the_usual_model() -> None:
    found = routed(replace(SIMPLE, provider="far"))
    assert found == Route(model="usual", provider="far", why="The job names its provider.")


@table(
    "prompt",
    [
        "Say good morning.",
        "Remind me to water the plants, and/or the lawn!",
        "Summarise the news of today.\nKeep it short.",
        "Wie wird das Wetter in Köln? Antworte kurz.",
        "What is 5 km/h in m/s?",
    ],
)
def test_simple_prompts(prompt: str) -> None:
    assert find_hard(replace(SIMPLE, prompt=prompt), 30) == ""


@table(
    ("prompt", "why"),
    [
        ("word " * 31, "31 words, more than 30"),
        ("a\nb\nc", "more than 2 lines"),
        ("x" * 400, "is long"),
        ("告诉我今天的天气", "table of words does not know"),
        ("Look at\n```\nx\n```", "more than 2 lines"),
        ("Count the lines in notes.txt", "'notes.txt'"),
        ("List /var/log", "'/var/log'"),
        (r"List C:\logs", r"'C:\\logs'"),
        ("ANALYZE the sales", "'ANALYZE'"),
        ("Analysiere den Umsatz", "'Analysiere'"),
    ],
    ids=["words", "lines", "long", "script", "fence", "file", "path", "drive", "case", "german"],
)
def test_prompts_that_are_not_simple(prompt: str, why: str) -> None:
    found = routed(replace(SIMPLE, prompt=prompt))
    assert (found.model, found.provider) == ("usual", "")
    assert found.why.startswith("Not a simple job: ")
    assert why in found.why


def test_skills_and_a_script_are_not_simple() -> None:
    assert routed(replace(SIMPLE, skills=("s",))).why == "Not a simple job: it loads skills."
    assert routed(replace(SIMPLE, script="a.py")).why == "Not a simple job: it has a script."


def test_as_many_words_as_allowed_are_simple() -> None:
    assert routed(replace(SIMPLE, prompt="one two three"), words=3).model == "small"
    assert routed(replace(SIMPLE, prompt="one two three"), words=2).model == "usual"


@table("sign", SIGNS, ids=lambda sign: sign.id)
def test_every_sign_finds_its_example(sign: Sign) -> None:
    first = next(one for one in SIGNS if one.pattern.search(sign.example))
    assert first.id == sign.id
    assert sign.reason in routed(replace(SIMPLE, prompt=sign.example)).why


def test_ids_are_unique() -> None:
    assert len({sign.id for sign in SIGNS}) == len(SIGNS)
