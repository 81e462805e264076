"""The fields of an inbound webhook, for everything that a person can send on WhatsApp."""

from __future__ import annotations

import json

from tests.fakes.twilio.courier import Form

PERSON = "whatsapp:+15550100015"
Fields = dict[str, str]


def inbound_form(
    *,
    sid: str,
    account: str,
    from_: str,
    to: str,
    body: str,
    user_id: str = "",
    fields: Fields | None = None,
) -> Form:
    """A form as the sandbox sends it: all the usual fields, those of `fields` over them.

    `user_id` is the business-scoped id (`whatsapp:US.123...`) when Twilio knows it.
    """
    digits = from_.removeprefix("whatsapp:+")
    own: Fields = {
        "SmsMessageSid": sid,
        "NumMedia": "0",
        "ProfileName": "Ada",
        "MessageType": "text",
        "SmsSid": sid,
        "WaId": digits if digits.isdigit() else "",
        "SmsStatus": "received",
        "Body": body,
        "To": to,
        "NumSegments": "1",
        "ReferralNumMedia": "0",
        "MessageSid": sid,
        "AccountSid": account,
        "From": from_,
        "ApiVersion": "2010-04-01",
    }
    if user_id:
        own["ExternalUserId"] = user_id
    own |= fields or {}
    own = {name: value for name, value in own.items() if value or name == "Body"}
    own.setdefault("ChannelMetadata", _metadata(own))
    return list(own.items())


def _metadata(own: Fields) -> str:
    context = {n: own[n] for n in ("ButtonText", "ProfileName", "WaId", "Forwarded") if n in own}
    return json.dumps({"type": "whatsapp", "data": {"context": context}}, separators=(",", ":"))


def location(latitude: float, longitude: float, label: str = "", address: str = "") -> Fields:
    """A shared place; its body is empty."""
    return {
        "MessageType": "location",
        "Latitude": str(latitude),
        "Longitude": str(longitude),
        "Label": label,
        "Address": address,
    }


def button(text: str, payload: str, replied_sid: str) -> Fields:
    """A tap on a quick-reply button of a message of ours."""
    return {
        "MessageType": "interactive",
        "ButtonText": text,
        "ButtonPayload": payload,
        **reply(replied_sid),
    }


def template_button(text: str, payload: str, replied_sid: str) -> Fields:
    """A tap on a button of an approved template."""
    return button(text, payload, replied_sid) | {"MessageType": "button"}


def list_choice(row: str, title: str, replied_sid: str) -> Fields:
    """A row picked from a list message of ours."""
    return {"MessageType": "interactive", "ListId": row, "ListTitle": title, **reply(replied_sid)}


def flow(data: dict[str, str]) -> Fields:
    """A form filled in inside WhatsApp."""
    return {"MessageType": "interactive", "InteractiveData": json.dumps(data)}


def reply(replied_sid: str, sender: str = "") -> Fields:
    """The message hangs on an earlier one."""
    return {"OriginalRepliedMessageSid": replied_sid, "OriginalRepliedMessageSender": sender}


def forwarded(often: bool = False) -> Fields:
    return {"Forwarded": "true", "FrequentlyForwarded": "true" if often else "false"}


def referral(headline: str, source: str) -> Fields:
    """The person came from an advertisement."""
    return {
        "ReferralHeadline": headline,
        "ReferralBody": "An advertisement",
        "ReferralSourceType": "ad",
        "ReferralSourceId": "120200000000000000",
        "ReferralSourceUrl": source,
        "ReferralCtwaClid": "clid-0001",
    }


def unsupported() -> Fields:
    """Something that WhatsApp does not hand on."""
    return {"MessageType": "unsupported"}


EVERY_KIND: dict[str, Fields] = {
    "text": {},
    "location": location(52.52, 13.405, "Alexanderplatz", "Berlin"),
    "button": button("Confirm", "confirm:1", "MM" + "5" * 32),
    "template_button": template_button("Yes", "yes", "MM" + "5" * 32),
    "list": list_choice("row-2", "Second", "MM" + "5" * 32),
    "flow": flow({"screen": "DONE", "choice": "b"}),
    "reply": reply("SM" + "7" * 32, "whatsapp:+15550100099"),
    "forwarded": forwarded(),
    "frequently_forwarded": forwarded(often=True),
    "referral": referral("Spring sale", "https://fb.me/abc"),
    "unsupported": unsupported(),
}
"""One set of fields for every kind without a file; media are made by `FakeTwilio.inbound`."""

MEDIA_KINDS: dict[str, str] = {
    "image": "image/jpeg",
    "audio": "audio/ogg",
    "video": "video/mp4",
    "document": "application/pdf",
    "sticker": "image/webp",
    "contacts": "text/vcard",
}
"""MessageType of a file, and a content type that it comes with."""


def message_type(content_type: str) -> str:
    """The MessageType that goes with a file of this content type."""
    for kind, example in MEDIA_KINDS.items():
        if content_type == example:
            return kind
    family = content_type.partition("/")[0]
    return family if family in ("image", "audio", "video") else "document"
