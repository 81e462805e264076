"""The terminal, from outside: piped, killed, closed, interrupted, twice at once."""

from __future__ import annotations

import asyncio
import shlex
import signal
from asyncio.subprocess import PIPE

import pytest

from tests.e2e.processes import NO_PLATFORM, PROGRAM, Ground
from tests.fakes.telegram.faults import held_before_storing
from tests.limits import PATIENCE, until


async def in_a_shell(ground: Ground, command: str) -> tuple[int | None, list[str], str]:
    """Run a line of shell in which `answerback` is ours: its code, lines and errors."""
    line = command.replace("answerback", shlex.quote(str(PROGRAM)))
    shell = await asyncio.create_subprocess_shell(
        line,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        cwd=ground.folder,
        env=ground.environment(**NO_PLATFORM),
    )
    async with asyncio.timeout(PATIENCE):
        printed, said = await shell.communicate()
    return shell.returncode, printed.decode().splitlines(), said.decode()


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        (
            "printf 'one\\n\\ntwo\\n  \\ncaf\\303\\251 \\377\\r\\nthree' | answerback chat",
            ["re: one", "re: two", "re: caf\u00e9 \ufffd", "re: three"],
        ),
        ("answerback chat <&-", []),
        ("printf 'one\\ntwo\\n' | answerback up | head -n 1", ["re: one"]),
        ("printf 'unseen\\n' | answerback up >&-", []),
    ],
)
async def test_every_line_of_a_pipe_is_answered_in_order(
    sqlite_ground: Ground, command: str, printed: list[str]
) -> None:
    code, lines, said = await in_a_shell(sqlite_ground, command)
    assert (code, lines) == (0, printed), said
    assert "Traceback" not in said
    assert "Exception ignored" not in said


async def test_killed_in_a_slow_turn_and_run_again_it_answers_once(sqlite_ground: Ground) -> None:
    ground = sqlite_ground
    slow = ground.agent.fail("turn", held_before_storing())
    killed = await ground.spawn("up", **NO_PLATFORM)
    await killed.say("hello\n")
    await until(lambda: bool(slow.hits))
    await killed.kill()
    assert killed.printed == []
    again = await ground.talk("up", lines="still there?\n")
    assert await again.ended() == 0
    assert again.printed == ["re: hello", "re: still there?"]
    assert [t.params["attempt"] for t in ground.agent.turns("hello")] == [1, 2]


async def test_two_terminals_on_one_file_answer_every_line_once(sqlite_ground: Ground) -> None:
    words = [[f"{who} {n}" for n in range(5)] for who in ("ada", "bob")]
    two = [
        await sqlite_ground.talk("chat", lines="".join(f"{w}\n" for w in mine), BURST="each")
        for mine in words
    ]
    assert [await program.ended() for program in two] == [0, 0]
    printed = [line for program in two for line in program.printed]
    assert sorted(printed) == sorted(f"re: {word}" for mine in words for word in mine)


async def test_interrupted_it_says_what_happens_and_keeps_what_is_pending(
    sqlite_ground: Ground,
) -> None:
    ground = sqlite_ground
    slow = ground.agent.fail("turn", held_before_storing())
    left = await ground.spawn("chat", **NO_PLATFORM)
    await left.say("hello\n")
    await until(lambda: bool(slow.hits))
    left.signal(signal.SIGINT)
    await until(lambda: "answered at the next start" in left.output)
    left.signal(signal.SIGINT)
    assert await left.ended() == 0
    assert "Traceback" not in left.output
    again = await ground.talk("chat")
    assert await again.ended() == 0
    assert again.printed == ["re: hello"]
