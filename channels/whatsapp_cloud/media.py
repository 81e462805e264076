"""A file's bytes from Meta.

The message names the file by an id; its address, asked for by that, lives for five minutes. It is
on another host than the API, and wants our token: that goes to Meta's hosts and nowhere else.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Awaitable, Callable
from functools import partial

import httpx

from bot.domain.errors import AttachmentUnavailable
from channels.http import CallFailed, ErrorAnswer, bounded, too_large
from channels.whatsapp_cloud.api import GraphApi
from channels.whatsapp_common.media import NotYet, failure_of, patiently

LARGEST = 100 * 1024 * 1024
"""Bytes; WhatsApp's own limit for documents."""
TIME_LIMIT = 120.0
_HOSTS = ("facebook.com", "fbcdn.net", "fbsbx.com", "whatsapp.net")


def trusted(url: httpx.URL, base: str) -> bool:
    """Tell whether our token may go to this address: Meta's, or that of a stand-in for it."""
    stand_in = httpx.URL(base)
    if url.userinfo:
        return False
    # As it stands there: reading a name of other letters can fail.
    named = url.raw_host.decode("ascii")
    if named == stand_in.raw_host.decode("ascii"):
        return url.scheme == stand_in.scheme
    metas = any(named == host or named.endswith(f".{host}") for host in _HOSTS)
    return metas and url.scheme == "https" and url.port is None


async def fetch(
    ref: str, base: str, api: GraphApi, sleep: Callable[[float], Awaitable[None]]
) -> bytes:
    """The bytes of a file that `content.py` named so, by the API at `base`. Raises
    AttachmentUnavailable."""
    media, _, digest = ref.partition(" ")
    return await patiently(partial(_once, media, digest, base, api), sleep)


async def _once(media: str, digest: str, base: str, api: GraphApi) -> bytes:
    try:
        file = await api.media(media)
        if file.size is not None and file.size > LARGEST:
            raise too_large(LARGEST)
        content = await _bytes_at(file.url, base, api)
    except ErrorAnswer as error:
        raise failure_of(error.status, "Meta", error) from None
    except CallFailed as error:
        raise NotYet(str(error)) from None
    if not all(_is_of(content, named) for named in (digest, file.sha256) if named):
        raise NotYet("it came broken")
    return content


async def _bytes_at(address: str, base: str, api: GraphApi) -> bytes:
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        raise AttachmentUnavailable("the file has no usable address") from None
    if not trusted(url, base):
        raise AttachmentUnavailable("the file is not at an address of Meta's")
    request = httpx.Request("GET", url, headers=api.authorization)
    async with api.exchange(request, TIME_LIMIT) as answer:
        if answer.status_code != httpx.codes.OK:
            raise failure_of(answer.status_code, "Meta", answer.status_code)
        return await bounded(answer, LARGEST)


def _is_of(content: bytes, digest: str) -> bool:
    """Tell whether a file has this SHA-256, in hex digits or Base64."""
    ours = hashlib.sha256(content).digest()
    return digest.lower() == ours.hex() or digest == base64.b64encode(ours).decode()
