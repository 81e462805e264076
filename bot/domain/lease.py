"""The holder's lease: for how long a process may believe that its runs are its own.

Three clocks are involved, and each is used for one thing only.

* The *database's* clock decides whether a holder is dead: its row was renewed longer than
  `seconds` ago. (On SQLite, which has no clock of its own, that is the machine's boot id
  and the time since boot, so that setting the wall clock changes nothing.)
* The holder's *monotonic* clock decides whether it may still act. A renewal is worth
  `seconds` from the moment it was *begun*: the database can't have stamped it earlier than
  that, so the holder's window always closes before the database would call it dead.
* Wall clocks decide nothing.

What the window can't close: a process that is stopped between its last look at the window
and the bytes leaving its socket. No bot can; the part is then `sending`, and whoever takes
the run over treats it as uncertain.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """`seconds` a renewal is worth and `heartbeat` seconds between renewals."""

    seconds: float
    heartbeat: float

    @property
    def margin(self) -> float:
        """Seconds before the end of the lease at which a holder stops acting."""
        return min(1.0, self.seconds / 10)


@dataclass(frozen=True, slots=True)
class TrustWindow:
    """The time of trust after one good renewal. `until` is monotonic seconds."""

    until: float

    @staticmethod
    def opened(began: float, terms: LeaseTerms) -> TrustWindow:
        """The window of a renewal that was begun at monotonic second `began`."""
        return TrustWindow(began + terms.seconds - terms.margin)

    def holds(self, monotonic: float) -> bool:
        """Whether the holder may still begin a move or a send."""
        return monotonic < self.until
