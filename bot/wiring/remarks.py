"""Remarks on settings that are right, the same at every start and in `doctor`."""

from __future__ import annotations

from collections.abc import Sequence

from bot.domain.errors import ConfigurationError
from bot.domain.findings import Finding, Level, warning
from bot.settings import ChannelList, Settings, environment_names, file_lines, read
from bot.wiring.channels import configured, left_off, settings_class
from bot.wiring.channels import read_settings as read_these
from bot.wiring.misnamed import misnamed

FREE = frozenset({"echo", "demo"})
"""Agents that cost their owner nothing."""


def remarks_on(settings: Settings, *, terminal: bool = False) -> Sequence[Finding]:
    """Variables that nobody reads and, unless only the terminal is wanted, channels that are off
    by mistake, who can spend the owner's money, and who can read what people wrote. What is only
    good to know has the level OK."""
    names = _names(settings.channels)
    return names if terminal else [*names, *left_off(settings), *_open(settings)]


def read_settings(**overrides: object) -> Settings:
    """The settings of this process. Raises ConfigurationError that names every variable that is
    wrong, with the fix, and those that may have been meant otherwise."""
    try:
        return read_these(**overrides)
    except ConfigurationError as error:
        told = [f for f in _names_in_spite() if f.level is not Level.OK]
        lines = [f"{finding.name}: {finding.says}; {finding.fix}" for finding in told]
        raise ConfigurationError("\n".join([str(error), *lines])) from error


def _names_in_spite() -> Sequence[Finding]:
    """The names, although the settings can't be read; none where not even CHANNELS can."""
    try:
        return _names(read(ChannelList).channels)
    except ConfigurationError:
        return []


def _names(channels: tuple[str, ...]) -> Sequence[Finding]:
    known = {name.upper() for name in settings_class(channels).model_fields}
    return misnamed(known, environment_names(), file_lines())


def _open(settings: Settings) -> Sequence[Finding]:
    """One line where strangers can have an agent work that costs money, and one where people's
    words end up in the log."""
    found: list[Finding] = []
    if not configured(settings):
        return found
    if settings.agent not in FREE and not settings.allowed and not settings.chat_turns_per_day:
        says = "empty, and CHAT_TURNS_PER_DAY is 0: whoever finds the bot can spend your money"
        fix = "name in ALLOWED who may use it, or set CHAT_TURNS_PER_DAY to what a chat may cost"
        found.append(warning("ALLOWED", says, fix))
    if settings.development:
        says = "on: what an agent raises is logged whole, with the words of people"
        found.append(warning("DEVELOPMENT", says, "turn it off where a bot is used by others"))
    return found
