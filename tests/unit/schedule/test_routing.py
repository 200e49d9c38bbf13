"""Which model a job asks."""

from msgspec.structs import replace
from tests.tables import table

from journeyman.records.job import Job, JobId, Schedule
from journeyman.schedule.routing import SIGNS, Route, Sign, is_simple, route

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


def test_without_a_simple_model_it_is_the_usual_one() -> None:
    found = routed(SIMPLE, simple="")
    assert (found.model, found.provider) == ("usual", "")


@table("prompt", ["Tell me the weather.", "Debug the server."])
def test_the_jobs_own_model_settles_it(prompt: str) -> None:
    found = routed(replace(SIMPLE, prompt=prompt, model="mine", provider="far"))
    assert found == Route(model="mine", provider="far")


def test_the_jobs_own_provider_has_the_usual_model() -> None:
    found = routed(replace(SIMPLE, provider="far"))
    assert found == Route(model="usual", provider="far")


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
    assert is_simple(replace(SIMPLE, prompt=prompt), 30)


@table(
    "prompt",
    [
        "word " * 31,
        "a\nb\nc",
        "x" * 400,
        "告诉我今天的天气",
        "Look at\n```\nx\n```",
        "Count the lines in notes.txt",
        "List /var/log",
        r"List C:\logs",
        "ANALYZE the sales",
        "Analysiere den Umsatz",
    ],
    ids=["words", "lines", "long", "script", "fence", "file", "path", "drive", "case", "german"],
)
def test_prompts_that_are_not_simple(prompt: str) -> None:
    found = routed(replace(SIMPLE, prompt=prompt))
    assert (found.model, found.provider) == ("usual", "")


def test_skills_and_a_script_are_not_simple() -> None:
    assert not is_simple(replace(SIMPLE, skills=("s",)), 30)
    assert not is_simple(replace(SIMPLE, script="a.py"), 30)


def test_as_many_words_as_allowed_are_simple() -> None:
    assert routed(replace(SIMPLE, prompt="one two three"), words=3).model == "small"
    assert routed(replace(SIMPLE, prompt="one two three"), words=2).model == "usual"


@table("sign", SIGNS, ids=lambda sign: sign.id)
def test_every_sign_finds_its_example(sign: Sign) -> None:
    first = next(one for one in SIGNS if one.pattern.search(sign.example))
    assert first.id == sign.id
    assert not is_simple(replace(SIMPLE, prompt=sign.example), 30)
