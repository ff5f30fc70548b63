"""Options of a session's step, and values that it returns: what the model wants, or why there is no answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Never, TypedDict, TypeVar

from pydantic import BaseModel

from toolcrib._numbers import require_number
from toolcrib.calls import ApprovalRequest
from toolcrib.errors import NoResult, OptionKinds, explain_missing, refuse_unknown_options
from toolcrib.formats import Item
from toolcrib.pipeline import Pipeline
from toolcrib.rounds._call_progress import CallListener
from toolcrib.rounds._plan import ToolRoundPlan
from toolcrib.rounds._retry import Retry
from toolcrib.rounds._round import ToolRound
from toolcrib.rounds._transcript import Transcript
from toolcrib.rounds._unhandled import Unhandled
from toolcrib.rounds._usage import Usage
from toolcrib.toolsets import ToolAvailability, ToolRequirement, ToolsetLike

T = TypeVar("T")


class StepOptions(TypedDict, total=False):
    """Options of a step that take the place of the session's defaults, without the type of the answer.

    Attributes:
        tools: The tools; none when left out.
        provider_tools: Tools of the provider's own, as it describes them, which are offered beside `tools`.
        available: Which of them are offered.
        require: Which of them the model has to call, if any.
        describe: Descriptions in place of the tools' own, by selector or name.
        strict: Whether the provider holds the model to the tools' schemas; a FormatError where it has no such mode.
        return_schemas: Whether the model is shown what the tools return.
        commit: Whether an answer is added to the transcript at once; it is unless this is False.
        full_results: Of how many of the last rounds the results are sent as they are. In the place of older ones a line
            is sent that names the tool; the transcript keeps them. Of all rounds when left out.
        cache: Whether the provider is to cache what is sent, up to the end of the user's last message. It marks tools,
            instructions and that message where the format has marks for it: Anthropic's and Bedrock's.
        repair: Whether arguments that are nearly JSON are read as what they nearly are, of calls that came whole: with
            single quotes, trailing commas, or `True`, `False` and `None`. The record says so.
        retry: How often the model is asked again after an error of the server's; not at all when left out.
        on_text: Is given each piece of the answer: with it, `on_call` or `on_chunk` the reply is streamed. The text of
            a model that does not stream is one piece.
        on_call: Is given what came so far of each call; see `CallProgress`.
        on_chunk: Is given each chunk of a reply that is streamed, as the provider sends it.
    """

    tools: Pipeline | ToolsetLike
    provider_tools: Sequence[Mapping[str, Any]]
    available: ToolAvailability
    require: ToolRequirement
    describe: Mapping[Any, str]
    strict: bool
    return_schemas: bool
    commit: bool
    full_results: int
    cache: bool
    repair: bool
    retry: Retry
    on_text: Callable[[str], None] | None
    on_call: CallListener | None
    on_chunk: Callable[[object], None] | None


class StepKeywords(StepOptions, total=False):
    """Options of a step that take the place of the session's defaults.

    Attributes:
        output: The type of the answer; text when left out.
    """

    output: Any


_KINDS = OptionKinds(StepKeywords.__annotations__, __name__)
_CLASSES = {
    "describe": (Mapping, "texts by tool, as in describe={'pay': 'Pays an invoice.'}"),
    "provider_tools": (Sequence, "a list, as in provider_tools=[{'type': 'web_search'}]"),
    "require": (ToolRequirement, "ToolRequirement.specific('pay'), or another of toolcrib.toolsets"),
    "retry": (Retry, "Retry(), of toolcrib.rounds"),
}
"""The classes of those options that are objects, and what to give."""


@explain_missing(
    {
        **dict.fromkeys(
            ("content", "data", "final_output", "output", "response", "structured_response", "value"),
            "`result`, and `text` as received",
        ),
        **dict.fromkeys(("all_messages", "messages", "new_messages", "to_input_list"), "`transcript` of the session"),
        **dict.fromkeys(("choices", "stop_reason"), "`reason` of a `Stopped`"),
        **dict.fromkeys(("interrupt", "interruptions"), "`waits_for`"),
    }
)
class SessionResult(ABC, Generic[T]):
    """The end of a session's run: an answer, a reply that ended without one, or a round that waits."""

    @property
    @abstractmethod
    def result(self) -> T:
        """The answer: the text, or a value of the type that was asked for.

        Raises:
            NoResult: The result is missing; the error says why, and what to do.
        """

    @property
    def waits_for(self) -> tuple[ApprovalRequest | Unhandled, ...]:
        """The requests to answer before the session goes on; empty without any."""
        return ()


@dataclass(frozen=True, slots=True)
class NeedsTools:
    """The model asks for tools, or waits for another answer: answer and commit the round, or discard it."""

    round: ToolRound


@dataclass(frozen=True, slots=True)
class Continue:
    """The provider paused the reply: what came is in the transcript, and another step has it go on."""

    round: ToolRound


class _Answer:
    """A reply without calls, which may be added to the session's transcript.

    Attributes:
        text: The text as received.
        problems: The faults of the reply, a sentence each.
        usage: The usage of the step; after `Session.run`, of the whole run.
    """

    def __init__(self, round: ToolRound, transcript: Transcript, usage: Usage) -> None:
        self._round, self._transcript, self.usage = round, transcript, usage
        self.text, self.problems = round.text, round.problems

    async def commit(self) -> list[Item]:
        """Add the model's message to the session's transcript."""
        return await self._round.commit(self._transcript)

    def discard(self) -> None:
        """Drop it."""
        self._round.discard()


class Finished(_Answer, SessionResult[T]):
    """The model answered."""

    __match_args__ = ("result",)

    def __init__(self, round: ToolRound, result: T, transcript: Transcript, usage: Usage) -> None:
        super().__init__(round, transcript, usage)
        self._result = result

    @property
    def result(self) -> T:
        return self._result

    def __repr__(self) -> str:
        return f"Finished({self.result!r})"


class Stopped(_Answer, SessionResult[Never]):
    """The reply ended before the model had answered: at a limit, in a refusal, in an error, cut.

    Nothing of it is in the transcript: `commit` adds the text that came, and another step asks again.

    Attributes:
        reason: Why it ended; see `StopKind`.
    """

    __match_args__ = ("reason",)

    def __init__(self, round: ToolRound, transcript: Transcript, usage: Usage) -> None:
        super().__init__(round, transcript, usage)
        self.reason = round.stop_kind

    @property
    def result(self) -> Never:
        mend = "`text` has what came, `await stopped.commit()` keeps it, and another run asks again"
        raise NoResult("the session", f"the reply ended without an answer: {self.reason}", mend)

    def __repr__(self) -> str:
        return f"Stopped({self.reason!r})"


@explain_missing(
    dict.fromkeys(
        ("approve", "deny", "grant", "reject", "resume"),
        "`await waiting.resolve([waiting.waits_for[0].grant('ann')])`, and run the session again",
    )
)
class Waiting(ToolRoundPlan, SessionResult[Never]):
    """The round of a session that waits: calls are suspended until a person answers, or something is unhandled.

    It is the plan of that round; answer what is in `waits_for`, and run the session again.
    """

    @classmethod
    def of(cls, plan: ToolRoundPlan) -> Waiting:
        """Return a plan of a session's round as what its run came to."""
        return cls(plan._state)

    @property
    def result(self) -> Never:
        problem, mend = what_waits([call.request for call in self.suspended], self.unhandled)
        raise NoResult("the session", problem, mend)

    @property
    def waits_for(self) -> tuple[ApprovalRequest | Unhandled, ...]:
        return (*(call.request for call in self.suspended), *self.unhandled)


def what_waits(requests: Sequence[ApprovalRequest], unhandled: Iterable[Unhandled]) -> tuple[str, str]:
    """Return the open calls of a session's round in words, and how the session goes on.

    Args:
        requests: The requests of its suspended calls.
        unhandled: The other requests that wait for an answer.
    """
    if requests:
        mend = (
            "answer the requests in `waits_for` (`await waiting.resolve([request.grant()])`; of a session with a store "
            "also by `toolcrib approvals` or in the console) and run the session again, or give the run an approver, "
            "as in `Run(approver=...)`"
        )
        return f"a person has to answer first: {', '.join(request.title for request in requests)}", mend
    kinds = ", ".join(f"`{item.kind}`" for item in unhandled) or "a call"
    mend = "commit what `answer` or `refuse` of each returns (`waits_for`), and run the session again"
    return f"{kinds} waits for an answer of yours", mend


_OF_OTHERS = {  # what other frameworks call an option, and where it is here
    **dict.fromkeys(("instructions", "system_prompt", "system_message"), "Session(..., system=...)"),
    **dict.fromkeys(
        ("output_schema", "output_type", "response_format", "response_model", "result", "result_type"),
        "`output=...` of a session, a step or a run",
    ),
    **dict.fromkeys(
        ("checkpointer", "conversation_id", "memory", "session_id", "thread_id"), "Session(..., store=..., id=...)"
    ),
    **dict.fromkeys(("history", "message_history", "messages"), "Session(..., transcript=...)"),
    "tool_choice": "`require=ToolRequirement.at_least_one()`, or another requirement, of a session, a step or a run",
    "max_rounds": "session.run(max_rounds=...)",
    **{
        name: f"a setting of the model: Session(client_model('openai:gpt-5', {name}=...))"
        for name in (
            *("frequency_penalty", "max_completion_tokens", "max_output_tokens", "max_tokens", "presence_penalty"),
            *("reasoning", "reasoning_effort", "seed", "stop", "stop_sequences", "temperature", "thinking", "top_k"),
            *("top_p", "verbosity"),
        )
    },
    **dict.fromkeys(
        ("model_kwargs", "model_settings", "settings"),
        "settings of the model, each by its name: Session(client_model('openai:gpt-5', temperature=...))",
    ),
    "parallel_tool_calls": "`require=ToolRequirement.optional(parallel=False)`, of a session, a step or a run",
    **dict.fromkeys(("max_iterations", "max_steps", "max_turns", "recursion_limit"), "session.run(max_rounds=...)"),
    **dict.fromkeys(
        ("input", "prompt", "query", "text", "user_prompt"), "`session.say(text)`, before the session is run"
    ),
    **dict.fromkeys(("middleware", "hooks"), "Session(..., tools=Toolset([...], hooks=...))"),
    **dict.fromkeys(("context", "dependencies", "deps", "deps_type"), "Session(..., run=Run(deps=...))"),
    **dict.fromkeys(("max_tool_calls", "usage_limits"), "Session(..., run=Run(limits=CallLimits(total=...)))"),
    **{name: f"Session(..., run=Run({name}=...))" for name in ("approver", "gates", "limits", "principal", "sinks")},
    "approvals": "Session(..., run=Run(approvals=...)), a store; `waiting.resolve([request.grant(...)])` gives answers",
    **{
        name: f"an option of the provider's client: Session(AsyncOpenAI({name}=...), model_name='gpt-5')"
        for name in ("api_key", "base_url", "organization")
    },
    **dict.fromkeys(
        ("agents", "handoff", "handoffs", "sub_agents", "subagents"),
        "Session(..., tools=[...]), with a tool that runs a session of its own",
    ),
    **dict.fromkeys(
        ("guardrails", "input_guardrails", "output_guardrails"),
        "Session(..., run=Run(gates=[...])) for its calls; look at a text yourself before `session.say(text)`",
    ),
    "budgets": "Session(..., run=Run(gates=[Budgets([...])]))",
    "mcp_servers": "Session(..., tools=[connect('python server.py')]) of toolcrib.adapters.mcp_client",
    **dict.fromkeys(
        ("answer", "answers", "approve", "decisions", "denials", "grant", "grants", "resume"),
        "`await waiting.resolve([request.grant(...)])` of what a run returned; run the session again after it",
    ),
    **dict.fromkeys(
        ("stream", "streaming"), "`on_text=...` of a session, a step or a run: the reply is streamed with it"
    ),
}


def require_known(who: str, keywords: Mapping[str, Any], *others: str) -> None:
    """Check the keywords of a step.

    Args:
        who: The function that has them.
        keywords: The keywords.
        others: The names of its other options, one of which may be meant.

    Raises:
        TypeError: One is not a keyword of a step, which would have no effect, or has a value of another kind; or
            `output` is not a type.
    """
    refuse_unknown_options(who, keywords, {*StepKeywords.__optional_keys__, *others}, _OF_OTHERS)
    _KINDS.read(who, dict(keywords))
    require_number(who, "full_results", keywords.get("full_results"), least=1)
    for name, (kind, mend) in _CLASSES.items():
        value = keywords.get(name)
        if value is not None and not isinstance(value, kind):
            raise TypeError(f"{who}: {name} is {value!r:.80}; give {mend}")
    output = keywords.get("output")
    if isinstance(output, str | list | tuple | Mapping | BaseModel):
        mend = "such as a Pydantic model, dict[str, int], or int | str for one of several"
        raise TypeError(f"`output` of {who} must be a type, {mend}, and not {output!r:.80}")
