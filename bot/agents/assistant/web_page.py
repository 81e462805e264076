"""Reading a public page for a model: bounded, and never from inside our own network.

A host name is resolved once, all of its addresses must be public, and the connection goes to an
address that was checked, so that the name can't point elsewhere between check and use. The same
holds for each redirect. No proxies, cookies or credentials are used.
"""

from __future__ import annotations

import asyncio
import codecs
import ipaddress
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property

import httpx

from bot.agents.assistant.page_words import words
from bot.domain.message import clean

MAX_BYTES = 2_000_000
MAX_CHARACTERS = 20_000
SECONDS = 20.0
REDIRECTS = 5
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_TEXTUAL = re.compile(r"text/.*|application/(json|xml|.*\+json|.*\+xml|javascript)")
_CHARSET = re.compile("utf-(8|16|32)|iso8859|iso2022|cp[0-9]|koi8|gb|big5|shift_jis|euc|mac-|ascii")

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class PageUnreadable(Exception):
    """A page can't be read; the message says why, in words for the model."""


async def addresses(host: str, port: int) -> Sequence[str]:
    """Every address of a host, which may be given as an address itself. Raises PageUnreadable."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise PageUnreadable("there is no such host") from None
    return [str(entry[4][0]).partition("%")[0] for entry in found]


def is_public_address(address: str) -> bool:
    """Tell whether an address belongs to the public Internet, looking through the forms of IPv6
    that carry an IPv4 address (mapped, 6to4, Teredo, NAT64)."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo and ip.teredo[1])
        if ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public_address(str(inner))
    return ip.is_global and not (ip.is_multicast or ip.is_reserved or ip.is_unspecified)


class WebReader:
    """Reads pages over HTTP. Only tests set `resolve` and `is_public`."""

    def __init__(
        self, resolve: Resolve = addresses, is_public: Callable[[str], bool] = is_public_address
    ) -> None:
        self._resolve = resolve
        self._is_public = is_public

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return httpx.create_ssl_context(trust_env=False)

    async def read(self, url: str) -> str:
        """The page's text, cut to MAX_CHARACTERS. Raises PageUnreadable."""
        try:
            async with asyncio.timeout(SECONDS):
                return await self._read(url)
        except TimeoutError:
            raise PageUnreadable(f"it took longer than {SECONDS:.0f} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            raise PageUnreadable(type(error).__name__) from None

    async def _read(self, url: str) -> str:
        at = httpx.URL(url.strip())
        for _ in range(REDIRECTS + 1):
            address = await self._locate(at)
            async with httpx.AsyncClient(trust_env=False, verify=self._tls) as client:
                response = await client.send(_request(at, address), stream=True)
                try:
                    if not response.has_redirect_location:
                        return await _page(response)
                    at = at.join(response.headers["location"])
                finally:
                    await response.aclose()
        raise PageUnreadable(f"it redirects more than {REDIRECTS} times")

    async def _locate(self, url: httpx.URL) -> str:
        """The public address to connect to. Raises PageUnreadable."""
        if url.scheme not in ("http", "https") or not url.raw_host:
            raise PageUnreadable("only http:// and https:// addresses are read")
        if url.userinfo:
            raise PageUnreadable("an address with a password is not read")
        port = url.port or (443 if url.scheme == "https" else 80)
        found = await self._resolve(url.raw_host.decode("ascii"), port)
        if not found or not all(self._is_public(address) for address in found):
            raise PageUnreadable("it is no public address")
        # IPv4 first: not every machine has a route to IPv6.
        return min(found, key=lambda address: ":" in address)


def _request(url: httpx.URL, address: str) -> httpx.Request:
    """A request to the checked address, with the URL's host in its header and for TLS."""
    host = url.raw_host.decode("ascii")
    named = f"[{host}]" if ":" in host else host
    return httpx.Request(
        "GET",
        url.copy_with(host=address),
        headers={
            "host": named if url.port is None else f"{named}:{url.port}",
            "user-agent": "answerback",
            "accept": "text/html, text/plain, application/json;q=0.9, */*;q=0.1",
            "accept-encoding": "identity",
        },
        extensions={"sni_hostname": host, "timeout": httpx.Timeout(SECONDS).as_dict()},
    )


async def _page(response: httpx.Response) -> str:
    if response.status_code != 200:
        raise PageUnreadable(f"it answers {response.status_code}")
    kind = response.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
    if not _TEXTUAL.fullmatch(kind):
        raise PageUnreadable(f"it is no text but {kind[:60]}")
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise PageUnreadable("it is compressed, which was not asked for")
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) >= MAX_BYTES:
            break
    body = body[:MAX_BYTES]
    text = clean(body.decode(_charset(response), errors="replace"))
    if kind in ("text/html", "application/xhtml+xml"):
        text = await asyncio.to_thread(words, text)
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}\n[cut here]"


def _charset(response: httpx.Response) -> str:
    """The encoding that a page declares, if it is one that pages use, else UTF-8. Of the other
    codecs that Python knows, some take minutes for two megabytes, and some do not give text."""
    try:
        name = codecs.lookup(response.charset_encoding or "utf-8").name
    except (LookupError, ValueError):
        return "utf-8"
    return name if _CHARSET.match(name) else "utf-8"
