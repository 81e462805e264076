"""What operators see of a running process: health, metrics and logs."""

from bot.observability.health import Check
from bot.observability.metrics import Observer

__all__ = ["Check", "Observer"]
