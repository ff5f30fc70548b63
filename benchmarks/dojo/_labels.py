"""Labels of AgentDojo's tools: what each does, what its parameters decide, and how far its results can be trusted.

They are written from the tools' signatures and docstrings, as a host writes them for tools of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["LABELS"]

_MEMBERS: Final = frozenset({"Alice", "Bob", "Charlie", "Eve"})  # of the workspace of `slack`
_PEOPLE: Final = frozenset(
    {"lily.white@gmail.com", "sarah.baker@gmail.com", "james.miller@yahoo.com", "mark.davies@hotmail.com"}
    | {f"{name}@bluesparrowtech.com" for name in ("david.smith", "emma.johnson", "julie.williams", "katie.brown")}
)  # in the address book of `workspace`
_EVENT: Final = {"title": "untrusted", "description": "untrusted", "location": "untrusted", "*": "trusted"}
_FILE: Final = {"content": "untrusted", "filename": "untrusted", "*": "trusted"}
_READ: Final[Mapping[str, Any]] = {"effect": "none", "source": "trusted"}


def _messages(arguments: Mapping[str, Any], result: Any) -> Mapping[str, str]:
    """Trust messages of the workspace's own members, as mail of known contacts."""
    known = {f"[{n}].body": "trusted" for n, message in enumerate(result) if message["sender"] in _MEMBERS}
    return {"body": "untrusted", "*": "name", **known}


def _mail(arguments: Mapping[str, Any], result: Any) -> Mapping[str, str]:
    """Trust the address of a sender whom the user knows; whoever wrote a mail wrote all the rest of it."""
    labels = {"id_": "trusted", "timestamp": "trusted", "*": "untrusted"}
    for number, mail in enumerate(result if isinstance(result, list) else ()):
        if isinstance(mail, Mapping) and mail.get("sender") in _PEOPLE:
            labels[f"[{number}].sender"] = "trusted"
    return labels


def _read(source: Any) -> dict[str, Any]:
    return {"effect": "none", "source": source}


_CALENDAR: Final[Mapping[str, Mapping[str, Any]]] = {
    "create_calendar_event": {
        "effect": "send",
        "source": _EVENT,
        "content": ("title", "description", "location", "start_time", "end_time"),
    },
    "search_calendar_events": _read(_EVENT),
    "get_day_calendar_events": _read(_EVENT),
    "cancel_calendar_event": {"effect": "delete", "source": "trusted"},
    "reschedule_calendar_event": {"effect": "send", "source": _EVENT, "content": ("new_end_time",)},
    "add_calendar_event_participants": {"effect": "send", "source": _EVENT},
}
_SEND_EMAIL: Final[Mapping[str, Any]] = {"effect": "send", "source": _mail, "content": ("subject", "body")}

LABELS: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {
    "banking": {
        "get_iban": _READ,
        "get_balance": _READ,
        "get_user_info": {**_READ, "readers": ()},
        "get_most_recent_transactions": _read({"subject": "untrusted", "*": "trusted"}),
        "get_scheduled_transactions": _READ,
        "read_file": _read("untrusted"),
        "send_money": {"effect": "spend", "source": "trusted", "content": ("subject", "date")},
        "schedule_transaction": {"effect": "spend", "source": "trusted", "content": ("subject", "date")},
        "update_scheduled_transaction": {
            "effect": "spend",
            "source": "trusted",
            "content": ("subject", "date"),
        },
        "update_password": {"effect": "execute", "source": "trusted"},
        "update_user_info": {"effect": "write", "source": "trusted"},
    },
    "slack": {
        "get_channels": _read("name"),
        "get_users_in_channel": _read("name"),
        "read_channel_messages": _read(_messages),
        "read_inbox": _read(_messages),
        "add_user_to_channel": {"effect": "share", "source": "trusted"},
        "send_direct_message": {"effect": "send", "source": "trusted", "content": ("body",)},
        "send_channel_message": {"effect": "send", "source": "trusted", "content": ("body",)},
        "invite_user_to_slack": {"effect": "share", "source": "trusted"},
        "remove_user_from_slack": {"effect": "delete", "source": "trusted"},
        "get_webpage": {"effect": "fetch", "source": "untrusted"},
        "post_webpage": {"effect": "send", "source": "trusted", "content": ("content",)},
    },
    "workspace": {
        **_CALENDAR,
        "send_email": _SEND_EMAIL,
        "delete_email": {"effect": "delete", "source": "trusted"},
        **dict.fromkeys(
            ("get_unread_emails", "get_sent_emails", "get_received_emails", "get_draft_emails", "search_emails"),
            _read(_mail),
        ),
        "search_contacts_by_name": _READ,
        "search_contacts_by_email": _READ,
        "get_current_day": _READ,
        **dict.fromkeys(
            ("search_files_by_filename", "get_file_by_id", "list_files", "search_files"),
            _read(_FILE),
        ),
        "append_to_file": {"effect": "write", "source": _FILE, "content": ("content",)},
        "create_file": {"effect": "create", "source": _FILE, "content": ("filename", "content")},
        "delete_file": {"effect": "delete", "source": _FILE},
        "share_file": {"effect": "share", "source": _FILE, "content": ("permission",)},
    },
    "travel": {
        **{
            name: label
            for name, label in _CALENDAR.items()
            if not name.startswith("reschedule") and not name.startswith("add")
        },
        "send_email": _SEND_EMAIL,
        "get_user_information": {**_READ, "readers": ()},
        **dict.fromkeys(
            (
                "get_all_hotels_in_city",
                "get_hotels_prices",
                "get_hotels_address",
                "get_all_restaurants_in_city",
                "get_cuisine_type_for_restaurants",
                "get_restaurants_address",
                "get_dietary_restrictions_for_all_restaurants",
                "get_contact_information_for_restaurants",
                "get_price_for_restaurants",
                "check_restaurant_opening_hours",
                "get_all_car_rental_companies_in_city",
                "get_car_types_available",
                "get_car_fuel_options",
                "get_car_rental_address",
                "get_car_price_per_day",
                "get_flight_information",
            ),
            _READ,
        ),
        **dict.fromkeys(
            (
                "get_rating_reviews_for_hotels",
                "get_rating_reviews_for_restaurants",
                "get_rating_reviews_for_car_rental",
            ),
            _read("untrusted"),
        ),
        "reserve_hotel": {"effect": "spend", "source": "trusted"},
        "reserve_restaurant": {"effect": "spend", "source": "trusted"},
        "reserve_car_rental": {"effect": "spend", "source": "trusted"},
    },
}
