"""The fields of Meta's webhooks beside people's messages. Pure."""

from __future__ import annotations

from bot.domain.message import Event, Ignored, Reported, shortened
from channels.raw import Raw, joined, title
from channels.whatsapp_cloud.parse import phone

_REPORTS = frozenset({
    "account_alerts", "account_review_update", "account_update", "business_capability_update",
    "message_template_components_update", "message_template_quality_update",
    "message_template_status_update", "phone_number_name_update", "phone_number_quality_update",
    "security", "template_category_update",
})  # fmt: skip
"""Fields that tell something of the account which an operator should know."""

_TOLD = (
    "event", "alert_type", "alert_severity", "alert_status", "decision", "current_limit",
    "message_template_name", "new_quality_score", "new_category", "reason",
)  # fmt: skip
"""The words of a report that are worth a line."""

_UNSERVED = {
    "message_echoes": "another program of ours answered",
    "user_preferences": "they are about marketing, which is not sent",
    "history": "older messages are not answered",
    "smb_app_state_sync": "contacts are not kept",
    "messaging_handovers": "who has the conversation is told by standby",
    "calls": "calls are not served",
    "flows": "the state of a flow is not a message",
    "group_lifecycle_update": "groups are not administered",
    "group_participants_update": "groups are not administered",
    "group_settings_update": "groups are not administered",
    "group_status_update": "groups are not administered",
}


def event_of_field(field: str, value: Raw) -> Event:
    """The event that a change of another field than `messages` is to us."""
    if field == "standby":
        return Reported("standby: another agent has the number, and people's messages go there")
    if field in _REPORTS:
        number = shortened(phone(value, "display_phone_number"))
        return Reported(joined(field, number, *(title(value, name) for name in _TOLD)))
    if rule := _UNSERVED.get(field):
        return Ignored(f"{field}: {rule}")
    return Ignored(f"unknown field: {title({'': field}, '')[:80]}")
