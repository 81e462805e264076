"""The numbers of a business, its apps, and the tokens that act for them."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.fakes.meta.errors import GraphRefusal
from tests.fakes.meta.payloads import WABA
from tests.fakes.recording import Json

PERMISSIONS = ("whatsapp_business_management", "whatsapp_business_messaging")


@dataclass
class Number:
    """One phone number. `token` is the only one that acts for it; `override` its own callback
    address, empty for none; `facts` go over what its node tells."""

    id: str
    display: str
    token: str
    waba: str = WABA
    override: str = ""
    facts: Json = field(default_factory=dict)

    def as_json(self, app: App, account: str) -> Json:
        """The node with all that can be asked of it. `account` is the business account's own
        callback address."""
        own = {"whatsapp_business_account": account, "phone_number": self.override}
        configured = {"application": app.callback} | {k: v for k, v in own.items() if v}
        chain = {"PHONE_NUMBER": self.id, "WABA": self.waba, "BUSINESS": "1", "APP": app.id}
        healthy = "AVAILABLE"
        shown: Json = {
            "id": self.id,
            "display_phone_number": f"+{self.display}",
            "verified_name": "Relay",
            "status": "CONNECTED",
            "quality_rating": "GREEN",
            "throughput": {"level": "STANDARD"},
            "platform_type": "CLOUD_API",
            "name_status": "APPROVED",
            "code_verification_status": "VERIFIED",
            "whatsapp_business_manager_messaging_limit": "TIER_2K",
            "health_status": {
                "can_send_message": healthy,
                "entities": [
                    {"entity_type": kind, "id": name, "can_send_message": healthy}
                    for kind, name in chain.items()
                ],
            },
            "webhook_configuration": configured,
        }
        return shown | self.facts


@dataclass
class App:
    """Our app at Meta: where its webhooks go by default, and for which fields."""

    id: str
    secret: str
    callback: str = ""
    fields: list[str] = field(default_factory=lambda: ["messages"])


@dataclass
class Business:
    """One business account: its numbers, and the apps that hear of it.

    `overrides` are the callback addresses of apps for this account. `permissions` and `expires`
    (epoch seconds, 0 for never) are those of every token.
    """

    app: App
    numbers: dict[str, Number]
    subscribed: dict[str, str] = field(default_factory=dict)
    permissions: list[str] = field(default_factory=lambda: list(PERMISSIONS))
    expires: int = 0

    def knows(self, token: str) -> bool:
        """Tell whether this token is good for anything."""
        return any(number.token == token for number in self.numbers.values())

    def acting_for(self, node: str, token: str) -> Number:
        """The number of this id, for a caller with this token. Raises GraphRefusal."""
        if not self.knows(token):
            raise GraphRefusal(190, subcode=463)
        number = self.numbers.get(node)
        if number is None or number.token != token:
            raise GraphRefusal(100, f"Object with ID '{node}' does not exist", subcode=33)
        return number

    def of(self, token: str) -> Number:
        """A number that this token acts for. Raises GraphRefusal."""
        if not self.knows(token):
            raise GraphRefusal(190, subcode=463)
        return next(number for number in self.numbers.values() if number.token == token)
