"""Would the real platform have answered 429? Counts of what was sent, per chat and overall."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field

from tests.fakes.recording import Now


@dataclass(frozen=True, slots=True)
class Limits:
    """Messages a second in one chat (after a short burst), a second overall, a minute in a
    group. `slack` is what measuring on a busy machine may add to the overall count."""

    per_chat: float = 1.0
    burst: int = 3
    overall: int = 30
    slack: int = 3
    per_group_minute: int = 20


@dataclass
class Rates:
    """Sliding counts; `excess` lists what went over. `enforce` makes the fake refuse it: what was
    refused is not counted, so that whoever waits as long as told is taken."""

    now: Now
    limits: Limits = Limits()
    enforce: bool = False
    excess: list[str] = field(default_factory=list)
    _all: deque[float] = field(default_factory=deque)
    _group: dict[int, deque[float]] = field(default_factory=lambda: defaultdict(deque))
    _bucket: dict[int, tuple[float, float]] = field(default_factory=dict)

    def count(self, chat_id: int) -> int | None:
        """Count one message; the seconds to wait when the real one might have refused it."""
        now = self.now()
        waits = [self._overall(now), self._in_chat(chat_id, now)]
        if chat_id < 0:
            waits.append(self._in_group(chat_id, now))
        found = [w for w in waits if w is not None]
        return max(found) if found else None

    def _overall(self, now: float) -> int | None:
        return self._window(self._all, 1.0, self.limits.overall + self.limits.slack, now, "overall")

    def _in_group(self, chat_id: int, now: float) -> int | None:
        limit = self.limits.per_group_minute
        return self._window(self._group[chat_id], 60.0, limit, now, f"group {chat_id}")

    def _window(
        self, times: deque[float], seconds: float, limit: int, now: float, what: str
    ) -> int | None:
        while times and times[0] <= now - seconds:
            times.popleft()
        times.append(now)
        if len(times) <= limit:
            return None
        self.excess.append(f"{what}: {len(times)} messages in {seconds:g} s")
        if self.enforce:
            times.pop()
        return max(1, round(times[0] + seconds - now))

    def _in_chat(self, chat_id: int, now: float) -> int | None:
        room, then = self._bucket.get(chat_id, (float(self.limits.burst), now))
        there = min(float(self.limits.burst), room + (now - then) * self.limits.per_chat)
        room = there - 1.0
        over = room < -0.05
        self._bucket[chat_id] = (there if over and self.enforce else max(room, -1.0), now)
        if not over:
            return None
        self.excess.append(f"chat {chat_id}: over {self.limits.per_chat:g} messages a second")
        return 1
