"""The guard before anything is spent: a model whose window is too small for a job stops it, with
the ways out. Finding the window out is left to `models`.
"""

from journeyman.records.errors import JobBlocked


def check_window(
    model: str, provider: str, window: int | None, *, minimum: int, setting: str
) -> str:
    """Whether a job may use a model with this window; a warning where that is not known. `setting`
    is the one that would settle it. Raises JobBlocked when the window is too small.
    """
    named = f"{model} ({provider})" if provider else model
    if window is None:
        return (
            f"The context window of {named} could not be found out; jobs need at least "
            f"{minimum:,} tokens. The job runs all the same. To settle it, set {setting} in "
            "config.toml."
        )
    if window < minimum:
        raise JobBlocked(
            f"The job was to run on {named}, whose context window is {window:,} tokens; jobs need "
            f"at least {minimum:,}. Nothing was spent. If the model really has more, set {setting} "
            "in config.toml; otherwise choose another model, for this job with --model or for all "
            "with model.name."
        )
    return ""
