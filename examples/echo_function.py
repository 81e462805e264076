"""The smallest agents. Run one: AGENT=examples.echo_function:reply answerback chat"""

import asyncio

from bot.api import Button, Reply, Turn, wait


async def reply(turn: Turn) -> str:
    """One string is a whole answer; Markdown is shown as the platform can."""
    return f"You said: {turn.text}"


async def slowly(turn: Turn) -> str:
    """The same after ten seconds, in which the program can be killed and started again."""
    await asyncio.sleep(10)
    return await reply(turn)


async def choose(turn: Turn) -> Reply | None:
    """Buttons come back as messages; None says nothing at all."""
    pressed = turn.messages[-1].button
    if pressed:
        return Reply(f"You chose {pressed}.")
    if turn.text.strip().lower() == "thanks":
        return None
    return Reply("Tea or coffee?", buttons=(Button("Tea", "tea"), Button("Coffee", "coffee")))


def measure(turn: Turn) -> str:
    """A plain function runs in a thread of its own, so it may block; `wait` is its `await`."""
    sizes = [len(wait(file.read())) for message in turn.messages for file in message.attachments]
    return f"{len(turn.text)} characters, {sum(sizes)} bytes of files"
