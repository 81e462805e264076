"""Secrets are taken out of a line, and what is ours stays readable."""

from __future__ import annotations

import pytest

from bot.observability.redaction import scrub

TOKEN = "7000000001:TEST-token-not-real-000000000000000"
SID = "AC00000000000000000000000000000001"

HIDDEN = {
    "Telegram token": (f"token {TOKEN} is bad", "TEST-token"),
    "method URL": (f"POST https://api.telegram.org/bot{TOKEN}/sendMessage", "TEST-token"),
    "file URL": (f"https://api.telegram.org/file/bot{TOKEN}/photos/file_1.jpg", "TEST-token"),
    "file URL's owner": (f"https://api.telegram.org/file/bot{TOKEN}/photos/f", "7000000001"),
    "quoted token": (TOKEN.replace(":", "%3A"), "TEST-token"),
    "Twilio login": (f"https://{SID}:0123456789abcdef0123456789abcdef@api.twilio.com/", "0123456"),
    "Twilio token": ("token 0123456789abcdef0123456789abcdef", "0123456789abcdef"),
    "JSON Web Token": ("session eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1MSJ9.sEcReT_-x", "sEcReT"),
    "half a JSON Web Token": ("session eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1MSJ9", "eyJzdWIi"),
    "Meta's token": ("token EAAGm0PX4ZCpsBO0ZCAb1234567890 has expired", "ZCpsBO0ZC"),
    "Meta's message": ("wamid.HBgLMTU1NTAxMDAxODEVAgASGBIwMDAwMDAwMA== is unknown", "MTU1NTAxMDAx"),
    "Meta's signature": ("X-Hub-Signature-256: sha256=e669a521d1901b", "e669a521"),
    "Basic": ("Authorization: Basic QUMwMDAwOnNlY3JldA==", "QUMwMDAw"),
    "Bearer": ("{'authorization': 'Bearer abc.def-ghi'}", "abc.def"),
    "model key": ("Incorrect API key: sk-ant-api03-abcdefghijklmnop", "abcdefgh"),
    "signature": ("X-Twilio-Signature: 0/KCTR6DLpKmkAf8muzZqo1nDgQ=", "KCTR6"),
    "webhook secret": ("('x-telegram-bot-api-secret-token', 'open-sesame')", "sesame"),
    "assignment": ("auth_token=open-sesame&x=1", "sesame"),
    "JSON": ('{"password": "open sesame"}', "sesame"),
    "database": ("postgresql://bot:hunter2@db.internal:5432/answers", "hunter2"),
    "database's user": ("postgresql://bot:hunter2@db.internal:5432/answers", "bot"),
    "database with an at": ("postgresql://bot:hunt@er2@db.internal/answers", "er2"),
    "redis": ("redis://:hunter2@cache:6379/0", "hunter2"),
    "query": ("GET https://agent.example/ask?text=my%20secret failed", "secret"),
    "phone": ("to +4915112345678 failed", "4915112345678"),
    "phone with blanks": ("to +49 151 1234-5678 failed", "1234"),
    "phone of America": ("call (555) 123-4567 now", "4567"),
    "WhatsApp": ("whatsapp:+15550100001 is not valid", "5550100"),
    "WhatsApp in a form": ("To=whatsapp%3A%2B15550100001&", "5550100"),
    "without a plus": ("WaId 15550100001", "5550100001"),
    "business-scoped id": ("whatsapp:DE.4566546130240823 is unknown", "45665461"),
    "business-scoped id of letters": ("DE.ENT.AB12cd34ef56", "AB12cd34"),
    "chat": ("chat_id=700100201", "700100201"),
    "group": ("chat -1001234567890 not found", "1001234567890"),
    "Arabic digits": ("+٤٩١٥١١٢٣٤٥٦٧٨", "٤٩١٥١١٢٣"),
    "line break": ("one\nERROR two", "\n"),
    "escape": ("name \x1b[2J", "\x1b"),
    "direction": ("name \u202egnp.exe", "\u202e"),
}


@pytest.mark.parametrize("case", HIDDEN)
def test_what_is_secret_is_taken_out(case: str) -> None:
    text, secret = HIDDEN[case]
    assert secret in text
    assert secret not in scrub(text)


KEPT = [
    "run 123456789: the lease ran out",
    "sending part 987654321 broke the channel",
    "request tg-700100201-5 was recorded",
    "wa-SM0123456789abcdef0123456789abcdef is known",
    "wac-0123456789abcdef0123456789abcdef is known",
    "whatsapp-cloud 106540352242922 webhook: it is not set",
    "bot/host-1/2 listens on http://127.0.0.1:8080",
    "handing over within 30 s",
    "lease not renewed, 3.2 s left: the database does not answer: OperationalError",
    "the platform refuses the bot's token: Unauthorized",
    "host 192.168.100.200:54321 at 2026-11-29T18:04:10",
    "550e8400-e29b-41d4-a716-446655440000",
    "error 63016, status 503, 1048576 bytes",
    "räksmörgås, 東京",
]


@pytest.mark.parametrize("text", KEPT)
def test_what_operators_need_stays(text: str) -> None:
    assert scrub(text) == text


def test_secrets_of_the_settings_are_taken_out_wherever_they_come_from() -> None:
    assert scrub("bad key open-sesame!", ["open-sesame", ""]) == "bad key <secret>!"


def test_a_number_stays_recognisable_by_its_end() -> None:
    assert scrub("whatsapp:+15550100001") == "whatsapp:+…1"
