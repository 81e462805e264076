"""What operators see of a running process: health, metrics and logs."""

from bot.observe.health import Check
from bot.observe.metrics import Observer

__all__ = ["Check", "Observer"]
