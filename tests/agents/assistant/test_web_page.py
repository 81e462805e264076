"""Reading pages: bounded, and never from inside our own network."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence

import pytest

from bot.agents.assistant.page_words import words
from bot.agents.assistant.web_page import (
    MAX_BYTES,
    MAX_CHARACTERS,
    REDIRECTS,
    PageUnreadable,
    WebReader,
    is_public_address,
)
from tests.agents.http.server import Asked, FakeAgentServer


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fd00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::a00:1",
        "2002:7f00:1::",
        "2002:a00:1::",
        "not an address",
    ],
)
def test_what_is_not_the_public_internet(address: str) -> None:
    assert not is_public_address(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700:4700::1111", "::ffff:8.8.8.8"])
def test_what_is(address: str) -> None:
    assert is_public_address(address)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://127.0.0.1/", "no public address"),
        ("http://localhost/", "no public address"),
        ("http://2130706433/", "no public address|no such host"),
        ("http://0x7f.1/", "no public address|no such host"),
        ("http://[::1]/", "no public address"),
        ("http://[::ffff:169.254.169.254]/latest/meta-data", "no public address"),
        ("ftp://example.com/", "only http"),
        ("file:///etc/passwd", "only http"),
        ("//example.com", "only http"),
        ("http://user:password@example.com/", "with a password"),
        ("http://", "only http"),
        ("not a url", "only http"),
        ("http://\x00/", "InvalidURL"),
    ],
)
async def test_what_is_never_fetched(url: str, said: str) -> None:
    with pytest.raises(PageUnreadable, match=said):
        await WebReader().read(url)


class Site:
    """A server of ours under a public name, and what it was asked."""

    def __init__(self, server: FakeAgentServer) -> None:
        self.server = server
        self.port = int(server.url.rpartition(":")[2].partition("/")[0])
        self.names = {"site.test": ["127.0.0.1"], "inside.test": ["10.0.0.1"]}
        self.resolved: list[str] = []

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.resolved.append(host)
        return self.names.get(host, [])

    @property
    def reader(self) -> WebReader:
        return WebReader(self.resolve, lambda address: address == "127.0.0.1")

    def url(self, path: str = "/") -> str:
        return f"http://site.test:{self.port}{path}"


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with FakeAgentServer() as server:
        yield Site(server)


def page(
    body: bytes, kind: str = "text/html; charset=utf-8", status: int = 200, **more: str
) -> bytes:
    lines = [f"HTTP/1.1 {status} OK", f"content-type: {kind}", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in more.items()]
    return "\r\n".join([*lines, "connection: close", "", ""]).encode() + body


async def test_a_page_is_read_as_its_words(site: Site) -> None:
    html = "<head><title>T</title><style>p{}</style></head><p>Grüße&amp;co</p><script>x()</script>"
    site.server.behaviour = page(html.encode())
    assert await site.reader.read(site.url()) == "Grüße&co"
    (asked,) = site.server.asked
    assert asked.headers["host"] == f"site.test:{site.port}"
    assert site.resolved == ["site.test"]


async def test_a_redirect_inside_is_not_followed(site: Site) -> None:
    site.server.behaviour = page(b"", status=302, location="http://inside.test/secret")
    with pytest.raises(PageUnreadable, match="no public address"):
        await site.reader.read(site.url())
    assert len(site.server.asked) == 1


async def test_a_name_with_one_inside_address_is_not_asked(site: Site) -> None:
    site.names["site.test"] = ["127.0.0.1", "10.0.0.1"]
    with pytest.raises(PageUnreadable, match="no public address"):
        await site.reader.read(site.url())
    assert site.server.asked == []


async def test_redirects_end(site: Site) -> None:
    site.server.behaviour = page(b"", status=302, location="/again")
    with pytest.raises(PageUnreadable, match="redirects more than"):
        await site.reader.read(site.url())
    assert len(site.server.asked) == REDIRECTS + 1


async def test_a_redirect_on_the_same_site_is_followed(site: Site) -> None:
    def behave(asked: Asked) -> bytes:
        if asked.path == "/":
            return page(b"", status=301, location="/there")
        return page(b"here", "text/plain")

    site.server.behaviour = behave
    assert await site.reader.read(site.url()) == "here"


async def test_long_pages_are_cut(site: Site) -> None:
    site.server.behaviour = page(b"x" * 3_000_000, "text/plain")
    text = await site.reader.read(site.url())
    assert text == "x" * MAX_CHARACTERS + "\n[cut here]"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (page(b"\x89PNG", "image/png"), "no text but image/png"),
        (page(b"gone", status=404), "it answers 404"),
        (page(b"zip", content_encoding="gzip"), "compressed"),
    ],
)
async def test_what_is_no_page_is_said(site: Site, answer: bytes, said: str) -> None:
    site.server.behaviour = answer
    with pytest.raises(PageUnreadable, match=said):
        await site.reader.read(site.url())


async def test_a_charset_that_there_is_not_is_no_error(site: Site) -> None:
    site.server.behaviour = page("é".encode(), "text/plain; charset=hex")
    assert await site.reader.read(site.url()) == "é"


@pytest.mark.parametrize("url", ["https://xn--a/", "https://xn--/", "http://[::1", "https://a:b/"])
async def test_a_name_that_nobody_can_read_is_said(site: Site, url: str) -> None:
    with pytest.raises(PageUnreadable):
        await site.reader.read(url)
    site.server.behaviour = page(b"", status=302, location=url)
    with pytest.raises(PageUnreadable):
        await site.reader.read(site.url())


@pytest.mark.parametrize(
    ("html", "read"),
    [
        ("a<![CDA[b]>c", "ac"),
        ("1 < 2 &lt; 3<", "1 < 2 < 3<"),
        ("a<!-- <p>b --> c<!---->d", "a cd"),
        ("<a title=\"a>b\" x='>'>c</a>", "c"),
        ("a<script>if (1<2) '</p>'</SCRIPT >b<style>p{</style>c", "abc"),
        ("<head><title>t<body>a", "a"),
        ("<p>a</p>b<br/>c", "a\nb\nc"),
        ("a<script>b", "a"),
        ("a<b class='c", "a"),
        ("a&#xd800;&#0;b", "a\ufffd\ufffdb"),
    ],
)
def test_words_are_told_from_marks(html: str, read: str) -> None:
    assert words(html) == read


@pytest.mark.parametrize(
    "piece", ["<", "<a ", "<!--", "<!", "<![CDATA[", "</", "&#", '<a x="', '<a x=">', "<script>"]
)
def test_marks_that_never_end_take_no_longer_than_words(piece: str) -> None:
    began = time.process_time()
    words(piece * (MAX_BYTES // len(piece)))
    # Looked through again from each mark, they took minutes.
    assert time.process_time() - began < 20


async def test_an_encoding_that_takes_minutes_is_not_taken(site: Site) -> None:
    body = b"-" + b"a" * 200_000
    site.server.behaviour = page(body, "text/plain; charset=punycode")
    assert (await site.reader.read(site.url())).startswith("-aaaa")
