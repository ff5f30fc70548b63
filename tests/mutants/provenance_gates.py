"""The gates of provenance, each with the patch that removes it."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["PROVENANCE_GATES"]

_PIPELINE = ("tests/pipeline/test_provenance.py",)
_MEMORY = ("tests/provenance",)
_RECALLED = ("tests/rounds/test_recalled.py",)
_RULES = ("tests/pipeline/test_policy_rules.py",)
_GRANTS = ("tests/pipeline/test_value_grants.py",)

PROVENANCE_GATES: tuple[Gate, ...] = (
    Gate(
        "values of others are asked about",
        "pipeline/_admit.py",
        "        if refused is None and run.provenance is not None:\n",
        "        if False:\n",
        _PIPELINE,
    ),
    Gate(
        "results are remembered",
        "pipeline/_pipeline.py",
        "        if run.provenance is not None:\n            remember(call)\n",
        "",
        _PIPELINE,
    ),
    Gate(
        "text of errors is remembered",
        "pipeline/_weigh.py",
        '(str(call.error), "untrusted")',
        '(str(call.error), "trusted")',
        _PIPELINE,
    ),
    Gate(
        "long results are read before a call is weighed",
        "pipeline/_weigh.py",
        "        await asyncio.to_thread(memory.settle)\n",
        "        pass\n",
        _PIPELINE,
    ),
    Gate(
        "a standing grant for the tool does not answer for values of others",
        "approvals/_ledger.py",
        '    if request.origins and grant.scope == "tool" and grant.request_id != request.id:\n',
        "    if False:\n",
        _PIPELINE,
    ),
    Gate(
        "a run restored elsewhere trusts no result",
        "pipeline/_run.py",
        "            self.memory.lose()\n",
        "            pass\n",
        _PIPELINE,
    ),
    Gate(
        "the transcript before a reply is read",
        "rounds/_round.py",
        "    recall_transcript(run, pipeline.toolset, transcript, rules)\n",
        "",
        _RECALLED,
    ),
    Gate(
        "earlier results of a transcript are read",
        "rounds/_recalled.py",
        "                recall(run, tools.entries.get(name), asked, result.content, failed=failed, is_text=True)\n",
        "                pass\n",
        _RECALLED,
    ),
    Gate(
        "what is attached to a message is not the user's",
        "rounds/_recalled.py",
        '                recall(run, None, ToolCall("attachment", {}, ""), text)\n',
        "                run.hear(text)\n",
        _RECALLED,
    ),
    Gate(
        "a result that was cut has no labels by field",
        "pipeline/_weigh.py",
        "        if is_text and found is value and not isinstance(source, str):\n",
        "        if False:\n",
        _RECALLED,
    ),
    Gate(
        "the messages of an agent of Pydantic AI are read",
        "adapters/pydantic_ai/_toolset.py",
        "        recall_transcript(run, self._opened.toolset, shapes, MESSAGES)\n",
        "",
        ("tests/adapters/pydantic_ai/test_provenance.py",),
    ),
    Gate(
        "calls that a program made in another process are read",
        "code/_journal_host.py",
        "            self._recall(entry)\n",
        "",
        ("tests/code/test_provenance.py",),
    ),
    Gate(
        "what is looked up by a stranger's words is untrusted",
        "provenance/_memory.py",
        '            labels = "untrusted"\n',
        "            pass\n",
        _MEMORY,
    ),
    Gate(
        "a trusted value that a stranger names is the stranger's",
        "provenance/_memory.py",
        "        found = self._untrusted.find(text)  # before the trusted ones: a stranger may name what is in them\n",
        "        found = None if self._trusted.find(text) else self._untrusted.find(text)\n",
        _MEMORY,
    ),
    Gate(
        "a short value that a stranger writes as well is the stranger's",
        "provenance/_memory.py",
        "        if is_users and not _is_ambiguous(text):\n",
        "        if is_users:\n",
        _MEMORY,
    ),
    Gate(
        "who is paid may not be chosen by others",
        "provenance/_memory.py",
        'is_choice = effect == "spend" and',
        "is_choice = False and",
        _MEMORY,
    ),
    Gate(
        "a call that has nothing of the user's is asked about",
        "provenance/_memory.py",
        "        if not questions and not is_anchored and",
        "        if False and",
        _MEMORY,
    ),
    Gate(
        "links of others are asked about",
        "provenance/_memory.py",
        "            found = self._untrusted.find(flat(link)) if _is_link(link) else None\n",
        "            found = None\n",
        _MEMORY,
    ),
    Gate(
        "private values go to their readers alone",
        "provenance/_memory.py",
        "            if not receivers <= readers:\n",
        "            if False:\n",
        _MEMORY,
    ),
    Gate(
        "a program that was written late is no intent of the user's",
        "provenance/_memory.py",
        "        if not self.reads_others:\n            self._user.add(program, 0)\n",
        "        self._user.add(program, 0)\n",
        _MEMORY,
    ),
    Gate(
        "a part of a longer value is not found",
        "provenance/_texts.py",
        '    if before and (before.isalnum() or before in "@._-+"):\n        return False\n',
        "",
        _MEMORY,
    ),
    Gate(
        "a value that goes on is not found",
        "provenance/_texts.py",
        '    if after and (after.isalnum() or after in "@_"):\n        return False\n',
        "",
        _MEMORY,
    ),
    Gate(
        "a long name is a text",
        "provenance/_labels.py",
        '    return "trusted" if is_name else "untrusted"\n',
        '    return "trusted"\n',
        _MEMORY,
    ),
    Gate(
        "a rule refuses",
        "pipeline/_weigh.py",
        "    if refused:\n        return Rejected(",
        "    if False:\n        return Rejected(",
        _RULES,
    ),
    Gate(
        "a kind of value that a rule allows lets no other kind through",
        "pipeline/_weigh.py",
        'if labels.verdict(each.kind) != "allow")',
        'if "allow" not in (labels.untrusted, labels.unknown, labels.private))',
        _RULES,
    ),
    Gate(
        "a rule for a principal is for no other",
        "provenance/_policy.py",
        'and (self.principal == "*" or (principal is not None and fnmatchcase(principal, self.principal)))',
        "",
        _MEMORY,
    ),
    Gate(
        "a rule for a toolset is for no other",
        "provenance/_policy.py",
        'and (self.toolset == "*" or any(fnmatchcase(each, self.toolset) for each in toolsets))',
        "",
        _MEMORY,
    ),
    Gate(
        "a secret is in no question",
        "pipeline/_weigh.py",
        '    return replace(question, value=REDACTED, mark="") if is_secret else question\n',
        "    return question\n",
        _RULES,
    ),
    Gate(
        "an approval holds for the value's origin",
        "provenance/_question.py",
        "parts = [tool, argument, value, self.kind, self.tool, self.about, *sorted(to)]",
        "parts = [tool, argument, value, *sorted(to)]",
        _MEMORY,
    ),
    Gate(
        "an approval of a private value holds for those who get it",
        "provenance/_question.py",
        "self.tool, self.about, *sorted(to)]",
        "self.tool, self.about]",
        _MEMORY,
    ),
    Gate(
        "a standing grant for values is for no other values",
        "approvals/_ledger.py",
        '    if not all(each.get("mark") and each["mark"] in grant.values for each in request.origins):\n',
        "    if False:\n",
        _GRANTS,
    ),
    Gate(
        "a standing grant for values does not answer for more than these",
        "approvals/_ledger.py",
        "    if not request.values_alone:\n",
        "    if False:\n",
        _GRANTS,
    ),
    Gate(
        "a standing grant that serves a run may be taken back",
        "pipeline/_approve.py",
        "        if call.questions and not is_older:",
        "        if call.questions:",
        _GRANTS,
    ),
    Gate(
        "always for a tool at the terminal is no answer about values of others",
        "cli/_approver.py",
        "            if request.tool in self._always and not request.origins:\n",
        "            if request.tool in self._always:\n",
        ("tests/cli/test_approve.py",),
    ),
)
