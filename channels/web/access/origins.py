"""Origins: the pages that may use the API. It keeps other sites' pages out, not programs: a
chat's content is opened by its token alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from urllib.parse import urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443}
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
METHODS = "GET, POST, DELETE"
HEADERS = "Authorization, Content-Type, Last-Event-ID"
READABLE = "Retry-After"
"""The headers that a page of another origin may send and read besides the ordinary."""
_PREFLIGHT_AGE = "7200"


class Origin(Enum):
    """The page that a request comes from."""

    OURS = "our own page, or a program"
    LISTED = "a page that WEB_ORIGINS names"
    STRANGE = "another site's page"


def bare_origin(text: str) -> str | None:
    """An origin in the one form in which browsers write it; None when it is none."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    host = parts.hostname
    if parts.scheme not in _DEFAULT_PORTS or not host or parts.username is not None:
        return None
    if parts.path not in ("", "/") or parts.query or parts.fragment or "*" in host:
        return None
    shown = f"[{host}]" if ":" in host else host
    usual = port is None or port == _DEFAULT_PORTS[parts.scheme]
    return f"{parts.scheme}://{shown}" + ("" if usual else f":{port}")


@dataclass(frozen=True, slots=True)
class Origins:
    """The allowed origins, each in its one form; `public` is that of PUBLIC_URL, or empty. With
    `only_here` a page of ours is one of this machine, whatever name a request gives us: another
    site could have its own name lead here."""

    listed: frozenset[str]
    public: str = ""
    only_here: bool = False

    def judge(self, origin: str, scheme: str, host: str) -> Origin:
        """Compare a request's Origin with what is allowed, and with where the request went: the
        scheme as we saw it, which a proxy may have taken from https, and the Host header."""
        if not origin:
            return Origin.OURS
        own = {bare_origin(f"{scheme}://{host}"), bare_origin(f"https://{host}"), self.public}
        if origin in own - {None, ""} and self._may_be_ours(origin):
            return Origin.OURS
        return Origin.LISTED if origin in self.listed else Origin.STRANGE

    def _may_be_ours(self, origin: str) -> bool:
        return not self.only_here or urlsplit(origin).hostname in LOOPBACK

    @staticmethod
    def headers(origin: str, judged: Origin) -> Mapping[str, str]:
        """The headers that every answer has for the browser. Credentials are never allowed: there
        are none."""
        vary = {"Vary": "Origin"}
        if judged is not Origin.LISTED:
            return vary
        return vary | {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Expose-Headers": READABLE,
        }

    @classmethod
    def preflight(cls, origin: str, judged: Origin) -> Mapping[str, str]:
        """The headers that the answer to a preflight adds."""
        if judged is not Origin.LISTED:
            return cls.headers(origin, judged)
        return {
            **cls.headers(origin, judged),
            "Access-Control-Allow-Methods": METHODS,
            "Access-Control-Allow-Headers": HEADERS,
            "Access-Control-Max-Age": _PREFLIGHT_AGE,
        }
