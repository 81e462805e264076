"""Tools for the built-in assistant:

AGENT=llm LLM_MODEL=openai:gpt-5 TOOLS=examples.tools answerback chat

The docstring and the type hints are what the model sees. Each call is kept: after a crash its
result is returned instead of being fetched again. A call that was cut off is repeated only if
the tool says that this is safe; else the model is told that it may have happened.
"""

from typing import Literal

import httpx

from bot.api import safe_to_repeat

SHOP = "http://127.0.0.1:9200"


@safe_to_repeat
def opening_hours(day: Literal["weekday", "saturday", "sunday"]) -> str:
    """Tell when the shop is open. It only reads, so it is safe to repeat."""
    return {"weekday": "9 to 18", "saturday": "10 to 16", "sunday": "closed"}[day]


@safe_to_repeat
async def order(item: str, quantity: int, idempotency_key: str) -> dict[str, str]:
    """Order something from the shop. Ask the person before you do.

    Args:
        item: What to order.
        quantity: How many.
    """
    # Safe to repeat, because the shop takes the same key for the same order.
    async with httpx.AsyncClient(base_url=SHOP, timeout=20) as web:
        answer = await web.post(
            "/orders",
            json={"item": item, "quantity": quantity},
            headers={"Idempotency-Key": idempotency_key},
        )
    return {"number": str(answer.raise_for_status().json()["number"])}


async def call_courier(order_number: str) -> str:
    """Call a courier for an order. Calling twice brings two, so this is not safe to repeat."""
    async with httpx.AsyncClient(base_url=SHOP, timeout=20) as web:
        answer = await web.post("/couriers", json={"order": order_number})
    return str(answer.raise_for_status().json()["name"])
