"""The composition root: the one package that knows everything."""

from bot.settings import Settings, read_settings
from bot.wiring.process import Parts, Process, Role, running
from bot.wiring.typed import typed

__all__ = ["Parts", "Process", "Role", "Settings", "read_settings", "running", "typed"]
