"""Runs: every statement that writes the table `runs`, and the reads that these moves need.

    (message)                 -> waiting | ready | running   create
    waiting                   -> ready | running             promote
    ready                     -> waiting                     step_back, merge
    ready                     -> running                     claim
    running                   -> ready                       unclaim, give_back, keep,
                                                             retry_later, fail, set_aside,
                                                             owe_apology, release_dead,
                                                             release_own
    running                   -> ended                       settle
    waiting | ready | running -> ended                       end_live, end_all

In a paused chat, a run that would become ready becomes waiting instead. A run that has ended does
not move any more; only its ending may be corrected (`correct_ending`).

Each move is one guarded statement, and losing it is an ordinary result. A worker's move names its
`Claim` (run, holder, fence), and raises `StaleLease` if the run has been taken over. Where there is
a `move` and a `move_each`, the latter takes a list, and returns those that moved.

A move that may change the head of a chat, or may find the chat paused, expects the chat's row to
be locked (`chats.lock`), so that no waiting run is forgotten between two of them. The lock order is
the same everywhere: holder, chats by their ids, run, part.

If a chat is merged into another one while each has a running run, the run of the merged chat stays
where it is until it ends. Meanwhile, its `moves_to` names the chat whose head it counts as.
"""

from bot.lazy_imports import handed_on

with handed_on(__name__):
    from storage.runs.claims import Claimant, claim, oldest_due
    from storage.runs.creation import (
        NewRun,
        create,
        gather_on,
        join,
        lock_unclaimed,
        recount_messages,
        written_at,
    )
    from storage.runs.heads import (
        live_in_chat,
        merge,
        promote,
        promote_each,
        step_back,
        stranded_chats,
        waiting_until,
    )
    from storage.runs.moves import (
        correct_ending,
        end_all,
        end_live,
        explain,
        fail,
        follow_clock,
        give_back,
        hand_over,
        hasten,
        hold,
        keep,
        make_due,
        mark_replied_each,
        owe_apology,
        progress,
        retry_later,
        set_aside,
        settle,
        settle_each,
        unclaim,
    )
    from storage.runs.releases import (
        RELEASED_AT_ONCE,
        Released,
        lock_chats_of,
        release_dead,
        release_own,
    )
    from storage.runs.rows import (
        LIVE_CHATS,
        blank,
        find,
        held_by,
        last_ended,
        page,
        set_aside_reason,
        waiting_messages,
        written_after,
    )
