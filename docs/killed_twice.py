"""Draw docs/killed-twice.svg, a run whose process was killed twice: `make picture`.

The picture is that of `answerback runs show RUN --svg`, of values that stand here.
"""

from __future__ import annotations

from pathlib import Path

from bot.operations.reports.explain import Explained
from bot.operations.reports.picture import draw_run
from storage.views.timeline import Mark, Moment

PICTURE = Path(__file__).parent / "killed-twice.svg"
BEGAN = 1_800_003_600.0
"""2027-01-15 09:00:00 UTC."""
NOW = BEGAN + 720
PAID, SENT, NOTE = "step take the payment", "part 31", "part 32"
_LOST = "it may or may not have arrived: read timeout after 20 s"


def course() -> list[Moment]:
    """The moments of the run."""
    asked = "tg-700100201-42 (text, delivered 2 times)"
    told = [
        (0, "person", "message recorded", asked, Mark.MESSAGE, ""),
        (0, "intake", "run made", "", Mark.MADE, ""),
        (1, "agent", f"{PAID} began", "not safe to repeat", Mark.STEP_BEGAN, PAID),
        (4, "agent", f"{PAID} done", "", Mark.STEP_DONE, PAID),
        (21, "worker-2", "released", "its holder died", Mark.DIED, ""),
        (40, "worker-3", "released", "its holder died", Mark.DIED, ""),
        (41, "worker", "last claimed", "attempt 3, failures 0, deaths 2", Mark.CLAIMED, ""),
        (43, "agent", "reply stored", "46 characters", Mark.STORED, ""),
        (43, "outbox", "reply 1 (part 31) sending", "attempt 1", Mark.SENDING, SENT),
        (63, "outbox", "reply 1 (part 31) is uncertain", "read timeout", Mark.UNCERTAIN, SENT),
        (63, "worker", "ended uncertain", "read timeout after 20 s", Mark.ENDED, ""),
        (64, "outbox", "notice 2 (part 32) sending", "attempt 1", Mark.SENDING, NOTE),
        (65, "provider", "receipt 9032", NOTE, Mark.ARRIVED, NOTE),
        (600, "ann@desk", "resolved: lost", "it is not in the chat", Mark.NOTED, ""),
    ]
    return [
        Moment(BEGAN + after, who, what, detail, mark=mark, thing=thing)
        for after, who, what, detail, mark, thing in told
    ]


def drawn() -> str:
    """The picture of the code as it is."""
    says = f"it ended as uncertain; part 31: {_LOST}. The note about it (part 32) was sent."
    evidence = [
        ("state", "ended"),
        ("attempts", "3"),
        ("deaths of its holders", "2"),
        ("reply stored", "yes"),
        ("parts", "1 (part 31): uncertain"),
        ("a human answered", "no"),
    ]
    act = (
        "answerback outbox resolve 31 --delivered  # after a look at chat 1; --lost sends it again"
    )
    return draw_run(course(), Explained(12, "uncertain", says, evidence, act), NOW)


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
