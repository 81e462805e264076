"""A site with the chat on it, with nothing but the standard library: python site.py [PORT].

Start Answerback beside it, and open http://127.0.0.1:8100/:

WEB=true WEB_ORIGINS=http://127.0.0.1:8100 \\
WEB_IDENTITY_SECRET=change-me-change-me-change-me-32 answerback serve
"""

import base64
import hashlib
import hmac
import json
import os
import sys
import time
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

CHAT = os.environ.get("CHAT", "http://127.0.0.1:8080")
"""Answerback, as a browser reaches it."""
SECRET = os.environ.get("WEB_IDENTITY_SECRET", "change-me-change-me-change-me-32").encode()
PAGE = Path(__file__).with_name("index.html").read_text(encoding="utf-8")


def signed(claims: dict[str, object]) -> str:
    """A JWT by HS256. A site with a library for it takes that."""
    head = _packed({"alg": "HS256", "typ": "JWT"})
    body = f"{head}.{_packed(claims)}"
    return f"{body}.{_text(hmac.new(SECRET, body.encode(), hashlib.sha256).digest())}"


def _packed(value: object) -> str:
    return _text(json.dumps(value, separators=(",", ":")).encode())


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


class Site(BaseHTTPRequestHandler):
    """Its sign-in is a toy: the cookie names the visitor. Only the token is as it should be."""

    @property
    def visitor(self) -> str:
        cookie = SimpleCookie(self.headers.get("Cookie", "")).get("visitor")
        return cookie.value if cookie else ""

    def do_GET(self) -> None:
        if self.path == "/":
            self.answer(200, PAGE.replace("{chat}", CHAT), kind="text/html; charset=utf-8")
        elif self.path == "/who":
            self.answer(200, self.visitor)
        elif self.path == "/chat-token" and self.visitor:
            claims = {"sub": f"customer-{self.visitor}", "name": self.visitor}
            self.answer(200, signed({**claims, "exp": int(time.time()) + 600}))
        elif self.path == "/chat-token":
            self.answer(204, "")
        else:
            self.answer(404, "")

    def do_POST(self) -> None:
        if self.path == "/sign-in":
            self.answer(200, "Ada", cookie="visitor=Ada; HttpOnly; SameSite=Lax; Path=/")
        else:
            self.answer(200, "", cookie="visitor=; Max-Age=0; Path=/")

    def answer(self, status: int, text: str, kind: str = "text/plain", cookie: str = "") -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        if cookie:
            self.send_header("Set-Cookie", cookie)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing: a line for each request helps nobody here."""


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8100
    server = ThreadingHTTPServer(("127.0.0.1", port), Site)
    print(f"the site is at http://127.0.0.1:{server.server_port}/", flush=True)
    server.serve_forever()
