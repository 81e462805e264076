"""A number of ours at a fake Meta, for tests of what is asked and set there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bot.settings import read, settings_of
from channels.whatsapp_cloud.account import CloudNumber
from channels.whatsapp_cloud.settings import MetaSettings
from channels.whatsapp_cloud.webhook import NumberWebhook
from tests.clocks import ShiftedClock
from tests.fakes.meta import FakeMeta
from tests.fakes.meta.server import NUMBER, SECRET, TOKEN, VERIFY_TOKEN
from tests.fakes.receiver import Receiver, Reply
from tests.world import PUBLIC

HOOK = f"{PUBLIC}/whatsapp-cloud/webhook"
ELSEWHERE = "https://other.example/hook"
_CHALLENGED = Reply(200, "1158201444", "text/plain")


@dataclass
class Line:
    """The fake, our number there, and the service that Meta reaches."""

    fake: FakeMeta
    number: CloudNumber
    webhook: NumberWebhook
    clock: ShiftedClock


@asynccontextmanager
async def number_line(secret: str = SECRET, *, reached: bool = True) -> AsyncIterator[Line]:
    """A number whose app is set up nowhere yet. `reached`: our address answers challenges."""
    clock = ShiftedClock()
    clock.stop()
    replies = (_CHALLENGED if reached else Reply(403),) * 20
    async with FakeMeta(now=clock.wall, sleep=clock.sleep) as fake, Receiver(replies) as us:
        fake.reach[PUBLIC] = us.url
        made = read(
            settings_of([MetaSettings]),
            _env_file=None,
            public_url=PUBLIC,
            meta_phone_number_id=NUMBER,
            meta_access_token=TOKEN,
            meta_app_secret=secret,
            meta_verify_token=VERIFY_TOKEN,
            meta_api_url=fake.url,
        )
        assert isinstance(made, MetaSettings)
        number = CloudNumber(made, NUMBER, TOKEN, clock)
        try:
            yield Line(fake, number, NumberWebhook(number), clock)
        finally:
            await number._api.close()
