"""A shop with one tool, for the tutorials: TOOLS=shop

It is slow on purpose: an order takes twenty seconds, in which the bot can be killed.
"""

import json
import time
from pathlib import Path

from bot.api import safe_to_repeat

ORDERS = Path("orders.json")
SECONDS = 20


@safe_to_repeat
def order(product: str, count: int, idempotency_key: str) -> str:
    """Order something from the shop.

    Args:
        product: The thing to order.
        count: How many of it.
    """
    orders = json.loads(ORDERS.read_text()) if ORDERS.exists() else {}
    # The same key is the same order: so it is safe to ask again after a crash.
    if idempotency_key not in orders:
        orders[idempotency_key] = f"{count} x {product}"
        ORDERS.write_text(json.dumps(orders, indent=2) + "\n")
        time.sleep(SECONDS)
    return f"Order {list(orders).index(idempotency_key) + 1}: {orders[idempotency_key]}"
