"""A line that a person typed in the terminal, as it goes through intake."""

from __future__ import annotations

from bot.intake.record import Arrival
from bot.wiring.process import Process
from channels.console import parse


async def typed(process: Process, line: str, number: str) -> None:
    """Record one line; `number` names it for ever. Raises DatabaseUnavailable."""
    arrival = Arrival(process.ids["console"], line, "terminal")
    await process.intake.take(arrival, (parse(line, number),))
