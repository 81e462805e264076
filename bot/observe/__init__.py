"""What operators see of a running process: metrics and logs."""

from bot.observe.metrics import Observer

__all__ = ["Observer"]
