"""Runs: every statement that writes `runs`, and the questions that its moves ask.

    (message)                 -> waiting | ready | running   create
    waiting                   -> ready                       promote
    ready                     -> waiting                     step_back, merge
    ready                     -> running                     claim
    running                   -> ready                       give_back, retry_later, fail,
                                                             set_aside, owe_apology,
                                                             release_dead, release_own
    running                   -> ended                       settle
    waiting | ready | running -> ended                       end_live

In a paused chat, what would become ready becomes waiting instead. An ended run moves no more;
`correct_ending` changes what it ended as.

Each move is one guarded statement, and losing is an ordinary result. A worker's move names its
`Claim` (run, holder, fence) and raises `StaleLease` when the run is somebody else's by now.
Moves that change who is the head of a chat, or may find it paused, expect the chat's row to be
locked (`chats.lock`): a waiter can't be stranded between them. Lock order everywhere: chat,
run, part.

A run whose chat was merged into another one while both had a running run stays where it is until
it ends; `moves_to` is the chat that counts it as its head meanwhile.
"""

from storage.runs.claims import Claimant as Claimant, claim as claim, oldest_due as oldest_due
from storage.runs.creation import (
    NewRun as NewRun,
    create as create,
    join as join,
    lock_unclaimed as lock_unclaimed,
    recount_messages as recount_messages,
    written_at as written_at,
)
from storage.runs.heads import (
    live_in_chat as live_in_chat,
    merge as merge,
    promote as promote,
    step_back as step_back,
    stranded_chats as stranded_chats,
)
from storage.runs.moves import (
    correct_ending as correct_ending,
    end_live as end_live,
    explain as explain,
    fail as fail,
    give_back as give_back,
    hasten as hasten,
    hold as hold,
    make_due as make_due,
    mark_replied as mark_replied,
    owe_apology as owe_apology,
    progress as progress,
    retry_later as retry_later,
    set_aside as set_aside,
    settle as settle,
)
from storage.runs.releases import (
    RELEASED_AT_ONCE as RELEASED_AT_ONCE,
    Released as Released,
    release_dead as release_dead,
    release_own as release_own,
)
from storage.runs.rows import (
    find as find,
    held_by as held_by,
    last_ended as last_ended,
    recent_turns as recent_turns,
    set_aside_reason as set_aside_reason,
    waiting_messages as waiting_messages,
    written_after as written_after,
)
