"""Effects in the outside world, done right: an order placed once, whatever crashes.

The turn may be cut off anywhere and begun again by another process. What must not happen
twice goes through `turn.step`, which keeps the result and returns it the next time:

* The shop honours an Idempotency-Key, so asking it twice is one order: the step is safe to
  repeat, with a key that is the same in every attempt.
* The courier honours nothing. A call that was cut off may have happened, and only a look at
  the courier's own list can tell: the step is not safe to repeat, and says so by raising.
"""

from collections.abc import Callable, Coroutine
from typing import Any

import httpx

from bot.api import GiveUp, Retry, StepInterrupted, Turn

Answer = Callable[[Turn], Coroutine[Any, Any, str]]


def shopping(base_url: str) -> Answer:
    """An agent that orders what it is told from the shop at this address."""

    async def reply(turn: Turn) -> str:
        item = turn.text.strip()
        async with httpx.AsyncClient(base_url=base_url, timeout=20) as web:
            order = await turn.step(
                "order",
                lambda: place_order(web, item, turn.idempotency_key("order")),
                safe_to_repeat=True,
            )
            try:
                courier = await turn.step("courier", lambda: call_courier(web, order))
            except StepInterrupted:
                courier = await find_courier(web, order)
        if courier is None:
            return f"I ordered {item} (number {order}). I'm not sure that a courier is coming."
        return f"I ordered {item} (number {order}). {courier} brings it."

    return reply


async def place_order(web: httpx.AsyncClient, item: str, key: str) -> str:
    """The shop's number of the order. The same key gives the same order."""
    answer = await web.post("/orders", json={"item": item}, headers={"Idempotency-Key": key})
    if answer.status_code == 503:
        raise Retry(after=30)
    if answer.status_code == 409:
        raise GiveUp(f"The shop has no {item}.")
    return str(answer.raise_for_status().json()["number"])


async def call_courier(web: httpx.AsyncClient, order: str) -> str:
    """The name of the courier who was called. Calling twice brings two couriers."""
    answer = await web.post("/couriers", json={"order": order})
    return str(answer.raise_for_status().json()["name"])


async def find_courier(web: httpx.AsyncClient, order: str) -> str | None:
    """Tell whether a courier is on the way already."""
    answer = await web.get("/couriers", params={"order": order})
    found = answer.raise_for_status().json()
    return str(found[0]["name"]) if found else None


reply = shopping("http://127.0.0.1:9200")
