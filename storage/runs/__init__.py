"""Runs: every statement that writes `runs`, and the questions that its moves ask.

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

In a paused chat, what would become ready becomes waiting instead. An ended run moves no more;
`correct_ending` changes what it ended as.

Each move is one guarded statement, and losing is an ordinary result. A worker's move names its
`Claim` (run, holder, fence) and raises `StaleLease` when the run is somebody else's by now;
`move_each` is `move` for a list, and returns who moved.
Moves that change who is the head of a chat, or may find it paused, expect the chat's row to be
locked (`chats.lock`): a waiter can't be stranded between them. Lock order everywhere:
holder, chats by their ids, run, part.

A run whose chat was merged into another one while both had a running run stays where it is until
it ends; `moves_to` is the chat that counts it as its head meanwhile.
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
