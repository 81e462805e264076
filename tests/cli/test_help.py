"""Every verb says what it does, with an example; every option has its words."""

from __future__ import annotations

from collections.abc import Iterator

import typer
from typer.main import get_command

from bot.cli.app import add_operators, app
from bot.domain.ending import Ending

VERBS = {
    "serve", "chat", "up", "stuck", "top", "status", "recover", "doctor", "explain",
    "runs list", "runs show", "runs why", "runs requeue", "runs close", "runs apologise",
    "chats list", "chats show", "chats pause", "chats resume", "chats reply", "chats forget",
    "chats inbox", "chats note", "chats answered",
    "chats export",
    "outbox list", "outbox resolve", "letters list", "letters dismiss",
    "webhook set", "webhook info", "webhook delete", "db upgrade", "db current", "db backup",
    "db restore", "db restored", "db copy", "db reopen", "db compact", "agent check", "demo kill",
    "operator hash",
}  # fmt: skip


def _verbs() -> dict[str, object]:
    whole = typer.Typer()
    whole.registered_commands = list(app.registered_commands)
    add_operators(whole)
    return dict(_walk(get_command(whole), ""))


def _walk(command: object, name: str) -> Iterator[tuple[str, object]]:
    below = getattr(command, "commands", None)
    if below is None:
        yield name, command
        return
    for word, one in below.items():
        yield from _walk(one, f"{name} {word}".strip())


def test_the_verbs_are_those_that_are_promised_and_each_has_help() -> None:
    verbs = _verbs()
    assert set(verbs) == VERBS
    for name, command in verbs.items():
        said = getattr(command, "help", "") or ""
        assert "For example: " in said, name
        for parameter in getattr(command, "params", ()):
            assert getattr(parameter, "help", ""), f"{name} {parameter}"


def test_the_values_of_an_option_are_told_whole() -> None:
    listed = _verbs()["runs list"]
    for ending in Ending:
        assert any(ending.value in (p.help or "") for p in getattr(listed, "params", ()))
    for name, command in _verbs().items():
        for parameter in getattr(command, "params", ()):
            assert len(parameter.metavar or "") < 20, f"{name} {parameter}"


def test_a_list_of_commands_tells_each_by_its_first_sentence() -> None:
    for name, command in _verbs().items():
        said = getattr(command, "short_help", None)
        if name not in ("serve", "chat", "up"):
            assert said, name
        if said:
            assert "\n" not in said, name
            assert said.count(".") == 1, f"{name}: {said}"
            assert said.endswith("."), name
