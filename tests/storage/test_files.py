"""Files that people sent: each opens from its own chat, and goes when it is old or forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.clients.files import Files
from bot.domain.clients.desk import StoredFile
from bot.domain.errors import DatabaseUnavailable
from bot.domain.message import Address, Attachment
from storage import claims, files
from tests.storage.kit import Hand, first_message

GUEST, USER, OTHER = Address("guest:1"), Address("user:ada"), Address("guest:2")
PICTURE = StoredFile("cat.png", "image/png", b"\x89PNG\0\xff" * 1000)


@pytest.fixture(params=["database", "folder"])
def kept(request: pytest.FixtureRequest, hand: Hand, tmp_path: Path) -> Files:
    folder = tmp_path / "files" if request.param == "folder" else None
    return Files(hand.db, hand.account, folder)


async def keep(kept: Files, hand: Hand, who: Address = GUEST) -> Attachment:
    """A picture of a chat that there is."""
    hand.do(first_message, hand.account, who)
    return await kept.keep(who, PICTURE)


def on_disk(kept: Files) -> int:
    return 0 if kept.folder is None else sum(p.is_file() for p in kept.folder.rglob("*"))


async def test_a_file_is_read_from_its_chat_and_by_the_agent(kept: Files, hand: Hand) -> None:
    attachment = await keep(kept, hand)
    assert attachment == Attachment(
        "photo", attachment.ref, "image/png", "cat.png", len(PICTURE.content)
    )
    assert await kept.of_chat(GUEST, attachment.ref) == PICTURE
    assert await kept.content(attachment.ref) == PICTURE.content


async def test_a_stranger_who_knows_its_name_gets_nothing(kept: Files, hand: Hand) -> None:
    attachment = await keep(kept, hand)
    theirs = await keep(kept, hand, OTHER)
    assert theirs.ref != attachment.ref
    assert await kept.of_chat(OTHER, attachment.ref) is None
    assert await kept.of_chat(Address("guest:3"), attachment.ref) is None
    assert await Files(hand.db, hand.new_account("b"), kept.folder).content(attachment.ref) is None


async def test_the_same_file_again_is_one_file(kept: Files, hand: Hand) -> None:
    first, second = await keep(kept, hand), await keep(kept, hand)
    assert first == second
    assert hand.value("SELECT count(*) FROM files") == 1
    assert on_disk(kept) <= 1


async def test_a_guests_files_come_along_when_the_guest_signs_in(kept: Files, hand: Hand) -> None:
    attachment = await keep(kept, hand)
    hand.do(claims.claim, hand.account, GUEST, USER)
    assert await kept.of_chat(USER, attachment.ref) == PICTURE


async def test_a_file_goes_when_it_is_old(kept: Files, hand: Hand) -> None:
    hand.stop_time()
    attachment = await keep(kept, hand)
    hand.advance(3600)
    await kept.sweep(0)
    await kept.sweep(3601)
    assert await kept.content(attachment.ref) == PICTURE.content
    hand.advance(2)
    await kept.sweep(3601)
    assert await kept.of_chat(GUEST, attachment.ref) is None
    assert hand.value("SELECT count(*) FROM files") == on_disk(kept) == 0


async def test_a_file_that_is_sent_again_is_kept_for_as_long_again(kept: Files, hand: Hand) -> None:
    await keep(kept, hand)
    hand.advance(3600)
    attachment = await keep(kept, hand)
    await kept.sweep(3600)
    assert await kept.content(attachment.ref) == PICTURE.content


async def test_a_forgotten_chats_files_open_no_more_and_are_swept(kept: Files, hand: Hand) -> None:
    attachment = await keep(kept, hand)
    theirs = await keep(kept, hand, OTHER)
    chat = hand.do(first_message, hand.account, GUEST)
    hand.do(files.forget, chat)
    assert await kept.of_chat(GUEST, attachment.ref) is None
    assert await kept.content(attachment.ref) is None
    assert hand.value("SELECT count(*) FROM files WHERE name = '' AND content IS NULL") == 1
    await kept.sweep(0)
    assert hand.rows("SELECT ref FROM files") == [(theirs.ref,)]
    assert await kept.content(theirs.ref) == PICTURE.content


async def test_a_file_that_its_folder_lost_is_told_as_gone(hand: Hand, tmp_path: Path) -> None:
    kept = Files(hand.db, hand.account, tmp_path)
    attachment = await keep(kept, hand)
    (tmp_path / attachment.ref[:2] / attachment.ref).unlink()
    assert await kept.of_chat(GUEST, attachment.ref) is None
    await kept.sweep(0)


async def test_what_a_death_leaves_in_the_folder_goes_with_the_chat(
    hand: Hand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Files(hand.db, hand.account, tmp_path / "files")
    chat = hand.do(first_message, hand.account, GUEST)

    def dies(self: Path, target: Path) -> Path:
        raise Died

    monkeypatch.setattr(Path, "replace", dies)
    with pytest.raises(Died):
        await kept.keep(GUEST, PICTURE)
    assert on_disk(kept) == 1
    hand.do(files.forget, chat)
    await kept.sweep(0)
    assert on_disk(kept) == 0


class Died(BaseException):
    """The process died."""


async def test_nothing_is_in_the_folder_of_which_the_database_does_not_know(
    hand: Hand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise DatabaseUnavailable("it is away")

    kept = Files(hand.db, hand.account, tmp_path / "files")
    monkeypatch.setattr(files, "keep", away)
    with pytest.raises(DatabaseUnavailable):
        await kept.keep(GUEST, PICTURE)
    assert on_disk(kept) == 0


async def test_a_folder_that_takes_nothing_is_told_as_a_database_that_does_not(
    hand: Hand, tmp_path: Path
) -> None:
    hand.do(first_message, hand.account, GUEST)
    kept = Files(hand.db, hand.account, tmp_path / "files")
    (tmp_path / "files").write_text("no folder")
    with pytest.raises(DatabaseUnavailable, match="WEB_FILES can't be used now: Not a directory"):
        await kept.keep(GUEST, PICTURE)
    with pytest.raises(DatabaseUnavailable, match="WEB_FILES can't be used now: Not a directory"):
        await kept.of_chat(GUEST, *hand.rows("SELECT ref FROM files")[0])
