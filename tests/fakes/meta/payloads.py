"""Webhook bodies as Meta makes them: envelopes, messages, statuses."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tests.fakes.recording import Json

WABA = "102290129340398"
NUMBER = "106540352242922"
DISPLAY = "15550100900"
PERSON = "15550100181"


def raw(payload: Json) -> bytes:
    """The bytes as Meta's own writer escapes them: no letter beyond ASCII, no `/`, no `@`."""
    text = json.dumps(payload, separators=(",", ":"))
    return text.replace("/", "\\/").replace("@", "\\u0040").encode("ascii")


def envelope(*changes: Json, waba: str = WABA) -> Json:
    """One entry with these changes."""
    return {
        "object": "whatsapp_business_account",
        "entry": [{"id": waba, "changes": list(changes)}],
    }


def change(
    *,
    messages: Sequence[Json] = (),
    statuses: Sequence[Json] = (),
    contacts: Sequence[Json] = (),
    number: str = NUMBER,
    display: str = DISPLAY,
    field: str = "messages",
    **more: object,
) -> Json:
    """One change of one number; what is empty is left out, as Meta does."""
    value: Json = {
        "messaging_product": "whatsapp",
        "metadata": {"display_phone_number": display, "phone_number_id": number},
    }
    filled = {"contacts": contacts, "messages": messages, "statuses": statuses}
    value |= {name: list(members) for name, members in filled.items() if members}
    return {"field": field, "value": value | more}


def contact(person: str = PERSON, name: str = "Ada", user_id: str = "") -> Json:
    """Somebody who wrote. `person` is a phone's digits, empty for who shows the scoped id alone."""
    known = {"wa_id": person, "user_id": user_id}
    return {"profile": {"name": name}} | {key: value for key, value in known.items() if value}


def message(
    wamid: str, at: float, kind: str, content: object, *, from_: str = PERSON, user_id: str = ""
) -> Json:
    """One message of any type; its content stands under the type's name, None for nowhere."""
    made: Json = {"from": from_} if from_ else {}
    made |= {"id": wamid, "timestamp": str(int(at)), "type": kind}
    made |= {} if content is None else {kind: content}
    return made | ({"from_user_id": user_id} if user_id else {})


def status(
    wamid: str,
    state: str,
    at: float,
    *,
    to: str = PERSON,
    tag: str = "",
    code: int | None = None,
    words: str = "",
) -> Json:
    """One status of a message of ours; without `to` nobody is named, as it happens."""
    made: Json = {"id": wamid, "status": state, "timestamp": str(int(at))}
    if to:
        made |= {"recipient_id": to} if to.isdigit() else {"recipient_user_id": to}
    if tag:
        made["biz_opaque_callback_data"] = tag
    if code is not None:
        made["errors"] = [{"code": code, "title": words, "error_data": {"details": words}}]
    elif state == "sent":
        made["pricing"] = {
            "billable": True,
            "pricing_model": "PMP",
            "category": "service",
            "type": "regular",
        }
    return made
