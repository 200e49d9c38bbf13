"""Every error that Journeyman raises, in one tree with two branches: WrongInput, which the caller
fixes, and OutsideProblem, which is fixed outside the program. Each message says what was being
done, what was found and what to do next; every surface prints it unchanged.
"""

from collections.abc import Mapping


class JourneymanError(Exception):
    """An error that Journeyman can explain. Its text is written for the person who reads it."""


class WrongInput(JourneymanError):
    """The request cannot be carried out as stated."""


class UnknownSession(WrongInput):
    """No session has this id, or an id with this prefix."""


class AmbiguousSession(WrongInput):
    """More than one session id has this prefix."""


class NotALog(WrongInput):
    """No reader recognises this file."""


class NotACall(WrongInput):
    """The value to judge is not a call."""


class BadSetting(WrongInput):
    """A setting has a value that cannot be used."""


class UnknownTemplate(WrongInput):
    """No template has this name or version."""


class BadTemplate(WrongInput):
    """A template's name, tag or file cannot be used."""


class NotWritten(WrongInput):
    """A change to memory or a skill is not allowed; nothing was written."""


class UnknownReview(WrongInput):
    """No review or write has this id, or an id with this prefix."""


class UnknownJob(WrongInput):
    """No job or run has this name or id."""


class JobBlocked(WrongInput):
    """A job cannot start: the model's context window is too small, or something it needs is
    missing.
    """


class ConfirmationRefused(WrongInput):
    """The confirmation service refused a request. `code` is the reason as one word, `about` holds
    the details.
    """

    def __init__(
        self, message: str, *, code: str = "", about: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.about = dict(about or {})


class ConfirmationChanged(ConfirmationRefused):
    """The action about to run differs from the one that was approved."""


class OutsideProblem(JourneymanError):
    """A file, a database or an external service failed."""


class LogUnreadable(OutsideProblem):
    """A log exists but cannot be read."""


class StoreUnavailable(OutsideProblem):
    """The database cannot be opened, is locked, or has a newer schema than this program."""


class Unstorable(OutsideProblem):
    """The database works, but rejects a value."""


class MissingPart(OutsideProblem):
    """An optional part of the program is not installed."""


class ModelUnavailable(OutsideProblem):
    """A model gave no usable answer, even after retries."""


class ContextFull(OutsideProblem):
    """The conversation does not fit into the model's context window."""


class ServiceUnavailable(OutsideProblem):
    """The confirmation service cannot be reached, or something else answers at its address."""


class AuditBroken(OutsideProblem):
    """The audit of confirmations does not match its recorded head."""


def follows_interrupt(error: BaseException | None) -> bool:
    """Return whether the error was raised while a KeyboardInterrupt was being handled: a library
    may fail because of the interruption.
    """
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__context__
    return False
