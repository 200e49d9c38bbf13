"""The channels to people from the addresses in the settings. An address that cannot be used is
refused at the start, because a notice that nobody gets is noticed too late. Loads heavy libraries:
import it only where there are addresses.
"""

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

from msgspec import Struct

from journeyman.confirm.notices.apprise_channel import apprise_channel
from journeyman.confirm.notices.bot_api import OFFICIAL, BotApi
from journeyman.confirm.notices.channel import NoticeChannel
from journeyman.confirm.notices.telegram import Answering, TelegramChannel
from journeyman.records.errors import BadSetting

_TELEGRAM: Final = re.compile(r"\s*tgram://", re.IGNORECASE)
_TOKEN: Final = re.compile(r"(?:bot)?(\d+:[A-Za-z0-9_-]+)", re.IGNORECASE)
_CHAT: Final = re.compile(r"-?\d{1,19}")


class Telegram(Struct, frozen=True, kw_only=True):
    """How Telegram is used when people answer there."""

    answering: Answering
    ids: tuple[int, ...] = ()
    """The approvers' numbers: where notices go when the address names no chat."""
    api_url: str = OFFICIAL
    groups: bool = False
    """Whether buttons also stand, and count, in chats of more than one person."""


def make_channels(
    urls: Sequence[str], *, telegram: Telegram | None = None
) -> tuple[NoticeChannel, ...]:
    """The channels, in the order of their addresses. With `telegram`, notices there have buttons;
    without, they are like everybody's. Raises BadSetting.
    """
    return tuple(
        apprise_channel(url, position)
        if telegram is None or not _TELEGRAM.match(url)
        else _telegram_channel(url, position, telegram)
        for position, url in enumerate(urls, start=1)
    )


def _telegram_channel(url: str, position: int, telegram: Telegram) -> TelegramChannel:
    address = url.strip().split("://", 1)[1].split("?", 1)[0]
    first, *rest = [unquote(part) for part in address.split("/")]
    token = _TOKEN.fullmatch(first)
    named = [part for part in rest if part]
    if token is None or not all(map(_CHAT.fullmatch, named)):
        raise BadSetting(
            f"The notification address number {position} (tgram://…) cannot be used: it is written "
            "tgram://BOT_TOKEN/CHAT, where CHAT is a number (a person's own number for a private "
            "chat with the bot)."
        )
    chats = [int(part) for part in named] or telegram.ids
    if not chats:
        raise BadSetting(
            f"The notification address number {position} (tgram://…) names no chat, and no "
            "approver has a Telegram number: add the chat, as in tgram://BOT_TOKEN/CHAT, or give "
            "an approver a number."
        )
    api = BotApi(token[1], telegram.api_url)
    return TelegramChannel(api, chats, telegram.answering, private_only=not telegram.groups)
