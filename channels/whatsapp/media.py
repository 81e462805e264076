"""A file's bytes from Twilio.

Our credentials go to our own account's media at Twilio and nowhere else: a forged webhook
may name any URL, and the true one redirects to a content network.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import Enum, auto
from functools import partial

import httpx

from bot.domain.errors import AttachmentUnavailable
from channels.http import CallFailed, bounded
from channels.whatsapp.api import TwilioHttp, basic
from channels.whatsapp.settings import TWILIO_API, TwilioSettings
from channels.whatsapp_common.media import NotYet, failure_of, patiently

LARGEST = 16 * 1024 * 1024
"""Bytes; WhatsApp's own limit."""
TIME_LIMIT = 60.0
_MOST_REDIRECTS = 3
_CDN = "twiliocdn.com"
_BUCKET = ("s3-external-1.amazonaws.com", "/media.twiliocdn.com/")


class Trust(Enum):
    """The trust that a media URL deserves."""

    CREDENTIALS = auto()
    NOTHING = auto()
    """It may be fetched, without credentials."""
    REFUSED = auto()


def trust(url: httpx.URL, settings: TwilioSettings) -> Trust:
    """The trust in a media URL. A stand-in for Twilio may keep its files on its own host."""
    base = httpx.URL(settings.twilio_api_url)
    path = url.raw_path.partition(b"?")[0].lower()
    if b"/../" in path or b"%2e" in path or b"\\" in path or url.userinfo:
        return Trust.REFUSED
    # As it stands there: reading a name of other letters can fail.
    host, theirs = url.raw_host.decode("ascii"), base.raw_host.decode("ascii")
    if (url.scheme, host, url.port) == (base.scheme, theirs, base.port):
        ours = f"{base.path.rstrip('/')}/2010-04-01/Accounts/{settings.twilio_account_sid}/"
        return Trust.CREDENTIALS if url.path.startswith(ours) else Trust.NOTHING
    if host == theirs and settings.twilio_api_url != TWILIO_API:
        return Trust.NOTHING
    bucket = host == _BUCKET[0] and url.path.startswith(_BUCKET[1])
    ours_at_the_cdn = host == _CDN or host.endswith("." + _CDN) or bucket
    https = url.scheme == "https" and url.port is None
    return Trust.NOTHING if https and ours_at_the_cdn else Trust.REFUSED


async def fetch(
    ref: str,
    settings: TwilioSettings,
    http: TwilioHttp,
    sleep: Callable[[float], Awaitable[None]],
) -> bytes:
    """The bytes behind a media URL, at most 16 MB. Raises AttachmentUnavailable."""
    try:
        url = httpx.URL(ref)
    except httpx.InvalidURL:
        raise AttachmentUnavailable("the file has no usable address") from None
    return await patiently(partial(_follow, url, settings, http), sleep)


async def _follow(url: httpx.URL, settings: TwilioSettings, http: TwilioHttp) -> bytes:
    for _ in range(_MOST_REDIRECTS + 1):
        trusted = trust(url, settings)
        if trusted is Trust.REFUSED:
            raise AttachmentUnavailable("the file is not at an address of Twilio's")
        credentials = trusted is Trust.CREDENTIALS
        sent = (
            {"Authorization": basic(settings.twilio_account_sid, settings.twilio_auth_token)}
            if credentials
            else {}
        )
        got = await _get(httpx.Request("GET", url, headers=sent), http)
        if isinstance(got, bytes):
            return got
        url = url.join(got)
    raise AttachmentUnavailable("the file's address leads in a circle")


async def _get(request: httpx.Request, http: TwilioHttp) -> bytes | httpx.URL:
    """The body, or where else to look."""
    try:
        async with http.exchange(request, TIME_LIMIT) as answer:
            location = answer.headers.get("location", "")
            if answer.status_code in (301, 302, 303, 307, 308) and location:
                return httpx.URL(location)
            if answer.status_code != httpx.codes.OK:
                raise failure_of(answer.status_code, "Twilio", answer.status_code)
            return await bounded(answer, LARGEST)
    except CallFailed as error:
        raise NotYet(str(error)) from None
    except httpx.InvalidURL:
        raise AttachmentUnavailable("the file's address leads nowhere") from None
