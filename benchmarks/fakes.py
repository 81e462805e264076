"""`python -m benchmarks.fakes`: a Bot API that refuses what is over Telegram's limits."""

from __future__ import annotations

from tests.fakes.process import main
from tests.fakes.telegram.server import FakeTelegram


def strict(port: int) -> FakeTelegram:
    """A fake whose main bot is refused with 429 when it is too fast."""
    fake = FakeTelegram(port=port)
    fake.main.rates.enforce = True
    return fake


if __name__ == "__main__":
    main(strict)
