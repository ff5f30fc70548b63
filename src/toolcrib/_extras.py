"""Extras: the optional dependencies of a package, and the error where one is not installed."""

from __future__ import annotations

from dataclasses import dataclass

from toolcrib.errors import MissingExtraError


@dataclass(frozen=True, slots=True)
class Extra:
    """The extra that a feature needs: inside `with`, an import of one of its modules that fails names the extra.

    Of two, one inside the other, the outer one is named where it brings the module.

    Attributes:
        feature: The feature, as the error names it.
        name: The extra's name.
        modules: The modules that it brings. An error about one that is not of these passes as it is.
    """

    feature: str
    name: str
    modules: tuple[str, ...]

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        cause = error.__cause__ if isinstance(error, MissingExtraError) else error
        if not isinstance(cause, ModuleNotFoundError):
            return
        missing = f"{cause.name}."
        if any(missing.startswith(f"{module}.") or f"{module}.".startswith(missing) for module in self.modules):
            raise MissingExtraError(self.feature, self.name) from cause
