"""Section `toolcrib` of a whole file of servers: what holds for the gateway, and what each server has by default."""

from __future__ import annotations

import json
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, Self, cast

from mcp_types import LoggingLevel
from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from toolcrib import budgets
from toolcrib._numbers import parse_span
from toolcrib.adapters.mcp_client import AskKind
from toolcrib.budgets import Budgets, Cost, Limit, Share
from toolcrib.errors import DatabaseError, MissingExtraError, PolicyError, explain_options
from toolcrib.gateway._credentials import CredentialPlace
from toolcrib.gateway._fields import FilePath, Part, Secret, Text, refuse
from toolcrib.pipeline import CallLimits, ErrorPolicy
from toolcrib.provenance import Provenance
from toolcrib.serving import claimed_groups

_Amount = Annotated[int | float, Field(ge=0, allow_inf_nan=False)]


class _LimitSection(Part):
    """A limit, as `Limit` has it.

    Attributes:
        per: `minute`, `hour`, `day`, or a number of seconds.
        tools: Names or patterns of tools, as they are named here.
    """

    calls: Annotated[int | None, Field(ge=0)] = None
    spend: _Amount | None = None
    currency: str = ""
    per: Literal["minute", "hour", "day"] | Annotated[int, Field(ge=1)] | None = None
    by: Share | list[Share] = Field(default_factory=list[Share])
    tools: list[str] = Field(default_factory=list[str])
    over: Literal["refuse", "ask"] = "refuse"

    @model_validator(mode="after")
    def _check(self) -> Self:
        try:
            self.limit()
        except ValueError as error:
            refuse(str(error))
        return self

    def limit(self) -> Limit:
        """Return it as a limit."""
        per = timedelta(seconds=self.per) if isinstance(self.per, int) else self.per
        return Limit(**self.model_dump(exclude={"per"}), per=per)


class _CostSection(Part):
    """The cost of calls of a tool.

    Attributes:
        amount: A fixed amount.
        argument: The argument that is the amount.
    """

    amount: _Amount | None = None
    argument: str | None = None
    currency: Annotated[str, Field(min_length=1)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.amount is None) == (self.argument is None):
            refuse("it has amount or argument, and not both")
        return self

    def cost(self) -> Cost:
        """Return it as a cost."""
        name, amount = self.argument, self.amount
        return Cost((lambda arguments: arguments.get(name)) if amount is None else amount, self.currency)  # pyright: ignore[reportArgumentType] -- `of` checks it


class BudgetSection(Part):
    """The limits of calls and of money, for all processes that serve the file.

    Attributes:
        database: Where it is counted: a SQLite file, by this one, or a `postgresql://` URL.
        costs: The costs of tools, by their names here or patterns.
        groups: The group of each principal; or a list of the groups that count, by names or patterns, of those that
            the caller's token says.
    """

    database: FilePath = Field(default="usage.db", validate_default=True, repr=False)
    limits: list[_LimitSection] = Field(default_factory=list[_LimitSection])
    costs: dict[str, _CostSection] = Field(default_factory=dict[str, _CostSection])
    groups: dict[str, str] | list[str] = Field(default_factory=dict[str, str])

    @model_validator(mode="after")
    def _check(self) -> Self:
        listed = {section.currency for section in self.costs.values()}
        for limit in self.limits:
            if limit.spend is not None and limit.currency not in listed:
                others = f"; the costs are in {', '.join(sorted(listed))}" if listed else ""
                refuse(
                    f"the limit of {limit.limit().text()} counts nothing, as `costs` has none in {limit.currency}"
                    f"{others}. "
                    f'Write "costs": {{"TOOL": {{"argument": "...", "currency": "{limit.currency}"}}}}'
                )
        return self

    def gate(self, group_claim: str) -> Budgets | None:
        """Return the gate; None where there is no limit.

        Args:
            group_claim: The claim of a token that has the groups of its holder.

        Raises:
            ValueError: The database cannot be used, or a limit is by group and there are no groups.
        """
        if not self.limits:
            return None
        try:
            store = (budgets.PostgresUsageStore if "://" in self.database else budgets.SqliteUsageStore)(self.database)
        except (DatabaseError, MissingExtraError, OSError) as error:
            raise ValueError(str(error)) from error
        costs = {name: section.cost() for name, section in self.costs.items()}
        counted = self.groups

        def of_token(call: Any) -> list[str]:
            """Return the groups that count of the caller of a call (`Call`)."""
            access = call.run.channel.access
            found = () if access is None else claimed_groups(access.claims, group_claim)
            return [group for group in found if any(fnmatchcase(group, pattern) for pattern in counted)]

        groups = None if not counted else counted if isinstance(counted, dict) else of_token
        return Budgets([limit.limit() for limit in self.limits], store=store, groups=groups, costs=costs)


def _span(value: Any) -> timedelta:
    """Return the time that a text such as "8h" says."""
    try:
        return parse_span(value)
    except (AttributeError, ValueError):
        refuse(f'must be a time such as "30m" or "8h", and is {value!r:.40}')


class _Approvals(Part):
    """The store of requests for approval, and who answers them.

    Attributes:
        database: A SQLite file, by this one, or a `postgresql://` URL; `toolcrib.db` when left out.
        by: `store`, or `elicit`, which asks the client.
        elicit_always: How long a client that is asked may let further calls run, within bounds that it is shown again:
            "8h". Not at all where it is left out.
        wait: Seconds that a call waits for its answer.
        place: Where a person answers, as clients are shown it.
    """

    database: FilePath = Field(default="toolcrib.db", validate_default=True, repr=False)
    by: Literal["store", "elicit"] | None = None
    elicit_always: Annotated[timedelta | None, BeforeValidator(_span)] = None
    wait: Annotated[float | None, Field(ge=0)] = None
    place: Text | None = None


class _Limits(Part):
    """The limits of each principal.

    Attributes:
        total: Calls.
        per_tool: Calls of one tool: a number for each of them, or numbers by name.
        concurrency: Calls at a time.
        pending: Requests for approval that may be pending at a time.
    """

    total: Annotated[int | None, Field(ge=0)] = None
    per_tool: Annotated[int, Field(ge=0)] | dict[str, Annotated[int, Field(ge=0)]] | None = None
    concurrency: Annotated[int | None, Field(ge=1)] = None
    pending: Annotated[int | None, Field(ge=1)] = None

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        for name in self.per_tool if isinstance(self.per_tool, dict) else ():
            if not {*name}.isdisjoint("*?["):
                limit = json.dumps({"limits": [{"calls": 10, "by": "tool", "tools": [name]}]})
                refuse(f'`per_tool` has the names of tools, and "{name}" is a pattern. Write "budgets": {limit}')
        return self

    @property
    def of_calls(self) -> CallLimits | None:
        """The limits of calls, or None."""
        options: dict[str, Any] = self.model_dump(exclude={"pending"}, exclude_none=True)
        return CallLimits(**options) if options else None


class _Defaults(Part):
    """The defaults of a server's section."""

    resources: bool | None = None
    resource_tools: bool | None = None
    prompts: bool | None = None
    instructions: bool | None = None
    approval: bool | Literal["unless_read_only"] | None = None
    limits: dict[str, int | float] | None = None
    required: bool | None = None
    trusted: bool | None = None
    pins: bool | str | None = None
    mode: str | None = None
    ask_client: bool | list[AskKind] | None = None
    approve_sampling: bool | None = None
    log_level: LoggingLevel | None = None
    record: bool | None = None
    telemetry: bool | None = None


class _Http(Part):
    """The address at which the gateway listens over HTTP.

    Attributes:
        public_url: The whole URL of the endpoint as clients write it, behind a proxy.
        allowed_hosts: Further names of this server.
        allowed_origins: Pages that may use it.
    """

    host: Text | None = None
    port: Annotated[int | None, Field(ge=0, le=65535)] = None
    path: Text | None = None
    public_url: Text | None = None
    allowed_hosts: list[str] = Field(default_factory=list[str])
    allowed_origins: list[str] = Field(default_factory=list[str])


class _Auth(Part):
    """The authorization server whose tokens are accepted.

    Attributes:
        jwks: The address of its keys, where its metadata does not say it.
        introspect: The address where it is asked about each token.
        client_secret_env: The secret for `introspect`, from an environment variable.
        scopes: The scopes that every request needs.
    """

    issuer: Text
    audience: str | list[str] = Field(default_factory=list[str])
    jwks: Text | None = None
    introspect: Text | None = None
    client_id: Text | None = None
    client_secret_env: Secret | None = Field(default=None, repr=False)
    client_auth: Literal["basic", "post"] = "basic"
    scopes: list[str] = Field(default_factory=list[str])
    principal_claim: str | None = None
    algorithms: list[str] | None = None

    @property
    def of_server(self) -> dict[str, Any]:
        """The arguments of an `AuthorizationServer`."""
        options = self.model_dump(exclude_none=True)
        return {name.removesuffix("_env"): value for name, value in options.items()}


def _load_policy(given: bool | str, info: ValidationInfo) -> Provenance | None:
    if isinstance(given, bool) or info.context is None:
        return Provenance() if given else None
    try:
        return Provenance.load(given)
    except PolicyError as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"{given} cannot be read: {error.strerror or error}")


@explain_options()
class GatewayOptions(Part):
    """The section `toolcrib` beside the servers; paths in it are by the file.

    Attributes:
        record: A file for the records of calls, or a database for their events; True is the database of the approvals.
        telemetry: Whether events go to OpenTelemetry.
        provenance: The policy by which calls are asked about: the default one for True, or that of a TOML file.
        http: Where it listens over HTTP.
        auth: The authorization server whose tokens are accepted.
        scopes: The scopes that tools need, by their names here or by patterns of names.
        groups: The groups of people to whom tools are offered, one of them at least, by the names of the tools here or
            by patterns of names.
        group_claim: The claim of a token that has the groups of its holder.
        tokens_env: The token of each principal, by name, each from an environment variable; for one machine without
            `auth`.
        defaults: The defaults of the section of each server.
        credentials: Where those of principals are kept, and the address of the consent pages.
        budgets: The calls and the money that may be used in a time, counted for all processes that serve the file.
        endpoints: The paths at which servers are offered over HTTP, each with its servers and options of its own.
        approvers: The rules of who approves which calls, or the TOML or JSON file that has them.
    """

    name: str | None = None
    instructions: Text | None = None
    approvals: _Approvals = Field(default_factory=cast("type[_Approvals]", dict), validate_default=True)
    limits: _Limits = Field(default_factory=_Limits)
    record: bool | FilePath = Field(default=False, repr=False)
    telemetry: bool = False
    errors: ErrorPolicy | None = None
    provenance: Annotated[bool | FilePath, AfterValidator(_load_policy)] = Field(default=False, validate_default=True)
    search: bool = False
    code_mode: bool = False
    http: _Http = Field(default_factory=_Http)
    auth: _Auth | None = None
    scopes: dict[str, str | list[str]] = Field(default_factory=dict[str, "str | list[str]"])
    groups: dict[str, str | list[str]] = Field(default_factory=dict[str, "str | list[str]"])
    group_claim: Text = "groups"
    tokens_env: dict[str, Secret] = Field(default_factory=dict[str, str], repr=False)
    defaults: _Defaults = Field(default_factory=_Defaults)
    credentials: CredentialPlace = Field(default_factory=CredentialPlace)
    budgets: BudgetSection = Field(default_factory=BudgetSection)
    approvers: FilePath | dict[str, Any] | None = Field(default=None, repr=False)
    endpoints: dict[str, Any] = Field(default_factory=dict[str, Any], repr=False)

    @property
    def policy(self) -> Provenance | None:
        """The policy by which calls are asked about, or None."""
        return self.provenance if isinstance(self.provenance, Provenance) else None
