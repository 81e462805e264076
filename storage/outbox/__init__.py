"""The outbox: one row for each outgoing message, and what became of it.

    (reply)                           -> pending | sending     store_parts
    (notice, operator's words)        -> pending               post
    (words that left by another way)  -> sent                  post_sent
    pending                           -> sending               mark_sending, claim
    sending | uncertain               -> pending               not_sent
    sending | uncertain               -> refused               refuse
    sending                           -> uncertain             doubt, doubt_orphans
    pending | sending                 -> uncertain             doubt_all
    pending                           -> uncertain             keep_back
    any unfinished                    -> sent                  receive, receive_first
    uncertain                         -> sent                  believe_arrived
    uncertain | refused | dropped     -> pending               resend
    sent                              -> delivered -> read     confirm, confirm_sent
    sent                              -> refused               refuse_sent
    refused                           -> pending               send_again
    pending                           -> dropped               drop_pending, drop_notice,
                                                               drop_standalone, drop_others,
                                                               drop_answers_alone, doubt_all

A part of a running run moves only under that run's claim (`runs.hold` locks the run first). A
standalone part (a notice, an operator's words) is claimed by itself. A receipt is a fact: it counts
whoever holds the run by now. A second receipt for a part is stored too, and reported as a double.
Where there is a `move` and a `move_each`, the latter takes a list, and returns what moved.
"""

from bot.lazy_imports import handed_on

with handed_on(__name__):
    from storage.outbox.delivery_status import confirm, confirm_sent, refuse_sent, send_again
    from storage.outbox.moves import (
        FIRST_OF_EXPORT,
        Attempt,
        NewParts,
        PartOwner,
        Receipt,
        believe_arrived,
        blank,
        blank_copies,
        blank_of_runs,
        doubt,
        doubt_all,
        drop_answers_alone,
        drop_notice,
        drop_notice_each,
        drop_others,
        drop_pending,
        drop_receipts,
        drop_receipts_of_runs,
        drop_standalone,
        follow_clock,
        give_up_looking,
        keep_back,
        looked,
        mark_sending,
        mark_sending_each,
        merge,
        move_run,
        not_sent,
        page,
        post,
        post_sent,
        receive,
        receive_first,
        refuse,
        resend,
        rewrite,
        send_alone,
        set_adrift,
        stop_looking,
        store_parts,
        store_parts_each,
        wait_on,
    )
    from storage.outbox.rows import (
        HeldReply,
        Notice,
        Part,
        answered_at,
        bodies,
        by_device_at,
        by_receipt,
        count_unfinished,
        follows_unreported,
        get,
        last_sent_at,
        of_held,
        of_run,
        of_run_any,
        of_runs,
        overtaken,
        owned_receipts,
        reply,
        sending_by,
        unreported,
    )
    from storage.outbox.standalone import claim, doubt_orphans, doubtful, due, put_off
