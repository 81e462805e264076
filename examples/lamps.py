"""An agent that takes orders and charges for them once: AGENT=examples.lamps:answer

`examples/test_lamps.py` kills it at every moment, and shows that it survives.
"""

from bot.api import Turn

CHARGED: dict[str, str] = {}  # A payment provider keeps these


def charge(order: str, key: str) -> int:
    """The number of the payment. The same key is the same payment, however often it is asked."""
    CHARGED.setdefault(key, order)
    return 17 + list(CHARGED).index(key)


async def answer(turn: Turn) -> str:
    key = turn.idempotency_key("charge")
    number = await turn.step("charge", lambda: charge(turn.text, key), safe_to_repeat=True)
    return f"Your order is on its way: no. {number}"
