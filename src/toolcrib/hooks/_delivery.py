"""Deliveries: filters of each value and result of a tool before anyone outside has it; and shorteners of results."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from toolcrib.calls import KeptResult
from toolcrib.hooks._parameters import name_of, require_list, require_parameters


@runtime_checkable
class Delivery(Protocol):
    """A filter of the values and results that leave a call.

    A class of your own with this method is one; it may also have a `name`.
    """

    def deliver(self, call: Any, value: Any) -> Any:
        """Return the value to deliver in place of a value of a call (`Call`); a plain method or an async one.

        It is given each value of a stream, what a tool returns, and a result that a hook, a gate or the host gives in
        the tool's place. One that raises fails the call, and the value is not delivered.
        """
        ...


DeliveryLike: TypeAlias = Delivery | Callable[[Any, Any], Any]
"""A delivery, or a function of the call and the value."""


@dataclass(frozen=True, slots=True)
class DeliveryStep:
    """A delivery in the form that a pipeline runs.

    Attributes:
        name: The name that errors show.
        deliver: Returns the value to deliver, as `Delivery.deliver`.
    """

    name: str
    deliver: Callable[[Any, Any], Any]


class Shortener(Protocol):
    """Makes the text to show in the place of a result that is too long, after the deliveries; the value stays."""

    @property
    def name(self) -> str:
        """The name in the list of a call's steps."""
        ...

    async def shorten(self, call: Any, value: Any) -> KeptResult | None:
        """Return the text to show in place of the result of a call (`Call`); None for one that is not too long."""
        ...


def delivery_steps(who: str, deliveries: Iterable[DeliveryLike]) -> tuple[DeliveryStep, ...]:
    """Return the steps of deliveries.

    Args:
        who: The object that they are given to, for errors.
        deliveries: Deliveries and functions.

    Raises:
        TypeError: One is neither a delivery nor a function of the call and the value.
    """
    if isinstance(deliveries, Delivery) or callable(deliveries):
        raise TypeError(f"{who}: deliveries must be a list of them, as in deliveries=[{name_of(deliveries)}]")
    require_list(who, "deliveries", deliveries, "deliver")
    return tuple(_step_of(who, delivery) for delivery in deliveries)


def _step_of(who: str, delivery: DeliveryLike) -> DeliveryStep:
    name = name_of(delivery)
    if isinstance(delivery, type):
        raise TypeError(f"{who}: the delivery {name} is a class; give an object of it, as in deliveries=[{name}()]")
    deliver = delivery.deliver if isinstance(delivery, Delivery) else delivery
    if not callable(deliver):
        mend = "give an object with `deliver(call, value)`, or a function of call and value"
        raise TypeError(f"{who}: {delivery!r:.80} is not a delivery; {mend}")
    require_parameters("delivery", deliver, "call", "value", result="the value that goes out")
    return DeliveryStep(name, deliver)
