"""Provider client: which Python package asks a provider, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class ProviderClient:
    """A provider's own client.

    Attributes:
        package: Its Python package, which is the extra and the provider's name in `"openai:gpt-5"`, too.
        name: The class of its async client, which takes its key from the environment.
        module: The module that has the class, where that is not the package.
        inner: Where in an instance of the class the async client is, where it is not the instance.
        endpoint: The path of the method that takes a request.
        stream_endpoint: The path of the method that takes a request for a stream, where that is another one.
        settings: The settings that every request needs, unless the host says otherwise.
        streaming: The settings that a request for a stream needs.
        options: The options of a session that make parameters of a request, by the parameter.
    """

    package: str
    name: str
    endpoint: tuple[str, ...]
    stream_endpoint: tuple[str, ...] = ()
    module: str = ""
    inner: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType[str, Any]({}))
    streaming: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType[str, Any]({"stream": True}))
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType[str, str]({}))
