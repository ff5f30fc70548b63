"""The library of a toolkit's saved programs: checks each before it is kept, and makes a tool of it. Needs `schema`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from inspect import isawaitable
from typing import Any, Final, TypeAlias

from toolcrib.calls import Outcome, Reject, RunNormally, ToolCall, new_call_id
from toolcrib.code._as_tool import TOOL_NAME, OnResult
from toolcrib.code._extract import off_loop
from toolcrib.code._program_facts import ProgramFacts
from toolcrib.code._program_store import MemoryProgramStore, ProgramStore
from toolcrib.code._program_tools import mentioned_in, program_names
from toolcrib.code._result import ExecutionResult
from toolcrib.code._saved_program import SavedProgram, definition_digest, input_schema, with_header
from toolcrib.code._toolkit import Toolkit
from toolcrib.errors import InvalidSchema, ModelRetry, SavedProgramError, UnknownTool, closest, explain_options
from toolcrib.hooks import HookSet, require_parameters
from toolcrib.jsonschema.checker import misfits
from toolcrib.pipeline import Pipeline, Run, run_for
from toolcrib.sandbox import parse_program
from toolcrib.tools import Tool, ez_tool
from toolcrib.tools.from_schema import schema_tool

ProgramPolicy: TypeAlias = Callable[[SavedProgram], "str | Awaitable[str | None] | None"]
"""Returns why a program may not be kept; None when it may."""

_MOST_DESCRIPTION: Final = 2_000  # characters
_HELD_BACK: Final = "a trial does not call it, since it is not declared to have no effect"


@explain_options()
class ProgramLibrary:
    """Saved programs of one toolkit: kept when they have been checked, and called again with inputs as tools are.

    Args:
        toolkit: Its tools are those that the programs may call; each program can call the ones that it names.
        store: Where the programs are kept; in memory when None.
        policy: Is asked before a program is kept, with the tools that it calls: `policy(program)` returns why it may
            not be kept, or None. Sync or async.
        on_result: A listener for the result of each call, as for `Toolkit.as_tool`: a host that resumes paused
            programs takes them from it.
    """

    def __init__(
        self,
        toolkit: Toolkit,
        store: ProgramStore | None = None,
        *,
        policy: ProgramPolicy | None = None,
        on_result: OnResult | None = None,
    ) -> None:
        if callable(policy):
            reason = "the reason against the program, or None"
            require_parameters("program policy", policy, "program", result=reason, takes_none=True)
        self._toolkit, self._store = toolkit, store or MemoryProgramStore()
        self._policy, self._on_result = policy, on_result

    # --- keeping

    @explain_options()
    async def save(
        self,
        name: str,
        code: str,
        *,
        inputs: Mapping[str, Any] | None = None,
        description: str = "",
        author: str = "",
        trial: Mapping[str, Any] | None = None,
        replace: bool = False,
    ) -> SavedProgram:
        """Check a program, and keep it.

        It has to be free of the mistakes that `Toolkit.check` finds, to use each of its inputs, and to name the tools
        that it calls: not to use `exec`, `eval`, `globals` and their like. Then the policy is asked.

        Args:
            name: By which it is called; not that of a tool of the toolkit, nor of a builtin.
            code: The program. The value of its last expression is the result, or else what it prints.
            inputs: Each input's type, or its JSON schema, by the name that the program has for it.
            description: Its purpose, for a model.
            author: Who wrote it.
            trial: Inputs with which the program is run once before it is kept, and must not fail. Tools without effect
                (`effect="none"`) are called; where another one would be, the trial ends well.
            replace: Replace a program of this name.

        Raises:
            SavedProgramError: It cannot be kept; the message says why, with all mistakes by line.
            TypeError: The policy returns neither a text nor None.
            SandboxError: No worker could be had for the trial.
        """
        program = await off_loop(lambda code: self._checked(name, code, inputs or {}, description, author), code)
        answer = None if self._policy is None else self._policy(program)
        refused = await answer if isawaitable(answer) else answer
        if refused is not None and not isinstance(refused, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            mend = "return the reason against the program, a text, or None when it may be kept"
            raise TypeError(f"the program policy returned {refused!r:.40}; {mend}")
        if refused is not None:
            raise SavedProgramError(name, f"it may not be kept: {refused}")
        if trial is not None:
            await self._try(program, trial)
        if not await self._store.add(program, replace=replace):
            raise SavedProgramError(name, "another program has this name; pass `replace=True` to replace it")
        return program

    def _checked(self, name: str, code: str, inputs: Mapping[str, Any], description: str, author: str) -> SavedProgram:
        if name in self._toolkit.function_names or any(name == tool.name for tool in self._toolkit.tools):
            raise SavedProgramError(name, "a tool has this name")
        if len(description) > _MOST_DESCRIPTION:
            raise SavedProgramError(name, f"its description has more than {_MOST_DESCRIPTION} characters")
        clashing = [input for input in inputs if input in self._toolkit.function_names]
        if clashing:
            raise SavedProgramError(name, f"its input `{clashing[0]}` has the name of a tool")
        schema = input_schema(name, inputs)
        program = SavedProgram(name, with_header(code, schema), description, schema, author=author)
        if name not in program_names([name]):
            raise SavedProgramError(name, "a builtin has this name")
        self._check_inputs(program)
        text = program.text(dict.fromkeys(program.input_names))
        if findings := self._toolkit.check(text):
            found = [f"line {max(finding.line - 1, 0)}: {finding.kind}: {finding.message}" for finding in findings]
            raise SavedProgramError(name, "\n".join(found))
        facts = ProgramFacts(parse_program(code, len(code)).tree)
        used = {use.node.id for use in facts.names}
        if facts.is_open:
            raise SavedProgramError(name, "which tools it calls cannot be read from it: call them by their names")
        unused = [input for input in program.input_names if input not in used]
        if unused:
            raise SavedProgramError(name, f"it does not use its input `{unused[0]}`")
        return SavedProgram(
            name, program.code, description, schema, self._definitions(_called(code, used, self._toolkit)), author
        )

    def _check_inputs(self, program: SavedProgram) -> None:
        """Raise SavedProgramError for a schema of which no tool can be made, or a default that does not fit it."""
        try:
            self._tool_of(program, self._toolkit, None)
        except InvalidSchema as error:
            raise SavedProgramError(program.name, f"the schema of its inputs is not valid: {error.problem}") from None
        found = misfits(program.inputs, program.defaults, f"the defaults of the program `{program.name}`")
        wrong = [misfit for misfit in found if program.defaults.keys() & misfit.place[:1]]
        if wrong:
            raise SavedProgramError(program.name, f"a default does not fit its schema: {wrong[0]}")

    def _definitions(self, functions: Iterable[str]) -> dict[str, str]:
        return {function: definition_digest(self._toolkit.get_tool(function)) for function in functions}

    async def _try(self, program: SavedProgram, inputs: Mapping[str, Any]) -> None:
        held_back: list[str] = []

        async def hold_back(call: Any, input: Any) -> Any:
            if self._toolkit.get_tool(call.name).options.effect == "none":
                return RunNormally(input)
            held_back.append(call.name)
            return Reject(_HELD_BACK)

        hooks = HookSet()
        hooks.register(hold_back)
        tool = self._tool_of(program, self._toolkit.with_hooks(hooks), None)
        outcome = await Pipeline([tool]).run(ToolCall(tool.name, dict(inputs), new_call_id()), run_for(None, "code"))
        if outcome.kind != "completed" and not held_back:
            raise SavedProgramError(program.name, f"its trial failed: {outcome.text()}")

    # --- what is kept

    @explain_options()
    async def get(self, name: str) -> SavedProgram:
        """Return a program; raises SavedProgramError where no program has this name."""
        found = await self._store.get(name)
        if found is None:
            known = [program.name for program in await self._store.list()]
            raise SavedProgramError(name, f"no program of this name is kept. {closest(name, known)}")
        return found

    async def list(self) -> tuple[SavedProgram, ...]:
        """Return all programs, by name."""
        return await self._store.list()

    @explain_options()
    async def remove(self, name: str) -> bool:
        """Remove a program, and return whether there was one of this name."""
        return await self._store.remove(name)

    def changes(self, program: SavedProgram) -> tuple[str, ...]:
        """Return a sentence for each change since the program was saved in the tools that it calls."""
        if not isinstance(program, SavedProgram):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            raise TypeError(f"changes: program is {program!r:.80}; give what `await library.get(name)` returns")
        found: list[str] = []
        for name, digest in program.tools.items():
            try:
                tool = self._toolkit.get_tool(name)
            except UnknownTool:
                found.append(f"the tool `{name}` no longer exists")
                continue
            if definition_digest(tool) != digest:
                found.append(f"the definition of `{name}` has changed")
        return tuple(found)

    # --- calling

    async def tool(self, name: str) -> Tool[..., Any]:
        """Return a program as a tool, whose arguments are its inputs.

        Its own calls pass the pipeline at each call of the tool: they are approved, limited and recorded like all
        others, and belong to the run of the tool. A call fails where the program fails, is paused, or relies on the
        definition of a tool that has changed since it was kept; look at the program then, and save it again.

        Raises:
            SavedProgramError: No program of this name is kept.
        """
        return self._tool_of(await self.get(name), self._toolkit, self._on_result)

    async def tools(self) -> tuple[Tool[..., Any], ...]:
        """Return all programs as tools, by name."""
        return tuple(self._tool_of(program, self._toolkit, self._on_result) for program in await self.list())

    @explain_options()
    async def run(self, name: str, inputs: Mapping[str, Any] | None = None, run: Run | None = None) -> Outcome:
        """Call a program as a tool, and return the outcome.

        Args:
            name: The program.
            inputs: Its inputs, which are validated by their schema.
            run: The run that the call and the program's own calls belong to; one of its own when None.

        Raises:
            SavedProgramError: No program of this name is kept.
        """
        tool = await self.tool(name)
        pipeline = Pipeline([tool], sinks=self._toolkit.sinks)
        return await pipeline.run(ToolCall(name, dict(inputs or {}), new_call_id()), run_for(run, "code"))

    def save_tool(self, *, name: str = "save_program", requires_approval: bool = True) -> Tool[..., Any]:
        """Return a tool with which a model keeps a program that it wrote; a person is asked, unless told otherwise.

        What it kept is among `tools()` then. A `Provenance` policy judges the program as it does any other.
        """

        async def save_program(
            program_name: str, code: str, description: str, inputs: dict[str, dict[str, Any]]
        ) -> str:
            """Keep a Python program, so that it can be called again with other inputs, as a tool.

            Args:
                program_name: The name of the tool that it becomes.
                code: The program. It uses its inputs as variables; the value of its last expression is the result.
                description: Its purpose.
                inputs: The JSON schema of each input, by the name of its variable.
            """
            try:
                if program_name in (name, TOOL_NAME):
                    raise SavedProgramError(program_name, "a tool has this name")
                await self.save(program_name, code, inputs=inputs, description=description, author="model")
            except SavedProgramError as error:
                raise ModelRetry(str(error)) from None
            return f"`{program_name}` is kept."

        make = ez_tool(name=name, requires_approval=requires_approval, effect="program", source="trusted")
        return make(save_program)

    async def _called(
        self, program: SavedProgram, toolkit: Toolkit, inputs: Mapping[str, Any], on_result: OnResult | None
    ) -> Any:
        """Return the program's value, or else its output; raises SavedProgramError where it fails."""
        if changes := self.changes(program):
            raise SavedProgramError(program.name, f"{'; '.join(changes)}. Look at the program, and save it again")
        result = await _needed(toolkit, program).execute_async(program.text(inputs), origin="host")
        if on_result is not None:
            on_result(result)
        if not result.success:
            raise SavedProgramError(program.name, _failure(result))
        return result.output if result.return_value is None else result.return_value

    def _tool_of(self, program: SavedProgram, toolkit: Toolkit, on_result: OnResult | None) -> Tool[..., Any]:
        async def call(**inputs: Any) -> Any:
            try:
                return await self._called(program, toolkit, inputs, on_result)
            except SavedProgramError as error:
                raise ModelRetry(str(error)) from None

        described = program.description or f"Run the program `{program.name}`."
        return schema_tool(program.name, program.inputs, call, description=described, effect="program", source=None)


def _called(code: str, used: set[str], toolkit: Toolkit) -> list[str]:
    """Return the tools that a program calls or passes on, by the names it uses, given the names that it reads."""
    functions = [name for name in toolkit.function_names if _is_tool(toolkit, name)]
    return [name for name in mentioned_in(code, functions) if name in used or name.partition("__")[0] in used]


def _failure(result: ExecutionResult) -> str:
    """Return the text for a caller about a program that failed; a caller cannot repair it."""
    completed = dict.fromkeys(call["name"] for call in result.tool_calls if call["outcome"] == "completed")
    text = replace(result, hint="").text()
    return f"{text}\nCalls that it had made are not undone: {', '.join(completed)}." if completed else text


def _is_tool(toolkit: Toolkit, function: str) -> bool:
    with suppress(UnknownTool):
        return bool(toolkit.get_tool(function))
    return False  # a function that looks tools up


def _needed(toolkit: Toolkit, program: SavedProgram) -> Toolkit:
    """Return the toolkit with the tools that a program calls."""
    return toolkit.filter(where=lambda entry: program_names([entry.name]).keys() <= program.tools.keys())
