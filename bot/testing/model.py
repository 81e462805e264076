"""A scripted model for `Bot("llm", model=...)`. Needs the packages of the extra `llm`."""

from bot.agents.assistant.scripted import ScriptedModel, call, calls, say

__all__ = ["ScriptedModel", "call", "calls", "say"]
