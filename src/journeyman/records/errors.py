"""Every error Journeyman raises, in one tree, branched by who must act: the caller (WrongInput), or
somebody who mends the world outside (OutsideProblem). Each message says what was being done, what
was found and what to do next; surfaces print it as it is.
"""

from collections.abc import Mapping


class JourneymanError(Exception):
    """Something Journeyman can explain; its text is meant for the person who reads it."""


class WrongInput(JourneymanError):
    """The caller asked for something that cannot be done as asked."""


class UnknownSession(WrongInput):
    """No session has this id or an id that begins so."""


class AmbiguousSession(WrongInput):
    """More than one session's id begins so."""


class UnknownReader(WrongInput):
    """No reader has this name."""


class NotALog(WrongInput):
    """No reader knows this file."""


class NotACall(WrongInput):
    """What was given to be judged is not a call."""


class BadSetting(WrongInput):
    """A setting has a value that cannot be used."""


class UnknownTemplate(WrongInput):
    """No template has this name, or not this version."""


class BadTemplate(WrongInput):
    """A template's name, tag or file cannot be used."""


class BadTools(WrongInput):
    """What was given as the definitions of tools is none, or a schema in it is invalid."""


class NotWritten(WrongInput):
    """Memory or a skill was to be changed in a way that is not allowed; nothing was written."""


class SessionTaken(WrongInput):
    """A session that an agent is in was deleted, or is run by another program."""


class UnknownReview(WrongInput):
    """No review or write has this id or an id that begins so."""


class UnknownJob(WrongInput):
    """No job or no run has this name or id."""


class JobBlocked(WrongInput):
    """A job cannot begin: the model's window is too small, or something it needs is not there."""


class ConfirmationRefused(WrongInput):
    """The confirmation service said no to a request. `code` says why in one word, `about` has
    what belongs to it.
    """

    def __init__(
        self, message: str, *, code: str = "", about: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.about = dict(about or {})


class ConfirmationChanged(ConfirmationRefused):
    """What is about to run is not what was approved."""


class OutsideProblem(JourneymanError):
    """A file, a database or a service outside did not do its part."""


class LogUnreadable(OutsideProblem):
    """A log is there but cannot be read."""


class StoreUnavailable(OutsideProblem):
    """The database cannot be opened, is locked, or is newer than this program."""


class Unstorable(OutsideProblem):
    """The database refuses a value, while it takes others."""


class MissingPart(OutsideProblem):
    """An optional part of the program is not installed."""


class ModelUnavailable(OutsideProblem):
    """A model gave no answer that can be used, and asking again did not help."""


class ContextFull(OutsideProblem):
    """The conversation does not fit the window of the model."""


class ServiceUnavailable(OutsideProblem):
    """The confirmation service cannot be reached, or what answers there is not it."""


class WorkerLost(OutsideProblem):
    """A worker process ended before its work was done."""


class AuditBroken(OutsideProblem):
    """The audit of confirmations is not the one whose head was noted."""


def follows_interrupt(error: BaseException | None) -> bool:
    """Whether an error came while an interruption was dealt with: a library may trip over it."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__context__
    return False
