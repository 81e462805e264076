"""Files come from Twilio, and our credentials go nowhere else."""

from __future__ import annotations

import httpx
import pytest

from bot.domain.errors import AttachmentUnavailable
from bot.domain.message import Attachment
from channels.http import bounded
from channels.whatsapp import media
from channels.whatsapp.media import Trust, trust
from tests.channels.whatsapp.kit import Line, line, settings_with
from tests.fakes.faults import Answer, Fault
from tests.fakes.twilio import faults
from tests.fakes.twilio.server import ACCOUNT

HOME = f"https://api.twilio.com/2010-04-01/Accounts/{ACCOUNT}"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (f"{HOME}/Messages/MM1/Media/ME1", Trust.CREDENTIALS),
        (f"{HOME.replace('https', 'http')}/Messages/MM1/Media/ME1", Trust.REFUSED),
        (f"{HOME}/../AC2/Media/ME1", Trust.NOTHING),
        (f"{HOME}/%2e%2e/AC2/Media/ME1", Trust.REFUSED),
        ("https://api.twilio.com/2010-04-01/Accounts/AC2/Media/ME1", Trust.NOTHING),
        (f"https://api.twilio.com:8443/2010-04-01/Accounts/{ACCOUNT}/x", Trust.REFUSED),
        (f"https://api.twilio.com.evil.example/2010-04-01/Accounts/{ACCOUNT}/x", Trust.REFUSED),
        (f"https://api.twilio.com@evil.example/2010-04-01/Accounts/{ACCOUNT}/x", Trust.REFUSED),
        (f"https://user:word@api.twilio.com/2010-04-01/Accounts/{ACCOUNT}/x", Trust.REFUSED),
        ("https://mms.twiliocdn.com/AC1/abc", Trust.NOTHING),
        ("https://media.twiliocdn.com/AC1/abc?Expires=1", Trust.NOTHING),
        ("http://mms.twiliocdn.com/AC1/abc", Trust.REFUSED),
        ("https://twiliocdn.com.evil.example/x", Trust.REFUSED),
        ("https://eviltwiliocdn.com/x", Trust.REFUSED),
        ("https://s3-external-1.amazonaws.com/media.twiliocdn.com/AC1/x", Trust.NOTHING),
        ("https://s3-external-1.amazonaws.com/another/AC1/x", Trust.REFUSED),
        ("https://169.254.169.254/latest/meta-data", Trust.REFUSED),
        ("http://127.0.0.1:8080/readyz", Trust.REFUSED),
        ("file:///etc/passwd", Trust.REFUSED),
        ("https://xn--a/", Trust.REFUSED),
        ("https://xn--/", Trust.REFUSED),
        ("", Trust.REFUSED),
    ],
)
def test_only_our_own_media_at_twilio_is_given_our_credentials(url: str, expected: Trust) -> None:
    assert trust(httpx.URL(url), settings_with()) is expected


async def photo(at: Line, data: bytes = b"jpeg") -> Attachment:
    sent = await at.fake.inbound("", media=[("image/jpeg", data)], webhook=False)
    return Attachment("photo", dict(sent.form)["MediaUrl0"], "image/jpeg")


def url_of(sent: Attachment, path: str) -> Attachment:
    return Attachment(sent.kind, path, sent.mime)


async def test_a_file_is_fetched_behind_the_redirect_without_our_credentials() -> None:
    async with line() as at:
        assert await at.channel.fetch(await photo(at)) == b"jpeg"
        assert at.fake.violations == []


async def test_a_file_that_is_not_there_yet_is_waited_for() -> None:
    async with line() as at:
        at.fake.media_host.lag = 2
        assert await at.channel.fetch(await photo(at)) == b"jpeg"
        assert at.clock.slept == [1.0, 3.0]


async def test_a_file_that_never_comes_is_said_to_be_unavailable() -> None:
    async with line() as at:
        at.fake.media_host.lag = 99
        with pytest.raises(AttachmentUnavailable, match="Twilio does not have it"):
            await at.channel.fetch(await photo(at))
        assert len(at.fake.calls_of("download")) == 3


async def test_a_passing_failure_is_tried_again_and_a_refusal_is_not() -> None:
    async with line() as at:
        file = await photo(at)
        at.fake.fail("download", faults.server_error())
        at.fake.fail("download", faults.drop_before_storing())
        assert await at.channel.fetch(file) == b"jpeg"
        at.fake.fail("download", faults.unauthorized())
        with pytest.raises(AttachmentUnavailable, match="401"):
            await at.channel.fetch(file)


async def test_a_file_larger_than_whatsapp_allows_is_not_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(media, "LARGEST", 1000)
    async with line() as at:
        assert len(await at.channel.fetch(await photo(at, b"x" * 1000))) == 1000
        with pytest.raises(AttachmentUnavailable, match="larger"):
            await at.channel.fetch(await photo(at, b"x" * 1001))


async def test_a_size_that_is_not_announced_is_counted() -> None:
    async def chunks() -> object:
        for _ in range(11):
            yield b"x" * 100

    with pytest.raises(AttachmentUnavailable, match="larger"):
        await bounded(httpx.Response(200, content=chunks()), 1000)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "location",
    ["http://169.254.169.254/latest", "https://evil.example/x", "file:///etc/passwd", "http://["],
)
async def test_a_redirect_to_somewhere_else_is_not_followed(location: str) -> None:
    async with line() as at:
        file = await photo(at)
        moved = Answer(302, b"", headers=(("Location", location),))
        at.fake.fail("download", Fault("moved", stores=False, answer=moved))
        with pytest.raises(AttachmentUnavailable):
            await at.channel.fetch(file)


async def test_redirects_in_a_circle_end() -> None:
    async with line() as at:
        file = await photo(at)
        moved = Answer(302, b"", headers=(("Location", file.ref),))
        circle = Fault("circle", stores=False, answer=moved)
        at.fake.fail("download", circle, times=None)
        with pytest.raises(AttachmentUnavailable, match="circle"):
            await at.channel.fetch(file)


@pytest.mark.parametrize("ref", ["", "http://[", "not a url", "https://evil.example/x", "\x00"])
async def test_a_forged_address_is_refused_without_a_call(ref: str) -> None:
    async with line() as at:
        with pytest.raises(AttachmentUnavailable):
            await at.channel.fetch(Attachment("photo", ref))
        assert at.fake.calls == []


@pytest.mark.parametrize("told", ["\u00b2", "-1", "abc", "9" * 5_000])
async def test_a_length_that_is_no_number_does_not_matter_until_it_is_too_large(told: str) -> None:
    answer = httpx.Response(
        200, headers=[(b"content-length", told.encode("latin-1"))], content=b"x"
    )
    if told.isascii() and told.isdigit():
        with pytest.raises(AttachmentUnavailable):
            await bounded(answer, 10)
    else:
        assert await bounded(answer, 10) == b"x"
