"""The door of the operator's page: the access of a request, and the headers of every answer.

To a request that may not come in, the page does not exist: if it is for this machine alone, any
other machine gets the same 404 for each of its paths as for a path that was never there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from bot.domain.decisions.network import Network, from_here, network_name

PATH = "/operator"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_USUAL_PORTS = {"http": ":80", "https": ":443"}
_PASSED_ON = ("forwarded", "x-real-ip", "x-forwarded-host", "via")
"""Headers of proxies. They show that the request was passed on for somebody else, and are not
trusted to say for whom."""
SECURITY: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not "no-referrer": browsers then send the Origin of a form as null.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=()",
}
"""The headers of every answer."""


@dataclass(frozen=True, slots=True)
class Access:
    """The way by which a request came. `root` is the path prefix under which a browser reaches our
    pages, `origin` their origin, and `network` the client's address as far as it is known.
    `shared`: the request came through a proxy that is not trusted, so others have the same
    address."""

    root: str
    origin: str
    network: str
    shared: bool = False

    @property
    def secure(self) -> bool:
        """Tell whether the browser reaches us over TLS."""
        return self.origin.startswith("https://")


@dataclass(frozen=True, slots=True)
class Door:
    """The rules of access. `public_url` may be empty. `open_`: other machines may come in too."""

    public_url: str
    open_: bool
    proxies: Sequence[Network]

    def access(self, scope: Scope) -> Access | None:
        """The way by which a request came; None if the page does not exist for it."""
        headers = Headers(scope=scope)
        host = headers.get("host", "").casefold()
        peer = (scope.get("client") or ("",))[0]
        forwarded = _entries(headers)
        passed_on = any(name in headers for name in _PASSED_ON)
        public = urlsplit(self.public_url)
        usual = _USUAL_PORTS.get(public.scheme, "")
        named = host.removesuffix(usual)
        if self.open_ and named and named == public.netloc.casefold().removesuffix(usual):
            host = named  # as browsers write an origin: without the usual port
            origin, root = f"{public.scheme}://{host}", public.path
        else:
            here = (
                from_here(peer, forwarded)
                and not passed_on
                # nginx in its default configuration adds no such header, and sets Host to our own
                # address; but it speaks HTTP/1.0, which no browser has done for long.
                and scope.get("http_version") != "1.0"
            )
            by_tls = self.open_ and public.scheme == "https"
            # Another site could point its own name at this machine (DNS rebinding). And where
            # others come over TLS, a password sent to any other name of ours would go without it.
            if (not self.open_ or by_tls) and _hostname(host) not in _LOOPBACK:
                return None
            if not self.open_ and not here:
                return None
            asked = scope.get("raw_path", b"").decode("latin-1")
            prefixed = bool(public.path) and asked.startswith(public.path + PATH)
            origin, root = f"{scope['scheme']}://{host}", public.path if prefixed else ""
        network = network_name(peer, forwarded, self.proxies)
        shared = network == network_name(peer, (), ()) and (bool(forwarded) or passed_on)
        return Access(root, origin, network, shared)


def is_ours(access: Access, headers: Headers) -> bool:
    """Tell whether a page of ours sent a form, by headers that the browser sets and no page can
    change."""
    origin = headers.get("origin")
    if origin is not None:
        return origin.casefold() == access.origin
    return headers.get("sec-fetch-site") == "same-origin"


def _hostname(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _entries(headers: Headers) -> list[str]:
    return [
        entry
        for line in headers.getlist("x-forwarded-for")
        for entry in line.split(",")
        if entry.strip()
    ]
