"""Every request that we make fits Meta's shapes, and so does whatever the fake says to us."""

from __future__ import annotations

import json

import pytest

from bot.domain.delivery import Sent
from bot.domain.message import Inbound
from bot.domain.reply import Button, FileOut, PartBody, Reply
from channels.whatsapp_cloud.envelope import parse
from tests.channels.whatsapp.kit import ref
from tests.channels.whatsapp_cloud.kit import line, to
from tests.fakes.faults import Answer
from tests.fakes.meta.checks import description, shape_problems
from tests.fakes.meta.server import NUMBER

if description() is None:
    pytest.skip("the shapes of the Cloud API are not here", allow_module_level=True)

FILES = [
    FileOut("photo", url="https://files.example/cat.jpg", caption="A cat"),
    FileOut("document", url="https://files.example/cat.pdf", name="cat.pdf", caption="Of a cat"),
    FileOut("audio", url="https://files.example/cat.mp3"),
    FileOut("video", url="https://files.example/cat.mp4", caption="x" * 2000),
]


def choices(count: int, length: int = 8) -> tuple[Button, ...]:
    return tuple(Button(f"No. {n}".ljust(length, "x"), f"choice-{n}") for n in range(count))


REPLIES = {
    "text": Reply("**hello** _there_ https://example.org"),
    "three buttons": Reply("Which?", buttons=choices(3)),
    "long labels": Reply("Which?", buttons=choices(3, 40)),
    "ten rows": Reply("Which?", buttons=choices(10)),
    "many choices": Reply("Which?", buttons=choices(14)),
    "long text over a choice": Reply("word " * 900, buttons=choices(3)),
    "same labels": Reply("Which?", buttons=(Button("Yes", "a"), Button("Yes", "b"))),
    **{f"{file.kind} by link": Reply(files=(file,)) for file in FILES},
    "files and words": Reply("Here", files=tuple(FILES)),
    "odd": Reply("👨‍👩‍👧 " * 900, buttons=choices(2)),
}


@pytest.mark.parametrize("name", REPLIES)
@pytest.mark.parametrize("address", ["+15550100181", "US.13491208655302741918"])
async def test_whatever_a_reply_has_fits_what_meta_takes(name: str, address: str) -> None:
    async with line() as at:
        parts = list(at.channel.compose(REPLIES[name], to(address)))
        assert parts
        for number, part in enumerate(parts, 1):
            outcome = await at.channel.send(to(address), part, ref(number))
            assert isinstance(outcome, Sent), outcome
        assert at.fake.violations == []
        assert len(at.fake.messages(address)) == len(parts)
        for call in at.fake.calls_of("send"):
            assert call.status == 200, call.params


async def test_a_template_fits() -> None:
    async with line(meta_template_name="again", meta_template_parameters='["{reply}"]') as at:
        template = at.channel.outside_window("hello\n\nthere")
        assert isinstance(template, PartBody)
        assert isinstance(await at.channel.send(to(), template, ref()), Sent)
        assert at.fake.violations == []
        assert "hello" in at.fake.texts()[0]


async def test_marks_and_files_fit_as_well() -> None:
    async with line() as at:
        media = at.fake.put_media(b"jpeg", "image/jpeg")
        told = {"id": media.id, "mime_type": media.mime, "sha256": media.sha256_base64}
        wrote = await at.fake.person_writes(kind="image", content=told)
        [event] = parse(wrote.body, [NUMBER])[0].events
        assert isinstance(event, Inbound)
        await at.channel.typing(to(reply_to=event.provider_id))
        assert at.fake.typing == [event.provider_id]
        assert await at.channel.fetch(event.attachments[0]) == b"jpeg"
        answer = at.fake.calls_of("media")[0].answer
        assert isinstance(answer, Answer)
        assert shape_problems("media_info", json.loads(answer.body)) == []
        assert at.fake.violations == []


async def test_words_that_are_too_many_go_as_a_file_that_is_uploaded() -> None:
    async with line() as at:
        file = FileOut("document", content="word " * 100, name="words.txt")
        [part] = at.channel.compose(Reply(files=(file,)), to())
        assert isinstance(await at.channel.send(to(), part, ref()), Sent)
        [message] = at.fake.messages()
        uploaded = at.fake.media_host.all[message.body["document"]["id"]]
        assert uploaded.data == file.content.encode()
        assert at.fake.violations == []
