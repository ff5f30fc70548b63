"""The gates of the counter, each with the patch that removes it, and after them those of programs."""

from __future__ import annotations

from tests.mutants.agent_framework_gates import AGENT_FRAMEWORK_GATES
from tests.mutants.approver_gates import APPROVER_GATES
from tests.mutants.budget_gates import BUDGET_GATES
from tests.mutants.claude_agent_sdk_gates import CLAUDE_AGENT_SDK_GATES
from tests.mutants.code_gates import CODE_GATES
from tests.mutants.console_gates import CONSOLE_GATES
from tests.mutants.credentials_gates import CREDENTIALS_GATES
from tests.mutants.durable_answer_gates import DURABLE_ANSWER_GATES
from tests.mutants.durable_gates import DURABLE_GATES
from tests.mutants.durable_prune_gates import DURABLE_PRUNE_GATES
from tests.mutants.durable_worker_gates import DURABLE_WORKER_GATES
from tests.mutants.endpoint_gates import ENDPOINT_GATES
from tests.mutants.exchange_gates import EXCHANGE_GATES
from tests.mutants.formats_gates import FORMATS_GATES
from tests.mutants.frameworks_gates import FRAMEWORKS_GATES
from tests.mutants.front_end_gates import FRONT_END_GATES
from tests.mutants.gate import Gate
from tests.mutants.google_adk_gates import GOOGLE_ADK_GATES
from tests.mutants.grant_gates import GRANT_GATES
from tests.mutants.http_gates import HTTP_GATES
from tests.mutants.langchain_gates import LANGCHAIN_GATES
from tests.mutants.mcp_client_gates import MCP_CLIENT_GATES
from tests.mutants.mcp_gates import MCP_GATES
from tests.mutants.oauth_gates import OAUTH_GATES
from tests.mutants.openai_agents_gates import OPENAI_AGENTS_GATES
from tests.mutants.openapi_gates import OPENAPI_GATES
from tests.mutants.openid_gates import OPENID_GATES
from tests.mutants.process_gates import PROCESS_GATES
from tests.mutants.provenance_gates import PROVENANCE_GATES
from tests.mutants.recovery_gates import RECOVERY_GATES
from tests.mutants.replay_gates import REPLAY_GATES
from tests.mutants.results_gates import RESULTS_GATES
from tests.mutants.rounds_gates import ROUNDS_GATES
from tests.mutants.schema_gates import SCHEMA_GATES
from tests.mutants.seal_gates import SEAL_GATES
from tests.mutants.smolagents_gates import SMOLAGENTS_GATES
from tests.mutants.task_gates import TASK_GATES
from tests.mutants.telemetry_gates import TELEMETRY_GATES
from tests.mutants.user_gates import USER_GATES

__all__ = ["GATES", "Gate"]

_OF_SECRETS = ("tests/pipeline/test_secret_texts.py",)
_OF_QUESTIONS = ("tests/pipeline/test_call_client.py",)
_OF_APPROVALS = ("tests/pipeline/test_approve.py",)
_OF_HOSTS = ("tests/pipeline/test_host_arguments.py",)
_OF_EXECUTIONS = ("tests/pipeline/test_final_arguments.py",)
_OF_VALIDATORS = ("tests/pipeline/test_validated_once.py",)
_OF_SCHEMA = ("tests/schema",)
_GATE_FAILED = "            return call.hook_failure(step.kind, step.name, error)\n"

GATES: tuple[Gate, ...] = (
    # --- resolve and validate
    Gate(
        "available set of the run",
        "pipeline/_run.py",
        "if not entry.off if self.available is None else entry.name in self.available:",
        "if True:",
    ),
    Gate(
        "caller of a call that is admitted",
        "pipeline/_gates.py",
        "return not_allowed(call.plan.entry, call.received)",
        "return None",
        ("tests/pipeline/test_callers.py",),
    ),
    Gate(
        "caller of a call that is received",
        "pipeline/_pipeline.py",
        "if (refused := not_allowed(plan.entry, call)) is not None:",
        "if (refused := None) is not None:",
        ("tests/rounds/test_programmatic_calls.py",),
    ),
    Gate(
        "scopes of a call",
        "toolsets/_gates.py",
        "return refused_by(call, InsufficientScope(call.name, missing)) if missing else None",
        "return None",
        ("tests/pipeline/test_scopes.py",),
    ),
    Gate(
        "scopes where nothing else is asked",
        "toolsets/_gates.py",
        "ON_ARRIVAL),) if entry.scopes else ()",
        "ON_ARRIVAL),) if entry.scopes and entry.off else ()",
        ("tests/pipeline/test_scopes.py",),
    ),
    Gate(
        "scopes of several patterns",
        "toolsets/_scopes.py",
        "scopes=entry.scopes.union(*more)",
        "scopes=more[-1]",
        ("tests/pipeline/test_scopes.py",),
    ),
    Gate(
        "availability check",
        "toolsets/_gates.py",
        "return None if answer else refused_by(call, NotAvailable(call.name))",
        "return None",
    ),
    Gate(
        "availability check that fails",
        "pipeline/_gates.py",
        _GATE_FAILED,
        f'            if step.kind == "availability check":\n                continue\n{_GATE_FAILED}',
    ),
    Gate(
        "validation of JSON",
        "schema/_input_spec.py",
        "            model = inputs.validate_json(raw, strict=True)\n",
        "            model = inputs.model.model_construct(**parsed(raw))\n",
    ),
    Gate(
        "a truth value that is no number",
        "schema/_problems.py",
        "    return ValidationError.from_exception_data(error.title, found) if found else None\n",
        "    return None\n",
        ("tests/schema/test_one_reading.py",),
    ),
    Gate(
        "a key that stands twice in an object",
        "schema/_input_spec.py",
        "            if problems:\n                raise InvalidArguments(self.name, problems)\n",
        "",
        ("tests/schema/test_one_reading.py",),
    ),
    Gate(
        "validation of values",
        "schema/_input_spec.py",
        "            model = inputs.validate_python(values)\n",
        "            model = inputs.model.model_construct(**values)\n",
    ),
    Gate(
        "validation of a host's values",
        "schema/_input_spec.py",
        "valid = self.arguments(self.validate_python(asked))",
        "valid = asked",
        _OF_SCHEMA,
    ),
    Gate(
        "numbers that are not finite",
        "schema/_json_form.py",
        "return None if value - value == 0 else ()",
        "return None",
        _OF_SCHEMA,
    ),
    Gate(
        "numbers that are not finite where any value will do",
        "schema/_core_schema.py",
        'return False if kind in ("any", "complex", "float")',
        'return False if kind in ("complex", "float")',
        _OF_SCHEMA,
    ),
    Gate(
        "iterables that are read once",
        "schema/_portable_types.py",
        "    collections.abc.Iterable,\n",
        "",
        _OF_SCHEMA,
    ),
    Gate(
        "iterables inside objects",
        "schema/_model.py",
        'if "generator" in inputs.facts.kinds:',
        "if False:",
        _OF_SCHEMA,
    ),
    Gate(
        "objects that a hook changed",
        "pipeline/_arguments.py",
        "is_validated = not plan.spec.has_objects or self.is_host",
        "is_validated = True",
        ("tests/pipeline/test_validated_once.py",),
    ),
    Gate(
        "calls that stay in their process",
        "pipeline/_arguments.py",
        "if problems and is_seen:",
        "if False:",
        ("tests/pipeline/test_one_reading.py",),
    ),
    Gate("unknown arguments", "schema/_model.py", 'ConfigDict(extra="forbid", ', 'ConfigDict(extra="ignore", '),
    Gate(
        "fixed arguments",
        "schema/_input_spec.py",
        "tuple(p for p in self._resolved if p.injected is None and p.name not in self.fixed)",
        "tuple(p for p in self._resolved if p.injected is None)",
    ),
    Gate(
        "injected parameters",
        "schema/_input_spec.py",
        "tuple(p for p in self._resolved if p.injected is None and p.name not in self.fixed)",
        "tuple(p for p in self._resolved if p.name not in self.fixed)",
    ),
    # --- hooks
    Gate(
        "decision hooks",
        "pipeline/_gates.py",
        "(*first, *of_tool)",
        "tuple(first)",
    ),
    Gate(
        "rejection by a hook",
        "pipeline/_gates.py",
        'return Rejected(plan.name, call.id, reason, "hook")',
        "continue",
    ),
    Gate(
        "question by a hook",
        "pipeline/_gates.py",
        "call.add_reason(reason, metadata)",
        "pass",
    ),
    Gate(
        "names of withheld tools",
        "pipeline/_failures.py",
        "        entries = [entry for entry in entries if all(_holds",
        "        entries = [entry for entry in entries if True or all(_holds",
        ("tests/pipeline/test_visible.py",),
    ),
    Gate(
        "names of tools without their scopes",
        "pipeline/_failures.py",
        "and not (access is not None and access.lacks(entry.scopes))",
        "and True",
        ("tests/pipeline/test_visible.py",),
    ),
    Gate(
        "names of withheld tools in a program",
        "code/_runner.py",
        "if tool in known or name in named",
        "if True",
        ("tests/pipeline/test_visible.py",),
    ),
    Gate(
        "exit of a tool",
        "pipeline/_execute.py",
        "            except BaseException as error:\n                _fail(call, error)",
        "            except Exception as error:\n                _fail(call, error)",
        ("tests/pipeline/test_exits.py",),
    ),
    Gate(
        "exit of a hook",
        "pipeline/_failures.py",
        "call.hiding.hide_error(exception_of(raised))",
        "call.hiding.hide_error(raised)",
        ("tests/pipeline/test_exits.py",),
    ),
    Gate(
        "signal of an engine",
        "errors/_calls.py",
        "    if isinstance(error, _signals) or (",
        "    if False or (",
        ("tests/pipeline/test_exits.py",),
    ),
    Gate(
        "misspelt option",
        "hooks/_parameters.py",
        "if name not in written and (near",
        "if False and (near",
        ("tests/tools/test_fixed.py",),
    ),
    Gate(
        "decision hook that fails",
        "pipeline/_gates.py",
        "        except BaseException as error:  # a decision hook is the user's code; a gate that fails is shut\n"
        '            return call.hook_failure("decision hook", name, error)',
        "        except Exception:\n            continue",
    ),
    Gate(
        "validation after a decision",
        "pipeline/_gates.py",
        "call.revise(edited)",
        "call.arguments = dict(edited)",
    ),
    Gate(
        "pre hooks",
        "pipeline/_gates.py",
        "for step in call.plan.pre:",
        "for step in ():",
    ),
    Gate(
        "pre hook that fails",
        "pipeline/_gates.py",
        "        except BaseException as error:  # middleware is the user's code; a gate that fails is shut\n"
        '            return call.hook_failure("pre hook", step.name, error)',
        "        except Exception:\n            continue",
    ),
    Gate(
        "validation after pre hooks",
        "pipeline/_gates.py",
        "call.revise(arguments)",
        "call.arguments = arguments",
    ),
    Gate(
        "post hooks",
        "pipeline/_finish.py",
        "for step in call.plan.buffered_post_hooks:",
        "for step in ():",
    ),
    Gate(
        "post hook for each value",
        "pipeline/_finish.py",
        "for step in call.plan.value_post_hooks:",
        "for step in ():",
        ("tests/pipeline/test_stream.py",),
    ),
    # --- approval
    Gate(
        "approval",
        "pipeline/_admit.py",
        "            refused = await approve(call, grant)\n",
        "            refused = None\n",
    ),
    Gate("approval policy", "toolsets/_gates.py", "for policy in entry.approvals", "for policy in ()"),
    Gate(
        "approval policy that fails",
        "pipeline/_gates.py",
        _GATE_FAILED,
        f'            if step.kind == "approval policy":\n                continue\n{_GATE_FAILED}',
    ),
    Gate(
        "the context's list",
        "pipeline/_gates.py",
        'return calls.Ask("") if call.run.asks_for(call.name) else None',
        "return None",
    ),
    Gate(
        "approval on resuming",
        "pipeline/_admit.py",
        "        return await answered(call, reasons or [reason], attached, lapsed=not reasons)\n",
        "        return None\n",
    ),
    Gate(
        "what is settled by other means counts where nothing else asks",
        "pipeline/_approve.py",
        "not self._lapsed or before",
        "before",
        ("tests/pipeline/test_resume.py",),
    ),
    Gate(
        "approved arguments at the execution",
        "pipeline/_execute.py",
        "    if call.execution.seal is not None:  # a `_call_tool_func` may have edited them\n",
        "    if False:\n",
        ("tests/pipeline/test_approve.py",),
    ),
    Gate(
        "arguments that hooks saw at the execution",
        "pipeline/_live_call.py",
        "if self.approval.digest is not None or (gated and (self.plan.has_wrappers or self.args.is_shared)):",
        "if self.approval.digest is not None:",
        _OF_EXECUTIONS,
    ),
    Gate(
        "objects of the host that hooks saw at the execution",
        "pipeline/_live_call.py",
        "(self.plan.has_wrappers or self.args.is_shared)",
        "self.plan.has_wrappers",
        _OF_EXECUTIONS,
    ),
    Gate(
        "validation of what is edited around the execution",
        "pipeline/_execute.py",
        "        call.revise(arguments)\n        arguments = call.args.values\n",
        "        pass\n",
        _OF_EXECUTIONS,
    ),
    Gate(
        "one execution of what is not idempotent",
        "pipeline/_execute.py",
        "(execution.entered and once)",
        "False",
        _OF_EXECUTIONS,
    ),
    Gate(
        "no execution of a call that is over",
        "pipeline/_execute.py",
        'if call.state != "executing" or (',
        "if (",
        _OF_EXECUTIONS,
    ),
    Gate(
        "no execution again of what yielded a value",
        "pipeline/_execute.py",
        "not call.plan.tool.options.idempotent or execution.gave_value",
        "not call.plan.tool.options.idempotent",
        _OF_EXECUTIONS,
    ),
    Gate(
        "observers that are shown copies of arguments",
        "tools/_body.py",
        "value if key in injected else copied(value)",
        "value",
        _OF_EXECUTIONS,
    ),
    Gate(
        "policies that are shown copies of arguments",
        "toolsets/_gates.py",
        "answer(dict(call.arguments), call.ctx)",
        "answer(dict(call.bound), call.ctx)",
        _OF_EXECUTIONS,
    ),
    Gate(
        "availability on resuming",
        "pipeline/_gates.py",
        'GateStep("offer", "resolve", _check_offer, ON_ARRIVAL)',
        'GateStep("offer", "resolve", _check_offer, frozenset({"new"}))',
    ),
    Gate(
        "denial",
        "pipeline/_approve.py",
        "        if isinstance(answer, Grant):\n            return answer\n",
        "        return request.grant()\n",
    ),
    Gate(
        "fit of a grant",
        "pipeline/_approve.py",
        "if isinstance(answer, Grant) and (why := approvals.misfit(answer, request)):",
        'if (why := ""):',
    ),
    Gate("tool of a grant", "approvals/_fit.py", "if grant.tool != request.tool:", "if False:"),
    Gate(
        "number of approvers",
        "approvals/_fit.py",
        "people_behind(grant, request) < request.approvals_needed:",
        "False:",
        ("tests/approvals/test_stores.py",),
    ),
    Gate(
        "two approvers who are one person",
        "approvals/_several.py",
        "if people_behind(together, request) <= (",
        "if False and (",
        ("tests/approvals/test_stores.py",),
    ),
    Gate(
        "two people: a typed name beside an identity",
        "approvals/_required.py",
        "for name in () if identities else names:",
        "for name in names:",
        ("tests/approvals/test_separation_of_duties.py",),
    ),
    Gate(
        "two people: the one who asks",
        "approvals/_required.py",
        "for shown, _ in people if not shown & asker]",
        "for shown, _ in people]",
        ("tests/approvals/test_separation_of_duties.py",),
    ),
    Gate(
        "two people: the one who asks, by the other ids of a token",
        "pipeline/_approve.py",
        "requester_ids=tuple(dict.fromkeys(known_ids)) if needed > 1 else (),",
        "",
        ("tests/approvals/test_separation_of_duties.py",),
    ),
    Gate(
        "two people: a model",
        "approvals/_required.py",
        "if not (is_of_tool and answerer.is_model):",
        "if True:",
        ("tests/approvals/test_separation_of_duties.py",),
    ),
    Gate("call of a grant", "approvals/_fit.py", "grant.call_id != request.call_id", "False"),
    Gate("digest of a grant", "approvals/_fit.py", "grant.digest != request.digest", "False"),
    Gate(
        "expiry of a grant",
        "calls/_grant.py",
        "if self.expires_at is not None and self.expires_at <= at:",
        "if False:",
        _OF_APPROVALS,
    ),
    Gate(
        "expiry of a grant before its call begins",
        "approvals/_ledger.py",
        "grant.time_problem(execution.begun_at) or ",
        "",
        ("tests/approvals/test_stores.py",),
    ),
    Gate(
        "standing grant that is revoked before its call begins",
        "approvals/_ledger.py",
        " or _revoked(ledger, grant)):\n",
        "):\n",
        ("tests/approvals/test_stores.py",),
    ),
    Gate(
        "revoked grant as the answer to a call that waits",
        "approvals/_ledger.py",
        "            ledger.write(replace(entry, answer=None))\n",
        "            pass\n",
        ("tests/approvals/test_stores.py",),
    ),
    Gate(
        "result of a call for another call of the same id",
        "approvals/_ledger.py",
        "    if not _is_same_call(entry.request, request):\n",
        "    if False:\n",
        ("tests/approvals/test_stores.py",),
    ),
    Gate(
        "digest of the final arguments",
        "pipeline/_live_call.py",
        '            "digest": self.digest,\n',
        '            "digest": "",\n',
    ),
    Gate(
        "key of the digest of secrets",
        "schema/_canonical.py",
        'key = key if self.has_secrets else b""',
        'key = b""',
        ("tests/pipeline/test_secret_digests.py",),
    ),
    Gate(
        "key of digests that processes with a store share",
        "pipeline/_admit.py",
        "refused = await _load_digest_key(call)",
        "pass",
        ("tests/pipeline/test_secret_digests.py",),
    ),
    Gate(
        "key of a digest in the JSON of a call",
        "pipeline/_admit.py",
        'bytes.fromhex(data.get("digest_key", ""))',
        'b""',
        ("tests/pipeline/test_secret_digests.py",),
    ),
    Gate(
        "secret in an error",
        "pipeline/_failures.py",
        "plan, error = call.plan, call.hiding.hide_error(raised)",
        "plan, error = call.plan, raised",
        _OF_SECRETS,
    ),
    Gate(
        "secret in an error of a hook",
        "pipeline/_failures.py",
        "HookError.of(tool, kind, hook, call.hiding.hide_error(exception_of(raised)))",
        "HookError.of(tool, kind, hook, exception_of(raised))",
        _OF_SECRETS,
    ),
    Gate(
        "secret in the reason of a refusal",
        "calls/_outcome.py",
        "reason=hiding.hide(outcome.reason)",
        "reason=outcome.reason",
        _OF_SECRETS,
    ),
    Gate(
        "secret in the reason of a request",
        "pipeline/_live_call.py",
        "reason=self.hide(reason), **",
        "reason=reason, **",
        _OF_SECRETS,
    ),
    Gate(
        "secret in a value of a stream, for sinks",
        "record/_call_trace.py",
        "partial(_with_value, lenient_later(value, _VALUE_CHARS, self.hide))",
        "partial(_with_value, lenient_later(value, _VALUE_CHARS))",
        _OF_SECRETS,
    ),
    Gate(
        "secret that an edit replaced",
        "pipeline/_arguments.py",
        "self.original or self, self.secrets)",
        "self.original or self)",
        _OF_SECRETS,
    ),
    Gate(
        "secret that a tool takes out of its arguments",
        "pipeline/_live_call.py",
        "            self.args.keep_secrets()",
        "            pass",
        _OF_SECRETS,
    ),
    Gate(
        "credential that a host gives",
        "tools/_body.py",
        "ctx.supplied = [*(ctx.supplied or ()), (self._spec, supplied)]",
        "pass",
        _OF_SECRETS,
    ),
    Gate(
        "secret in the problem of an output",
        "schema/_problems.py",
        '"not accepted" if _quotes(detail, leaves) else detail["msg"]',
        'detail["msg"]',
        ("tests/tools/test_secret_outputs.py",),
    ),
    Gate(
        "secret in the problem of another argument",
        "schema/_problems.py",
        "if any(leaf in message for leaf in quoted):",
        "if False:",
        ("tests/tools/test_secret_outputs.py",),
    ),
    Gate(
        "secrets in the digest", "schema/_canonical.py", "[tool, self.values, *unnamed]", "[tool, self.shown, *unnamed]"
    ),
    Gate(
        "values without a JSON form in the digest",
        "schema/_canonical.py",
        "unnamed = [list(self.without_form)] if self.without_form else []",
        "unnamed = []",
        _OF_SCHEMA,
    ),
    Gate(
        "what an author's own form leaves out in the digest",
        "schema/_canonical.py",
        "if self._inputs.facts.is_styled and not self._is_lossless(values, arguments):",
        "if False:",
        _OF_SCHEMA,
    ),
    Gate(
        "arguments that come back as those that were seen",
        "pipeline/_admit.py",
        'args.digest != data["digest"]',
        "False",
        _OF_VALIDATORS,
    ),
    Gate(
        "arguments as they were given where validators change their form",
        "pipeline/_arguments.py",
        "if spec.reads_back(form, self.values):",
        "if True:",
        _OF_VALIDATORS,
    ),
    Gate(
        "objects of a model as JSON",
        "schema/_input_spec.py",
        "return self.validate_json(text)",
        "return self.validate_python(raw)",
        ("tests/pipeline/test_one_reading.py",),
    ),
    Gate(
        "arguments that do not come back",
        "pipeline/_arguments.py",
        'return StoredArguments(sent, "python", equal_values(self.plan.validated(sent), self.values))',
        'return StoredArguments(form.values, "json", True)',
        ("tests/pipeline/test_one_reading.py",),
    ),
    Gate(
        "edits that a validator would change",
        "pipeline/_arguments.py",
        "if any(_differs(values, key, value) for key, value in changed.items()):",
        "if False:",
        _OF_VALIDATORS,
    ),
    Gate(
        "values that an approver did not see",
        "pipeline/_arguments.py",
        "if not derive:",
        "if False:",
        _OF_VALIDATORS,
    ),
    Gate(
        "secrets that an approver left as they were shown",
        "pipeline/_arguments.py",
        "return {**values, **unchanged} if unchanged else after",
        "return after",
    ),
    Gate(
        "a hidden secret in what an approver edited",
        "pipeline/_arguments.py",
        "_refuse(self.plan, hidden, ",
        "_refuse(self.plan, (), ",
    ),
    Gate(
        "single use of a grant",
        "pipeline/_approve.py",
        "        if earlier is not None:\n",
        "        if False:\n",
    ),
    Gate(
        "single use of a grant without a request",
        "pipeline/_approve.py",
        "answer_id or by_call",
        "answer_id",
        ("tests/pipeline/test_approve.py",),
    ),
    Gate(
        "single use of an answer in a store",
        "approvals/_ledger.py",
        '            if not (again and entry.execution_state == "in doubt"):\n                return entry\n',
        "            pass\n",
        ("tests/approvals/test_stores.py",),
    ),
    Gate(
        "approver that fails",
        "pipeline/_approve.py",
        'return call.hook_failure("approval", question.asked, error)',
        "return call.request.grant()",
    ),
    Gate(
        "approval that the tool asks for",
        "pipeline/_execute.py",
        "    if not isinstance(error, ApprovalRequired):\n        return None",
        "    if True:\n        return None",
        ("tests/pipeline/test_approve.py",),
    ),
    # --- execution
    Gate("lock", "tools/_locks.py", "async with lock:", "if True:"),
    Gate("cap", "tools/_locks.py", "await stack.enter_async_context(semaphore)", "pass"),
    Gate(
        "cap of the run",
        "pipeline/_run.py",
        "        return slots\n",
        "        return _NO_SLOT\n",
    ),
    Gate("deadline of a call", "tools/_deadline.py", "self._task.cancel()", "pass"),
    Gate(
        "deadline of a stream",
        "tools/_body.py",
        "if timeout is None:\n            return source, None\n",
        "if True:\n            return source, None\n",
    ),
    Gate(
        "clock that stands while a consumer holds a value",
        "tools/_deadline.py",
        "        self.ends += self._loop.time() - self._since\n",
        "",
        ("tests/tools/test_deadline.py", "tests/pipeline/test_stream.py"),
    ),
    Gate(
        "clock that stands while a tool asks",
        "tools/_questions.py",
        "        with stopped_clocks(clocks):\n",
        "        if True:\n",
        _OF_QUESTIONS,
    ),
    Gate(
        "clock that stands while an approver is asked",
        "pipeline/_approve.py",
        "        with stopped_clocks():\n",
        "        if True:\n",
        _OF_QUESTIONS,
    ),
    Gate(
        "clocks of the tools and turns around",
        "tools/_deadline.py",
        "[] if first is None else list(first.around())",
        "[] if first is None else [first]",
        _OF_QUESTIONS,
    ),
    Gate(
        "wrong answer to a question of a tool",
        "tools/_questions.py",
        "        if not problem:\n",
        "        if True:\n",
        _OF_QUESTIONS,
    ),
    Gate(
        "denial of a question",
        "tools/_questions.py",
        "        if not isinstance(answer, Grant):\n            action",
        "        if False:\n            action",
        ("tests/pipeline/test_call_client.py", "tests/adapters/mcp_client/test_questions.py"),
    ),
    Gate(
        "question that is withdrawn",
        "tools/_questions.py",
        "            await asyncio.shield(_withdraw(store, request))\n",
        "            pass\n",
        _OF_QUESTIONS,
    ),
    Gate(
        "key in the address of a page that is recorded",
        "tools/_call_client.py",
        '_replace(query="", fragment="")',
        "_replace()",
        _OF_QUESTIONS,
    ),
    Gate(
        "secret in a line that a tool logs",
        "record/_call_trace.py",
        "shown = lenient(data, limit=_LINE_CHARS, hide=self.hide)",
        'shown = {n: v.get_secret_value() if hasattr(v, "get_secret_value") else v for n, v in dict(data).items()}',
        _OF_QUESTIONS,
    ),
    Gate(
        "lock that a stopped thread keeps",
        "tools/_body.py",
        "if thread is not None and thread.running:",
        "if False:",
        ("tests/tools/test_lock_of_a_thread.py",),
    ),
    Gate(
        "deadline told from a TimeoutError",
        "tools/_deadline.py",
        "isinstance(error, asyncio.CancelledError)",
        "True",
        ("tests/pipeline/test_execute.py",),
    ),
    Gate(
        "limit in total",
        "pipeline/_run_state.py",
        "sum(state.calls.values()) >= limits.total",
        "False",
    ),
    Gate(
        "limit of a tool",
        "pipeline/_run_state.py",
        "state.calls.get(tool, 0) >= most",
        "False",
        ("tests/pipeline/test_run.py",),
    ),
    Gate("retries", "pipeline/_run_state.py", "return used <= most", "return True"),
    # --- the record
    Gate(
        "record",
        "record/_call_trace.py",
        'self._emit("ended", partial(_end, record, earlier), ended_at, record)',
        "pass",
    ),
    Gate(
        "arguments of an event that is read later",
        "pipeline/_arguments.py",
        "self._is_atomic and not self.plan.has_secrets",
        "True",
        ("tests/record/test_late_payloads.py",),
    ),
    Gate(
        "record of a cancelled call",
        "pipeline/_live_call.py",
        "self.trace.cancelled()",
        "pass",
    ),
    Gate("who said yes", "record/_call_trace.py", "self.approval = answer", "pass"),
    Gate(
        "redaction of records",
        "pipeline/_arguments.py",
        "return self.canonical.shown",
        "return self.canonical.values",
    ),
    Gate(
        "validation of what a host's call is recorded with",
        "pipeline/_live_call.py",
        "not gated and self.trace is None and self.run.durability.journal is None",
        "not gated and self.run.durability.journal is None",
        _OF_HOSTS,
    ),
    Gate(
        "validation of what a host's call is kept with",
        "pipeline/_live_call.py",
        "not gated and self.trace is None and self.run.durability.journal is None",
        "not gated and self.trace is None",
        _OF_HOSTS,
    ),
    Gate(
        "redaction of what came",
        "pipeline/_live_call.py",
        "return (self.args.original or self.args).for_display",
        "return (self.args.original or self.args).values",
        _OF_APPROVALS,
    ),
    Gate(
        "redaction of what did not fit",
        "pipeline/_admit.py",
        "None if call.plan.spec.has_secrets else lenient(call.received.arguments)",
        "lenient(call.received.arguments)",
    ),
    Gate(
        "redaction of override arguments",
        "pipeline/_approve.py",
        'for name in ("user_input", "override_args", "done"):',
        "for name in ():",
        ("tests/pipeline/test_approve.py",),
    ),
    # --- Pydantic AI
    Gate(
        "metadata of another call",
        "adapters/pydantic_ai/_deferred_calls.py",
        "if waiting is None or (waiting.suspended.tool, waiting.suspended.call_id) != (name, ctx.tool_call_id):",
        "if waiting is None:",
        ("tests/adapters/pydantic_ai",),
    ),
    Gate(
        "metadata of other arguments",
        "adapters/pydantic_ai/_deferred_calls.py",
        "if (now if asked is None else asked) != waiting.arguments:",
        "if False:",
        ("tests/adapters/pydantic_ai",),
    ),
    Gate(
        "arguments in place of those that were granted",
        "adapters/pydantic_ai/_deferred_calls.py",
        "return (waiting.suspended, grant) if now == expected else None",
        "return waiting.suspended, grant",
        ("tests/adapters/pydantic_ai",),
    ),
    Gate(
        "metadata without an approval",
        "adapters/pydantic_ai/_deferred_calls.py",
        "waiting = Waiting.of(ctx.tool_call_metadata) if ctx.tool_call_approved else None",
        "waiting = Waiting.of(ctx.tool_call_metadata)",
        ("tests/adapters/pydantic_ai",),
    ),
    Gate(
        "denial in the pipeline",
        "adapters/pydantic_ai/_deferred_results.py",
        "await _record(waiting[call_id], answer,",
        "(waiting[call_id], answer,",
        ("tests/adapters/pydantic_ai",),
    ),
    Gate(
        "approval that a member from Pydantic AI requires",
        "adapters/pydantic_ai/_source.py",
        'asks = definition.kind == "unapproved"',
        "asks = False",
        ("tests/adapters/pydantic_ai",),
    ),
    Gate(
        "validator of a member from Pydantic AI",
        "adapters/pydantic_ai/_source.py",
        "            check=self._check,\n",
        "",
        ("tests/adapters/pydantic_ai",),
    ),
    Gate(
        "names of the arguments in a given schema",
        "schema/_model.py",
        "                if problems:\n",
        "                if False:\n",
        ("tests/adapters/pydantic_ai", "tests/schema"),
    ),
    Gate(
        "what Pydantic AI's model is shown",
        "serving/_entries.py",
        "return await is_available(entry, ctx) or not entry.skip_unavailable",
        "return True",
        ("tests/adapters/pydantic_ai",),
    ),
    *CLAUDE_AGENT_SDK_GATES,
    *BUDGET_GATES,
    *CODE_GATES,
    *CONSOLE_GATES,
    *CREDENTIALS_GATES,
    *DURABLE_ANSWER_GATES,
    *DURABLE_GATES,
    *DURABLE_PRUNE_GATES,
    *DURABLE_WORKER_GATES,
    *ENDPOINT_GATES,
    *FRONT_END_GATES,
    *FORMATS_GATES,
    *SCHEMA_GATES,
    *FRAMEWORKS_GATES,
    *EXCHANGE_GATES,
    *GRANT_GATES,
    *APPROVER_GATES,
    *OPENID_GATES,
    *HTTP_GATES,
    *OAUTH_GATES,
    *MCP_CLIENT_GATES,
    *MCP_GATES,
    *OPENAPI_GATES,
    *PROCESS_GATES,
    *RECOVERY_GATES,
    *REPLAY_GATES,
    *RESULTS_GATES,
    *ROUNDS_GATES,
    *SEAL_GATES,
    *TASK_GATES,
    *TELEMETRY_GATES,
    *USER_GATES,
    *PROVENANCE_GATES,
    *AGENT_FRAMEWORK_GATES,
    *GOOGLE_ADK_GATES,
    *LANGCHAIN_GATES,
    *OPENAI_AGENTS_GATES,
    *SMOLAGENTS_GATES,
)
