"""Keeping a running session: each step is in the store before the next begins, so that a program
that is killed loses nothing that was finished.
"""

from collections.abc import Callable

import msgspec

from journeyman.agent.conversation import Conversation
from journeyman.models.model import Reply
from journeyman.records import Fragment, Message, Tokens, Usage
from journeyman.records.errors import SessionTaken
from journeyman.records.usage import checked
from journeyman.store.store import Store

Prices = Callable[[str, Tokens], float | None]


class Recording:
    """Writes the steps of one agent's sessions. `prices` estimates what a request cost, where the
    model does not say so itself.
    """

    def __init__(self, store: Store, prices: Prices) -> None:
        self._store = store
        self._prices = prices

    def begin(self, conversation: Conversation) -> None:
        """Keep a session with all its messages so far."""
        fragment = Fragment(session=conversation.session, messages=tuple(conversation.messages))
        with self._store.writing() as writing:
            writing.add(fragment)
            writing.finish()

    def keep(
        self, conversation: Conversation, message: Message, usage: Usage | None = None
    ) -> None:
        """Keep a message of a conversation and what it used, and then add it there. Raises
        SessionTaken.
        """
        counted = () if usage is None else (usage,)
        fragment = Fragment(session=conversation.session, messages=(message,), usage=counted)
        self._write(conversation, fragment)
        conversation.add(message)

    def end(self, conversation: Conversation, reason: str, at: float) -> None:
        """Keep how a turn ended."""
        ended = msgspec.structs.replace(conversation.session, end_reason=reason, ended_at=at)
        self._write(conversation, Fragment(session=ended))
        conversation.session = ended

    def continue_in(
        self, parent: Conversation, child: Conversation, at: float, usage: Usage | None
    ) -> None:
        """End a session because its context was compressed, with what that used, and begin the one
        that goes on: both or neither.
        """
        ended = msgspec.structs.replace(parent.session, end_reason="compression", ended_at=at)
        counted = () if usage is None else (usage,)
        self._write(
            parent,
            Fragment(session=ended, usage=counted),
            Fragment(session=child.session, messages=tuple(child.messages)),
        )

    def usage(self, key: str, reply: Reply, at: float, task: str = "") -> Usage:
        """What one request used. Its cost is the model's word, else an estimate, else unknown."""
        tokens = reply.tokens
        told = tokens.cost_usd is not None
        cost = tokens.cost_usd if told else self._prices(reply.model, tokens)
        origin = "model" if told else "estimated"
        counted = Usage(
            key=key,
            model=reply.model,
            task=task,
            at=at,
            input_tokens=tokens.input_tokens,
            output_tokens=tokens.output_tokens,
            cache_read_tokens=tokens.cache_read_tokens,
            cache_write_tokens=tokens.cache_write_tokens,
            reasoning_tokens=tokens.reasoning_tokens,
            cost_usd=cost,
            cost_origin="" if cost is None else origin,
        )
        # What is no count is unknown: counting must never keep an answer from a person.
        return checked(counted)[0]

    def _write(self, conversation: Conversation, *fragments: Fragment) -> None:
        """Write, unless the stored session is not what this agent thinks it is: two that run one
        session would overwrite each other's messages.
        """
        session_id = conversation.session.id
        with self._store.writing() as writing:
            stored = writing.message_count(session_id)
            if stored != len(conversation.messages):
                gone = "was deleted" if stored is None else "was taken up by another program"
                raise SessionTaken(
                    f"The session {session_id} {gone} while this agent was in it, so it stops here "
                    "and keeps nothing more. Start a new one, or resume it when nobody else does."
                )
            for fragment in fragments:
                writing.add(fragment)
            writing.finish()
