"""The outbox: one row for each outgoing message, and what became of it.

    (reply)                           -> pending | sending     store_parts
    (notice, operator's words)        -> pending               post
    pending                           -> sending               mark_sending, claim
    sending                           -> pending               not_sent
    sending                           -> refused               refuse
    sending                           -> uncertain             doubt, doubt_orphans
    any unfinished                    -> sent                  receive
    uncertain                         -> sent                  believe_arrived
    uncertain | refused | dropped     -> pending               resend
    sent                              -> delivered -> read     confirm
    sent                              -> refused               refuse_sent
    refused                           -> pending               send_again
    pending                           -> dropped               drop_pending, drop_notice,
                                                               drop_standalone, drop_others

A part of a running run moves only under that run's claim (`runs.hold` locks the run first). A
standalone part (a notice, an operator's words) is claimed by itself. A receipt is a fact: it
counts whoever holds the run by now, and a second one for a part is kept and reported: a double.
"""

from storage.outbox.delivery_status import (
    confirm as confirm,
    refuse_sent as refuse_sent,
    send_again as send_again,
)
from storage.outbox.moves import (
    REPLACED as REPLACED,
    Address as Address,
    Attempt as Attempt,
    Notice as Notice,
    believe_arrived as believe_arrived,
    doubt as doubt,
    drop_notice as drop_notice,
    drop_others as drop_others,
    drop_pending as drop_pending,
    drop_standalone as drop_standalone,
    forget as forget,
    give_up_looking as give_up_looking,
    looked as looked,
    mark_sending as mark_sending,
    merge as merge,
    move_run as move_run,
    not_sent as not_sent,
    post as post,
    receive as receive,
    refuse as refuse,
    resend as resend,
    rewrite as rewrite,
    store_parts as store_parts,
)
from storage.outbox.rows import (
    Part as Part,
    bodies as bodies,
    by_receipt as by_receipt,
    count_unfinished as count_unfinished,
    follows_unreported as follows_unreported,
    get as get,
    human_answered as human_answered,
    last_sent_at as last_sent_at,
    of_run as of_run,
    of_run_any as of_run_any,
    owned_receipts as owned_receipts,
    sending_by as sending_by,
    unreported as unreported,
)
from storage.outbox.standalone import (
    claim as claim,
    doubt_orphans as doubt_orphans,
    doubtful as doubtful,
    due as due,
)
