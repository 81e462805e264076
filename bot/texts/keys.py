"""The names of the texts. Each value is the key in our language files and in an operator's file."""

from __future__ import annotations

from enum import StrEnum


class Text(StrEnum):
    """One sentence, or a few, that a person can read; the comment says when they do."""

    # Commands and their answers.
    WELCOME = "WELCOME"  # /start
    HELP = "HELP"  # /help where commands have a slash
    HELP_WORDS = "HELP_WORDS"  # the same on WhatsApp; {status}, {stop}, {retry} are words
    STOPPED = "STOPPED"  # something was withdrawn
    NOTHING_TO_STOP = "NOTHING_TO_STOP"
    STATUS_IDLE = "STATUS_IDLE"  # nothing runs or waits
    STATUS_WORKING = "STATUS_WORKING"  # a turn runs
    STATUS_WAITING = "STATUS_WAITING"  # {count} messages have no answer yet
    STATUS_PAUSED = "STATUS_PAUSED"  # the operator took the chat over
    RETRIED = "RETRIED"  # /retry or its button made a new run
    NOTHING_TO_RETRY = "NOTHING_TO_RETRY"
    RESENT = "RESENT"  # the answer of uncertain delivery goes out once more
    NOTHING_TO_RESEND = "NOTHING_TO_RESEND"
    OPTED_OUT = "OPTED_OUT"  # WhatsApp: the last message until START
    OPTED_IN = "OPTED_IN"
    HELP_DATA = "HELP_DATA"  # below /help in a private chat; {export}, {forget}
    EXPORT_ASKED = "EXPORT_ASKED"  # /export the first time; {word}
    EXPORTED = "EXPORTED"  # over the copy
    EXPORT_TOO_LARGE = "EXPORT_TOO_LARGE"  # it is more than can be sent
    FORGET_ASKED = "FORGET_ASKED"  # /forget the first time; {word}
    FORGOTTEN = "FORGOTTEN"  # done
    DATA_UNDER_WAY = "DATA_UNDER_WAY"  # asked for again while it is being done
    DATA_NOT_HERE = "DATA_NOT_HERE"  # either of them in a group

    # While it works, and when it could not.
    STILL_WORKING = "STILL_WORKING"  # once, after STILL_WORKING_AFTER
    APOLOGY = "APOLOGY"  # MAX_FAILURES without progress
    APOLOGY_DEADLINE = "APOLOGY_DEADLINE"  # the deadline passed
    RETRY_HINT = "RETRY_HINT"  # added to an apology where there is no button; {word}
    UNCERTAIN_ASK = "UNCERTAIN_ASK"  # delivery is uncertain, no buttons; {word}
    UNCERTAIN_ASK_BUTTON = "UNCERTAIN_ASK_BUTTON"  # the same above a button
    TOO_OLD = "TOO_OLD"  # expired: once a chat
    HANDED_OVER = "HANDED_OVER"  # the agent asked for a person
    NOBODY_YET = "NOBODY_YET"  # nobody answered since: once
    UNAVAILABLE = "UNAVAILABLE"  # the model refuses our key, or the like
    EMPTY_ANSWER = "EMPTY_ANSWER"  # the model had nothing to say, twice
    CUT_OFF = "CUT_OFF"  # under an answer that the model's output limit cut
    NOTHING_TO_READ = "NOTHING_TO_READ"  # a blank message
    ECHO_GOT = "ECHO_GOT"  # the echo agent, on something without words; {what}
    DEMO_ANSWER = "DEMO_ANSWER"  # the demonstration's agent; {what} was asked, {receipt}
    DEMO_RESUMED = "DEMO_RESUMED"  # below it, where an attempt was cut off; {count} attempts
    DEMO_IN_DOUBT = "DEMO_IN_DOUBT"  # its paid step had begun and left no result

    # Refused; said once, then only recorded.
    NOT_ALLOWED = "NOT_ALLOWED"
    TOO_FAST = "TOO_FAST"
    TOO_MANY_WAITING = "TOO_MANY_WAITING"
    DAILY_LIMIT = "DAILY_LIMIT"

    # Labels and captions.
    RETRY_BUTTON = "RETRY_BUTTON"
    RESEND_BUTTON = "RESEND_BUTTON"
    LONG_REPLY_FILE = "LONG_REPLY_FILE"  # under a long answer that is sent as a file

    # The menu of commands (setMyCommands).
    COMMAND_START = "COMMAND_START"
    COMMAND_HELP = "COMMAND_HELP"
    COMMAND_STATUS = "COMMAND_STATUS"
    COMMAND_STOP = "COMMAND_STOP"
    COMMAND_RETRY = "COMMAND_RETRY"
    COMMAND_EXPORT = "COMMAND_EXPORT"
    COMMAND_FORGET = "COMMAND_FORGET"

    # The chat on a page: labels, what became of a message, what became of the connection.
    WEB_TITLE = "WEB_TITLE"
    WEB_OPEN = "WEB_OPEN"
    WEB_CLOSE = "WEB_CLOSE"
    WEB_YOU = "WEB_YOU"  # who wrote a message, read out before it
    WEB_ASSISTANT = "WEB_ASSISTANT"
    WEB_TEAM = "WEB_TEAM"  # an operator
    WEB_WRITE = "WEB_WRITE"
    WEB_SEND = "WEB_SEND"
    WEB_ATTACH = "WEB_ATTACH"
    WEB_STOP = "WEB_STOP"
    WEB_EARLIER = "WEB_EARLIER"
    WEB_NEW_CHAT = "WEB_NEW_CHAT"
    WEB_DISCARD = "WEB_DISCARD"  # takes a message that was refused off the page
    WEB_UNREAD = "WEB_UNREAD"  # {count}; read out with the button
    WEB_SENDING = "WEB_SENDING"
    WEB_WAITING = "WEB_WAITING"  # under a message that was written offline
    WEB_RECEIVED = "WEB_RECEIVED"
    WEB_WORKING = "WEB_WORKING"
    WEB_STILL_WORKING = "WEB_STILL_WORKING"
    WEB_ANSWERED = "WEB_ANSWERED"
    WEB_STOPPED = "WEB_STOPPED"
    WEB_FAILED = "WEB_FAILED"  # its turn was interrupted
    WEB_REFUSED = "WEB_REFUSED"  # the server does not take it
    WEB_TOO_LARGE = "WEB_TOO_LARGE"
    WEB_FILE_LOST = "WEB_FILE_LOST"
    WEB_RECONNECTING = "WEB_RECONNECTING"  # after 2 s without a stream
    WEB_OFFLINE = "WEB_OFFLINE"
    WEB_NOT_KEPT = "WEB_NOT_KEPT"  # storage is blocked or full
    WEB_NOT_STOPPED = "WEB_NOT_STOPPED"  # the request did not arrive
    WEB_SIGN_IN = "WEB_SIGN_IN"  # the token is refused
    WEB_NOT_HERE = "WEB_NOT_HERE"  # the page's origin is not in WEB_ORIGINS, or the like
