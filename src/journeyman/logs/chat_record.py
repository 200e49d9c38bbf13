"""A conversation handed over in memory, in the OpenAI message format, as a session."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from journeyman.logs.chat import BadMessage, ChatReading
from journeyman.records import Fragment, Session, SessionId
from journeyman.records.digest import message_digest
from journeyman.records.errors import WrongInput
from journeyman.records.message import whole


def recorded_session(
    messages: Sequence[Mapping[str, Any]],
    *,
    source: str,
    session_id: str | None,
    outcome: float | None,
    model: str,
    project: str,
    cwd: str,
    tags: tuple[str, ...],
    now: float,
) -> Fragment:
    """The session as one fragment. Raises WrongInput, naming the message that cannot be used."""
    _check(messages, outcome, tags)
    for name, text in (("source", source), ("session_id", session_id)):
        if text is not None and not (isinstance(text, str) and text):
            raise WrongInput(f"The {name} {text!r} is not a text that can be used.")
    for name, text in (("model", model), ("project", project)):
        if not isinstance(text, str):
            raise WrongInput(f"The {name} {text!r} is not a text.")
    chat = ChatReading()
    read = []
    position = 0
    for index, raw in enumerate(messages):
        try:
            found = chat.read(dict(raw), f"m{index}", position, model=model)
        except (BadMessage, TypeError, ValueError) as error:  # a message that is no mapping
            raise WrongInput(f"Message {index} cannot be recorded: {error}.") from error
        read += [whole(message) for message in found]
        position = max([position, *(message.position for message in found)]) + 1
    if session_id is None:
        # Named by content, so that recording the same conversation twice keeps one.
        content = hashlib.blake2b(digest_size=12)
        for message in read:
            content.update(message_digest(message))
        session_id = content.hexdigest()
    session = Session(
        id=SessionId(session_id),
        source=source,
        model=model,
        project=project,
        cwd=cwd,
        started_at=None if any(message.at for message in read) else now,
        outcome=outcome,
        outcome_origin="" if outcome is None else "recorded",
        tags=tags,
    )
    return Fragment(session=session, messages=tuple(read), replaces=True)


def _check(messages: Any, outcome: Any, tags: tuple[Any, ...]) -> None:
    if isinstance(messages, str | Mapping) or not messages:
        raise WrongInput("There is nothing to record: give a list of messages that is not empty.")
    if outcome is not None and not (isinstance(outcome, int | float) and 0 <= outcome <= 1):
        raise WrongInput(f"The outcome {outcome!r} is not between 0 (failed) and 1 (succeeded).")
    if not all(isinstance(tag, str) for tag in tags):
        raise WrongInput(f"The tags {tags!r} are not all texts.")
