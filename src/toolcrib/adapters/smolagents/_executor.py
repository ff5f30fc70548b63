"""Our sandbox as the executor of a CodeAgent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from smolagents import Tool
from smolagents.local_python_executor import CodeOutput, InterpreterError, PythonExecutor

from toolcrib._short_repr import kind_of
from toolcrib.adapters.smolagents._calls import FINAL_ANSWER
from toolcrib.adapters.smolagents._members import Member
from toolcrib.code import ProgramSession, Toolkit
from toolcrib.errors import ModelRetry
from toolcrib.pipeline import Run
from toolcrib.sandbox import Sandbox, SandboxLimits
from toolcrib.tools import Tool as OurTool


class SandboxExecutor(PythonExecutor):
    """Our sandbox for the programs of an agent: `CodeAgent(executor=SandboxExecutor(), ...)`.

    Names stay from one program to the next. The agent's tools run outside, where the agent runs; those of `as_tools`
    and `guard` with their gates.

    Args:
        sandbox: The sandbox; by default the process's own sealed worker. It has to keep names between programs.
        limits: The limits of one program.

    Attributes:
        state: The output of the last program, under `_print_outputs`, where the agent looks for it after an error.
    """

    def __init__(self, sandbox: Sandbox | None = None, *, limits: SandboxLimits | None = None) -> None:
        self.state: dict[str, Any] = {"_print_outputs": ""}
        self._sandbox, self._limits = sandbox, limits
        self._tools: dict[str, Tool] = {}
        self._variables: dict[str, str] = {}
        self._session: ProgramSession | None = None
        self._answers: list[Any] = []

    def send_tools(self, tools: Mapping[str, Any]) -> None:
        """Replace the tools that programs call; where others are given, names that programs left are gone."""
        if self._session is None or dict(tools) != self._tools:
            self.cleanup()
            self._tools = dict(tools)

    def send_variables(self, variables: Mapping[str, Any]) -> None:
        """Set variables for the next program.

        Raises:
            TypeError: One of them has no JSON form.
        """
        for name, value in variables.items():
            try:
                self._variables[name] = json.dumps(value)
            except (TypeError, ValueError) as error:
                raise TypeError(
                    f"`{name}` of the agent's additional_args is {kind_of(value)}, which has no JSON form and "
                    f"cannot be given to the sandbox: give a tool that returns it"
                ) from error

    def __call__(self, code_action: str) -> CodeOutput:
        """Run a program, and return its result.

        Raises:
            InterpreterError: The program failed; the text says why.
        """
        session = self._opened()
        for name, text in self._variables.items():
            loaded = session.execute(f"import json as _json\n{name} = _json.loads({text!r})")
            if not loaded.success:
                raise InterpreterError(f"the variable `{name}` could not be given to the program: {loaded.error}")
        self._variables = {}
        self._answers.clear()
        result = session.execute(code_action)
        self.state["_print_outputs"] = result.output
        if self._answers:
            return CodeOutput(self._answers[0], result.output, is_final_answer=True)
        if not result.success:
            raise InterpreterError(result.error or result.text())
        return CodeOutput(result.return_value, result.output, is_final_answer=False)

    def cleanup(self) -> None:
        """End the session of the programs."""
        if self._session is not None:
            self._session.close()
            self._session = None

    # --- inside

    def _opened(self) -> ProgramSession:
        if self._session is None:
            members: list[OurTool[..., Any]] = [
                (_Final(tool, self._answers.append) if name == FINAL_ANSWER else Member(tool)).tool()
                for name, tool in self._tools.items()
            ]
            self._session = Toolkit(members, sandbox=self._sandbox, limits=self._limits).session(Run())
        return self._session


class _Final(Member):
    """The tool that ends the agent's run."""

    def __init__(self, theirs: Tool, give: Any) -> None:
        super().__init__(theirs)
        self._give = give

    async def run(self, arguments: dict[str, Any]) -> Any:
        answer = await super().run(arguments)
        self._give(answer)
        raise ModelRetry("the agent's run ends here: final_answer was called")
