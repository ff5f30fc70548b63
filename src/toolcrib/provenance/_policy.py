"""Policies: which values of others are asked about, refused or let through, as Python or as a TOML file."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias, cast

from pydantic import BeforeValidator, ConfigDict, SkipValidation, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass
from pydantic_core import ErrorDetails

from toolcrib import provenance
from toolcrib.errors import PolicyError, closest, explain_options
from toolcrib.hooks import FeatureParts
from toolcrib.provenance._question import OriginKind
from toolcrib.tools import Effect, Source, require_source

Verdict: TypeAlias = Literal["allow", "ask", "deny"]
"""Verdicts about a call because of the origin of a value: it runs, a person is asked, or it is refused."""

_STRICT: Final = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
_A_RULE: Final = "a rule"
_FIELD_OF: Final[Mapping[OriginKind, str]] = {"model": "unknown", "private": "private"}  # of the others: untrusted
_MENDS: Final = {
    "tuple_type": 'is a list of texts, as in ["body"]',
    "string_type": 'is a text, as in "ann"',
    "bool_type": "is true or false",
    "bool_parsing": "is true or false",
}


@dataclass(frozen=True, slots=True)
class ToolLabels:
    """The labels by which a policy judges the calls of one tool.

    Attributes:
        effect: The effect of the tool.
        source: How far its results can be trusted; None for results that the run has read before.
        content: The parameters that say something, and decide nothing; `*` is for all but those in `deciding`.
        deciding: The parameters that decide, also where `content` has `*`.
        readers: To whom its results may be sent; None for all.
        fields: The names that its schema gives to parts of its arguments: another key of an object is a value.
        untrusted: The verdict about a call with a value of a stranger's.
        unknown: The verdict about a call with a value whose source only the model knows.
        private: The verdict about a call that sends a private value to others than its readers.
    """

    effect: Effect = "execute"
    source: Source | None = "untrusted"
    content: frozenset[str] = frozenset()
    readers: Collection[str] | None = None
    fields: frozenset[str] = frozenset()
    untrusted: Verdict = "ask"
    unknown: Verdict = "ask"
    private: Verdict = "ask"
    deciding: frozenset[str] = frozenset()

    def content_of(self, names: Collection[str]) -> frozenset[str]:
        """Return those of a call's arguments that say something and decide nothing."""
        return frozenset(names).difference(self.deciding) if "*" in self.content else self.content

    def verdict(self, kind: OriginKind) -> Verdict:
        """Return the verdict about a call that has a value of this origin."""
        return cast("Verdict", getattr(self, _FIELD_OF.get(kind, "untrusted")))


def _checked_source(given: Any) -> Any:
    if given is not None:
        require_source(_A_RULE, given)
    return given


@explain_options()
@checked_dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class Rule:
    """A rule of a policy: the calls that it is for, and the labels and verdicts that it gives them.

    The names of tool, toolset and principal may have `*` for any characters. Of several rules that say something about
    the same, the last one counts.

    Attributes:
        tool: The tool's name, as models call it.
        toolset: A toolset that the tool is in, by its `toolset_id`; of an MCP server's tools the server's name.
        principal: The one on whose behalf the call is made. `*` is also for calls without a principal.
        effect: The effect of the tool.
        source: How far its results can be trusted.
        content: Parameters that say something and decide nothing, besides those that the tool declares; `*` is for all
            but those that are marked with `Decides` or named in `deciding`.
        deciding: Parameters that decide, though the tool declares them as content.
        readers: To whom its results may be sent; `["*"]` is everyone.
        untrusted: The verdict about a call with a deciding value of a stranger's: `allow`, `ask` or `deny`.
        unknown: The verdict about a call with a deciding value whose source only the model knows.
        private: The verdict about a call that sends a private value to others than its readers.

    Raises:
        ValueError: A field is not one of these, or the rule says nothing.
    """

    tool: str = "*"
    toolset: str = "*"
    principal: str = "*"
    effect: Effect | None = None
    source: Annotated[SkipValidation[Source | None], BeforeValidator(_checked_source)] = None
    content: tuple[str, ...] = ()
    deciding: tuple[str, ...] = ()
    readers: tuple[str, ...] | None = None
    untrusted: Verdict | None = None
    unknown: Verdict | None = None
    private: Verdict | None = None

    def __post_init__(self) -> None:
        if not (self._replacements() or self.content or self.deciding):
            raise ValueError(f"it says nothing of the calls that it is for; give it one of {', '.join(_SAYS)}")

    def _replacements(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in _REPLACED}
        return {name: value for name, value in found.items() if value is not None}

    def fits(self, tool: str, toolsets: Collection[str], principal: str | None) -> bool:
        """Return whether the rule is for calls of a tool on behalf of a principal."""
        return (
            fnmatchcase(tool, self.tool)
            and (self.toolset == "*" or any(fnmatchcase(toolset, self.toolset) for toolset in toolsets))
            and (self.principal == "*" or (principal is not None and fnmatchcase(principal, self.principal)))
        )

    def over(self, labels: ToolLabels) -> ToolLabels:
        """Return labels with those of the rule in their place."""
        values = self._replacements()
        if self.readers == ("*",):
            values["readers"] = None
        if labels.source is None:
            values.pop("source", None)  # such results were read before, by what their own tools say
        deciding = labels.deciding.difference(self.content).union(self.deciding)
        content = labels.content.union(self.content).difference(self.deciding)
        return replace(labels, content=content, deciding=deciding, **values)


_REPLACED: Final = ("effect", "source", "readers", "untrusted", "unknown", "private")
_SAYS: Final = (*_REPLACED, "content", "deciding")


@explain_options()
@checked_dataclass(frozen=True, slots=True, config=_STRICT)
class Provenance:
    """A policy: values that decide where an effect goes have to come from the user, the host or a trusted source.

    Give it to a run: `Run(features=[Provenance()])`. Another call needs approval, and its request says which text each
    such value is from.

    Attributes:
        dry_run: Ask and refuse nothing, and note in the record the calls that would be asked about or refused.
        rules: The differences for some tools, toolsets or principals.
        frozen: Ask about programs, too, that were written after text of others was read: until then the model has
            followed the user alone.
    """

    dry_run: bool = False
    rules: tuple[Rule, ...] = ()
    frozen: bool = False

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Provenance:
        """Return the policy of a TOML file, whose keys are the fields of this class.

        Raises:
            PolicyError: The file is not TOML, or a field is unknown; the error names the file, the rule and the field.
            OSError: The file cannot be read.
        """
        try:
            return _POLICY.validate_python(tomllib.loads(Path(path).read_text("utf-8")))
        except ValidationError as error:
            problems = [_problem(detail) for detail in error.errors(include_url=False)]
            raise PolicyError(str(path), tuple(dict.fromkeys(problems))) from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise PolicyError(str(path), (f"it is not TOML: {error}",)) from None

    def register(self) -> FeatureParts:
        """Return the parts that the policy registers with a run."""
        return provenance.parts_of(self)  # of a module that needs this one

    def labels(self, declared: ToolLabels, tool: str, toolsets: Collection[str], principal: str | None) -> ToolLabels:
        """Return the labels of a tool's calls, where the tool declares these."""
        for rule in self.rules:
            if rule.fits(tool, toolsets, principal):
                declared = rule.over(declared)
        return declared


_POLICY: Final = TypeAdapter(Provenance)


def _problem(detail: ErrorDetails) -> str:
    """Return the problem of a field in a file, and its place."""
    place = [part for part in detail["loc"] if part not in ("function-before", "tuple", "list")]
    rule = f"rule {place[1] + 1}" if place[:1] == ["rules"] and len(place) > 1 and isinstance(place[1], int) else ""
    path = ".".join(map(str, place[2:] if rule else place))
    owner = Rule if rule else Provenance
    if path == "rules" or (rule and not path and detail["type"] != "value_error"):
        problem = f"rules must be tables, written [[rules]], and not {detail['input']!r:.80}"
    elif detail["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        known = [field.name for field in fields(owner)]
        problem = f"`{path}` is unknown. {closest(path, known)}"
    elif detail["type"] == "value_error":
        problem = str(detail["ctx"]["error"]).removeprefix(f"{_A_RULE}: ") if "ctx" in detail else detail["msg"]
    else:
        mend = _MENDS.get(detail["type"]) or detail["msg"].replace("Input should be", "is one of")
        problem = f"`{path}` {mend}, and not {detail['input']!r:.80}"
    return f"{rule}: {problem}" if rule else problem
