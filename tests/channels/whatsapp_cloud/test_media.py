"""Files that people send: asked for by their ids, and the token goes to Meta's hosts alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import httpx
import pytest

from bot.domain.errors import AttachmentUnavailable
from channels.whatsapp_cloud.api import GraphApi
from channels.whatsapp_cloud.media import LARGEST, fetch, trusted
from channels.whatsapp_cloud.settings import META_API
from tests.fakes.meta.media import Media
from tests.fakes.meta.server import NUMBER, TOKEN, FakeMeta
from tests.limits import PATIENCE


@dataclass
class Line:
    """A number's API, and the waits that it took."""

    meta: FakeMeta
    api: GraphApi
    waits: list[float] = field(default_factory=list)

    async def fetch(self, ref: str) -> bytes:
        async def sleep(seconds: float) -> None:
            self.waits.append(seconds)

        return await fetch(ref, self.meta.url, self.api, sleep)

    def put(self, data: bytes = b"picture") -> Media:
        return self.meta.put_media(data, "image/jpeg")


@pytest.fixture
async def line() -> AsyncIterator[Line]:
    meta = FakeMeta()
    await meta.open()
    api = GraphApi(meta.url, "v26.0", NUMBER, TOKEN, PATIENCE)
    try:
        yield Line(meta, api)
    finally:
        await api.close()
        await meta.close()


async def test_a_file_is_fetched_with_the_token_from_another_host_than_the_api(line: Line) -> None:
    media = line.put()
    for ref in (media.id, f"{media.id} {media.sha256_base64}", f"{media.id} {media.sha256}"):
        assert await line.fetch(ref) == b"picture"
    assert line.waits == []


async def test_a_link_that_is_not_found_is_asked_for_anew(line: Line) -> None:
    media = line.put()
    line.meta.media_host.lag = 2
    assert await line.fetch(media.id) == b"picture"
    assert len(line.waits) == 2


async def test_a_file_that_never_comes_is_told(line: Line) -> None:
    media = line.put()
    line.meta.media_host.lag = 99
    with pytest.raises(AttachmentUnavailable, match="Meta does not have it"):
        await line.fetch(media.id)
    assert len(line.meta.media_host.asked) == 3


async def test_a_file_that_is_not_what_was_named_is_not_handed_out(line: Line) -> None:
    media = line.put()
    media.lie = True
    with pytest.raises(AttachmentUnavailable, match="broken"):
        await line.fetch(media.id)
    media.lie = False
    for digest in ("0" * 64, "c2hh", "%%%", "ä"):
        with pytest.raises(AttachmentUnavailable, match="broken"):
            await line.fetch(f"{media.id} {digest}")


async def test_a_file_that_is_too_large_is_not_fetched(line: Line) -> None:
    media = line.put()
    media.size = LARGEST + 1
    with pytest.raises(AttachmentUnavailable, match="larger than 100 MB"):
        await line.fetch(media.id)
    assert line.meta.media_host.asked == []


async def test_a_file_whose_length_is_told_as_words_is_fetched(line: Line) -> None:
    media = line.put()
    media.size = str(len(media.data))
    assert await line.fetch(media.id) == b"picture"


@pytest.mark.parametrize("name", ["999", "", "../x", "7?x=1", "https://evil.example", "ä"])
async def test_an_id_that_nobody_knows_is_told(line: Line, name: str) -> None:
    with pytest.raises(AttachmentUnavailable):
        await line.fetch(name)
    assert line.meta.media_host.asked == []


@pytest.mark.parametrize(
    "url",
    [
        "https://lookaside.fbsbx.com/whatsapp_business/attachments/?mid=1",
        "https://scontent.xx.fbcdn.net/x",
        "https://graph.facebook.com/x",
        "https://mmg.whatsapp.net/x",
    ],
)
def test_the_token_goes_to_metas_hosts(url: str) -> None:
    assert trusted(httpx.URL(url), META_API)


@pytest.mark.parametrize(
    "url",
    [
        "http://lookaside.fbsbx.com/x",
        "https://lookaside.fbsbx.com:8443/x",
        "https://fbsbx.com.evil.example/x",
        "https://evilfbsbx.com/x",
        "https://user@lookaside.fbsbx.com/x",
        "https://lookaside.fbsbx.com@evil.example/x",
        "http://graph.facebook.com/x",
        "http://127.0.0.1/x",
        "file:///etc/passwd",
        "/x",
        "",
    ],
)
def test_the_token_goes_nowhere_else(url: str) -> None:
    assert not trusted(httpx.URL(url), META_API)


def test_a_stand_in_keeps_its_files_on_its_own_host() -> None:
    assert trusted(httpx.URL("http://127.0.0.1:9/x"), "http://127.0.0.1:8")
    assert not trusted(httpx.URL("http://127.0.0.2:9/x"), "http://127.0.0.1:8")
