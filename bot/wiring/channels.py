"""The registry of channels, and the choice that the settings make of them.

A further channel is a module that exports CHANNEL, named in CHANNELS: nothing here changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from bot.domain.findings import Finding, warning
from bot.domain.plugin import ChannelPlugin, Endpoint, Host, Terminal
from bot.domain.ports import Clock
from bot.lazy_imports import lazy_imports
from bot.settings import ChannelList, Settings, read, settings_of
from bot.texts import Text, Words
from channels import console, telegram, web, whatsapp, whatsapp_cloud

with lazy_imports(__name__):
    from bot.agents.loading import builders_code, fault, import_module

_SETTING = "CHANNELS"
_PREFIX = "WEB_"
ON_A_PAGE = {
    "GREETING": Text.WELCOME,
    "SEND_AGAIN": Text.RESEND_BUTTON,
    **{text.removeprefix(_PREFIX): text for text in Text if text.startswith(_PREFIX)},
}
"""The words of a chat on a page, by their names in its script."""

_COMMON = frozenset(Settings.model_fields)
"""Variables that a channel reads too and that are no sign of it."""

_OURS: tuple[ChannelPlugin[Any], ...] = (
    telegram.CHANNEL,
    whatsapp.CHANNEL,
    whatsapp_cloud.CHANNEL,
    web.CHANNEL,
    console.CHANNEL,
)


@cache
def plugins(further: tuple[str, ...] = ()) -> Sequence[ChannelPlugin[Any]]:
    """Our channels and those of these modules. Raises ConfigurationError."""
    found = [*_OURS, *(_loaded(module) for module in further)]
    if len({plugin.name for plugin in found}) < len(found):
        raise fault(_SETTING, "two channels have the same name")
    return found


def _loaded(module: str) -> ChannelPlugin[Any]:
    loaded = import_module(_SETTING, module)
    with builders_code(_SETTING, f"looking up {module}.CHANNEL"):
        plugin = getattr(loaded, "CHANNEL", None)
    if plugin is None:
        raise fault(_SETTING, f"{module} has no CHANNEL, which a module of a channel exports")
    if not isinstance(plugin, ChannelPlugin):
        raise fault(_SETTING, f"{module}.CHANNEL is no ChannelPlugin")
    return plugin


@cache
def settings_class(further: tuple[str, ...] = ()) -> type[Settings]:
    """Every variable that Answerback and its channels read. Raises ConfigurationError."""
    return settings_of(p.settings for p in plugins(further) if p.settings is not None)


def read_settings(**overrides: Any) -> Settings:
    """The settings of this process. Raises ConfigurationError that names every variable that
    is wrong, and the fix."""
    return read(settings_class(read(ChannelList, **overrides).channels), **overrides)


def given_settings(**values: Any) -> Settings:
    """Settings that look nowhere but at these values, by their small names: neither at the
    environment nor at `.env`. Raises ConfigurationError."""
    return read(_given_alone(values.get("channels", ())), **values)


@cache
def _given_alone(further: tuple[str, ...]) -> type[Settings]:
    def sources(_cls: Any, /, _kind: Any, init_settings: Any, **_others: Any) -> Any:
        return (init_settings,)

    given = {"__module__": __name__, "settings_customise_sources": classmethod(sources)}
    return type("Settings", (settings_class(further),), given)


def configured(settings: Settings) -> Sequence[ChannelPlugin[Any]]:
    """The channels that these settings turn on."""
    return [plugin for plugin in plugins(settings.channels) if plugin.configured(settings)]


def at_the_terminal(settings: Settings) -> Settings:
    """The settings of a chat in the terminal: where neither a platform nor an agent was named,
    somebody tries it out, and meets the demonstration's agent."""
    if configured(settings) or "agent" in settings.model_fields_set:
        return settings
    return settings.model_copy(update={"agent": "demo"})


def ways_to_configure(settings: Settings) -> str:
    """The variables that would turn a channel on, for a person."""
    return ", or ".join(p.turned_on_by for p in plugins(settings.channels) if p.turned_on_by)


def left_off(settings: Settings) -> Sequence[Finding]:
    """The channels that are off although variables of theirs are set: a name may be missing, or
    spelled otherwise. One that was turned off by its own name is meant to be."""
    found = []
    for plugin in plugins(settings.channels):
        fields = {} if plugin.settings is None else plugin.settings.model_fields
        own = [n for n in fields if n in settings.model_fields_set and n not in _COMMON]
        told = [name.upper() for name in own if getattr(settings, name)]
        turned_off = plugin.name in own and not getattr(settings, plugin.name)
        served = plugin.configured(settings) or plugin.beside_terminal(settings)
        if told and not served and not turned_off:
            fix = f"set {plugin.turned_on_by}, or empty {' and '.join(told)}"
            found.append(warning(plugin.name, f"it is off although {told[0]} is set", fix))
    return found


def connect(
    settings: Settings,
    clock: Clock,
    words: Words,
    terminal: Terminal | None = None,
    *,
    pages: bool = False,
) -> Sequence[Endpoint]:
    """The accounts, not yet open: of the platforms, or with `terminal` only the terminal, and
    with `pages` what is served beside it.

    A platform's packages are loaded only where it is configured: they take longer than
    everything else of a start. Raises ConfigurationError.
    """
    host = Host(
        clock,
        lambda language: words.say(Text.LONG_REPLY_FILE, language),
        terminal,
        words.table(ON_A_PAGE),
    )
    if terminal is not None:
        beside = [p for p in plugins(settings.channels) if pages and p.beside_terminal(settings)]
        return _connected((console.CHANNEL, *beside), settings, host)
    return _connected(configured(settings), settings, host)


def _connected(
    plugins: Sequence[ChannelPlugin[Any]], settings: Settings, host: Host
) -> Sequence[Endpoint]:
    return [endpoint for plugin in plugins for endpoint in plugin.connect(settings, host)]
