"""Budgets in a file of servers: limits of calls and of money, and the price list of its tools."""

from __future__ import annotations

from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from toolcrib import budgets
from toolcrib.budgets import Budgets, Cost, Limit, Share
from toolcrib.errors import DatabaseError, MissingExtraError
from toolcrib.gateway._fields import FilePath, Part, refuse
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
