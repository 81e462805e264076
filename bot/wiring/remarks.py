"""Remarks on settings that are right, the same at every start and in `doctor`."""

from __future__ import annotations

from collections.abc import Sequence

from bot.domain.errors import ConfigurationError
from bot.domain.findings import Finding, Level, fine, warning
from bot.operations.reports.phrases import counted
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
    if terminal:
        return names
    return [*names, *left_off(settings), *_open(settings), *_operators(settings)]


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


def _operators(settings: Settings) -> Sequence[Finding]:
    """One line about the operator's page, where there is one."""
    name, operators = "operator's page", settings.operators
    if not operators:
        unset = "OPERATOR_OPEN is set, and nobody can sign in"
        fix = "set OPERATOR_PASSWORD or OPERATOR_USERS, or take OPERATOR_OPEN away"
        return [warning(name, unset, fix)] if settings.operator_open else []
    many = counted(len(operators), "operator")
    if not settings.operator_open:
        return [fine(name, f"for {many}, on this machine alone")]
    if not settings.public_url.startswith("https://"):
        says = "open to others without TLS: whoever listens on the way can read the password"
        return [warning(name, says, "set PUBLIC_URL to the https address of a proxy in front")]
    plain = [one.name for one in operators if not one.is_hashed]
    if plain:
        says = f"open to others, and the settings hold the password of {', '.join(plain)} as it is"
        return [warning(name, says, "write its hash there instead: answerback operator hash")]
    if not settings.web_proxies:
        says = "all who come by the proxy in front count as one: wrong tries of one hold off all"
        return [warning(name, says, "name that proxy in WEB_PROXIES")]
    return [fine(name, f"for {many}, at {settings.public_url}/operator")]
