"""Meta's send limits: to one person, and of one number."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.fakes.recording import Now


@dataclass
class _Bucket:
    """A store of `size` sends that fills by `rate` a second."""

    size: float
    rate: float
    left: float
    at: float

    def take(self, now: float) -> bool:
        self.left = min(self.size, self.left + (now - self.at) * self.rate)
        self.at = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


@dataclass
class Rates:
    """45 at once and then one in 6 s to one person; 80 a second from one number. A refusal comes
    only where they are enforced."""

    now: Now
    enforce: bool = False
    burst: int = 45
    per_second: int = 80
    _pairs: dict[tuple[str, str], _Bucket] = field(default_factory=dict)
    _numbers: dict[str, _Bucket] = field(default_factory=dict)

    def refusal(self, number: str, person: str) -> int | None:
        """The code that this send is refused with."""
        if not self.enforce:
            return None
        now = self.now()
        pair = self._pairs.setdefault(
            (number, person), _Bucket(self.burst, 1 / 6, float(self.burst), now)
        )
        whole = self._numbers.setdefault(
            number, _Bucket(self.per_second, self.per_second, float(self.per_second), now)
        )
        if not whole.take(now):
            return 130429
        return None if pair.take(now) else 131056
