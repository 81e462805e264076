"""A builder's own mistakes at a shell: an agent that raises, a module that can't be read."""

from __future__ import annotations

from tests.e2e.processes import Ground

AGENT = """
def reply(turn):
    raise LookupError("nothing known of " + turn.text)
"""
SAID = "the Pelican appointment"


async def test_who_develops_sees_the_traceback_though_no_terminal_is_there(
    sqlite_ground: Ground,
) -> None:
    (sqlite_ground.folder / "a_bot.py").write_text(AGENT)
    given = {"AGENT": "a_bot:reply", "MAX_FAILURES": "1", "DEVELOPMENT": "yes"}
    program = await sqlite_ground.talk("chat", lines=f"{SAID}\n", **given)
    assert await program.ended() == 0
    told = "\n".join(program.said)
    assert "Traceback (most recent call last):" in told
    assert f"LookupError: nothing known of {SAID}" in told


async def test_agent_check_shows_a_mistake_and_a_module_that_cannot_be_read_ends_in_a_sentence(
    sqlite_ground: Ground,
) -> None:
    (sqlite_ground.folder / "a_bot.py").write_text(AGENT)
    (sqlite_ground.folder / "b_bot.py").write_text("def reply(turn:\n")
    checked = await sqlite_ground.spawn("agent", "check", "--json", AGENT="a_bot:reply")
    broken = await sqlite_ground.spawn("agent", "check", AGENT="b_bot:reply")
    assert await checked.ended() == 1
    assert "LookupError: nothing known of Hello, who are you? (a_bot.py:3 reply)" in checked.output
    assert await broken.ended() == 2
    [line] = broken.said
    assert line.startswith("answerback: AGENT=b_bot:reply: importing b_bot failed: SyntaxError: ")
    assert line.endswith("never closed (b_bot.py, line 1); mend it, or name another in AGENT")
