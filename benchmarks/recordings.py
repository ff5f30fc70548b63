"""`make recordings`: replies of real models that others recorded, read by the formats, as a table in docs/providers.md.

The recordings are those of public repositories, each at one commit, which is fetched by its name into `.recordings` and
kept out of commits. Run it from the repository root as `python -m benchmarks.recordings`; `--from` names a folder with
copies of the repositories (`owner+name/repo`), for a machine without a network.

What is counted of each reply is counted a second time here, without the formats: the calls that are in it.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from toolcrib.formats import FINISHED, PROVIDERS, ProviderFormat, WireFormat, WireReply, WireResult

__all__ = ["SOURCES", "GitError", "Recorded", "asked", "fetch", "recorded", "replayed", "table"]

SOURCES = {  # repositories with recordings, and the commit
    "crmne/ruby_llm": "fb5a49bf04da78d3e74496431ad1c99df5e7e5f0",
    "pydantic/pydantic-ai": "4fda38988f2939fa6ea9cdefcf120693e10ef491",
    "traceloop/openllmetry": "93429cfb9767e6b51db6cb35f6b70f758117669a",
    "vercel/ai": "ed857f50f112e23930b0c2dd8d532cc8bebbc911",
}
_FIXTURES: dict[str, WireFormat] = {  # folders of replies alone: one of JSON in each file, or the chunks of a stream
    "packages/cohere/src/__fixtures__/": "cohere",
    "packages/google/src/interactions/__fixtures__/": "gemini_interactions",
}
PAGE = Path(__file__).parents[1] / "docs" / "providers.md"
_BEGIN, _END = "<!-- recordings: written by `make recordings` -->\n", "<!-- end of recordings -->\n"
_COLUMNS = (
    *(
        "replies",
        "streams",
        "calls",
        "missed",
        "errors",
        "uncommitted",
        "histories",
        "refused",
        "prefixes",
        "ran early",
    ),
)
_PLACES: tuple[tuple[str, WireFormat], ...] = (  # what the address of a request says of its format
    ("api.mistral.ai/v1/chat/completions", "mistral"),
    ("/chat/completions", "openai"),
    ("/responses", "openai_responses"),
    ("/v1/messages", "anthropic"),
    ("generateContent", "gemini"),
    ("GenerateContent", "gemini"),
    ("/converse", "bedrock"),
    ("/api/chat", "ollama"),
    ("cohere.com/v2/chat", "cohere"),
    ("googleapis.com/v1beta/interactions", "gemini_interactions"),
)
_NOT_REPLIES = ("count_tokens", "/messages/batches", "/compact", "converse-stream", "input_tokens")
_PREFIXES = 12  # of each stream


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """A loader that reads bytes as Ruby writes them."""


_Loader.add_constructor("!binary", lambda loader, node: base64.b64decode(loader.construct_scalar(node)))


@dataclass(frozen=True, slots=True)
class Recorded:
    """A reply as it was recorded.

    Attributes:
        format: Its wire format.
        chunks: Its JSON: one object, or the chunks of a stream.
        is_stream: Whether it was streamed.
        history: The messages of the request that it answers, which the provider took; empty where they are not all.
    """

    format: WireFormat
    chunks: list[Any]
    is_stream: bool
    history: list[Any]


def recorded(text: str) -> Iterator[Recorded]:
    """Yield the replies in a recording as VCR writes it, for Python or for Ruby."""
    held: Any = yaml.load(text, _Loader)
    for one in held.get("interactions") or held.get("http_interactions") or ():
        request, response = one.get("request") or {}, one.get("response") or {}
        uri, status = str(request.get("uri")), response.get("status") or {}
        format = next((name for part, name in _PLACES if part in uri), None)
        if format is None or status.get("code", 200) != 200 or any(part in uri for part in _NOT_REPLIES):
            continue
        chunks, is_stream = _body(response)
        if chunks and all(isinstance(chunk, dict) for chunk in chunks):
            yield Recorded(format, chunks, is_stream, _history(request))


def fixture(path: str, text: str) -> Iterator[Recorded]:
    """Yield the reply in a file of a folder of `_FIXTURES`; nothing of one that holds no reply."""
    format = next(name for folder, name in _FIXTURES.items() if path.startswith(folder))
    is_stream = path.endswith(".chunks.txt")
    try:
        chunks = [json.loads(line) for line in text.splitlines() if line] if is_stream else [json.loads(text)]
    except ValueError:  # a file that a copy has by its name alone
        return
    if chunks and (is_stream or PROVIDERS[format].recognises(chunks[0])):
        yield Recorded(format, chunks, is_stream, [])


def _history(request: Mapping[str, Any]) -> list[Any]:
    """Return the messages of a request; nothing of one that goes on from what its provider has stored."""
    [sent] = _body(request)[0] or [{}]
    if not isinstance(sent, dict) or any(
        sent.get(key) for key in ("previous_response_id", "conversation", "previous_interaction_id")
    ):
        return []
    messages = next((sent[key] for key in ("messages", "contents", "input") if isinstance(sent.get(key), list)), [])
    return messages if all(isinstance(message, dict) for message in messages) else []


def _body(response: Mapping[str, Any]) -> tuple[list[Any], bool]:
    """Return the JSON of a response, and whether it was streamed; nothing of one that is not JSON."""
    if (parsed := response.get("parsed_body")) is not None and not isinstance(parsed, str):
        return [parsed], False
    held = response.get("body") or parsed or ""
    body: Any = (held.get("string") or held.get("base64_string") or "") if isinstance(held, dict) else held
    if isinstance(held, dict) and held.get("base64_string"):
        body = base64.b64decode(body)
    if isinstance(body, bytes):
        body = (gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body).decode("utf-8", "replace")
    data = [line.removeprefix("data:").strip() for line in body.split("\n") if line.startswith("data:")]
    lines = data or [line for line in body.split("\n") if line.startswith("{")]
    try:
        if data:
            return [json.loads(line) for line in lines if line and line != "[DONE]"], True
        return [json.loads(body)], False
    except ValueError:
        try:
            return ([json.loads(line) for line in lines], True) if len(lines) > 1 else ([], False)
        except ValueError:
            return [], False


def asked(one: Recorded) -> int:
    """Return how many calls for the client are in a reply, by the provider's own words for them."""
    if one.format in ("openai", "mistral"):
        return _chat_calls(one)
    counted = [json.dumps(chunk) for chunk in one.chunks]
    match one.format:
        case "openai_responses":
            ended = [chunk.get("response") for chunk in one.chunks if chunk.get("type") == "response.completed"]
            return sum(_kinds((ended or one.chunks)[-1]).values())
        case "anthropic":
            return sum(text.count('"type": "tool_use"') for text in counted)
        case "gemini":
            return sum(text.count('"functionCall": {"') for text in counted)
        case "gemini_interactions":
            held = [chunk.get("step") or chunk.get("steps") or () for chunk in one.chunks]
            return sum(json.dumps(step).count('"type": "function_call"') for step in held)
        case "cohere":
            counted = [json.dumps(chunk.get("delta") or chunk) for chunk in one.chunks]
            return sum(text.count('"type": "function"') for text in counted)
        case "bedrock":
            uses = sum(text.count('"toolUse": {') for text in counted)
            return uses - sum(text.count('"type": "server_tool_use"') for text in counted)
        case _:
            return sum(len((chunk.get("message") or {}).get("tool_calls") or ()) for chunk in one.chunks)


def _chat_calls(one: Recorded) -> int:
    choices = [(chunk.get("choices") or [{}])[0] for chunk in one.chunks]
    held = [choice.get("delta") or choice.get("message") or {} for choice in choices]
    calls = [call for message in held for call in message.get("tool_calls") or ()]
    old = any((message.get("function_call") or {}).get("name") for message in held)
    if not one.is_stream:
        return len(calls) or int(old)
    return len({(call.get("index"), call["id"]) for call in calls if call.get("id")}) or int(old)


def _kinds(response: Mapping[str, Any]) -> Counter[str]:
    wanted = {
        "function_call",
        "custom_tool_call",
        "computer_call",
        "shell_call",
        "apply_patch_call",
        "local_shell_call",
    }
    kinds = [item.get("type") for item in response.get("output") or ()]
    searches = [item for item in response.get("output") or () if item.get("type") == "tool_search_call"]
    own = [item for item in searches if item.get("execution") == "client"]
    asks = [kind for kind in kinds if kind in wanted or kind == "mcp_approval_request"]
    return Counter([*asks, *("tool_search_call" for _ in own)])


def replayed(one: Recorded) -> Counter[str]:
    """Return what came of a reply, by the columns of the table."""
    made = Counter[str]({"replies": 1, "streams": int(one.is_stream)})
    rules, wanted = PROVIDERS[one.format], asked(one)
    try:
        reply = rules.gather(one.chunks) if one.is_stream else rules.parse(one.chunks[0])
        made["calls"] = len(reply.calls)
        made["missed"] = max(0, wanted - len(reply.calls)) if reply.stop_kind in FINISHED else 0
        refused = bool(one.history) and rules.check(one.history) != []
        made += Counter(histories=int(bool(one.history)), refused=int(refused))
        made["uncommitted"] = int(not _is_taken_back(rules, [] if refused else one.history, reply))
        for end in _ends(one):
            early = rules.gather(one.chunks[:end])
            made["prefixes"] += 1
            made["ran early"] += sum(not early.fault_of(call) for call in early.calls)
    except Exception as error:  # whatever it is, it is counted
        made["errors"] = 1
        print(f"{one.format}: {type(error).__name__}: {error}")
    return made


def _ends(one: Recorded) -> Iterable[int]:
    """Return where a stream is cut: before the chunk that says how it ended."""
    if not one.is_stream:
        return ()
    rules = PROVIDERS[one.format]
    last = len(one.chunks) - 1
    while last > 0 and rules.gather(one.chunks[:last]).stop_kind in FINISHED:
        last -= 1
    return sorted({round(last * part / _PREFIXES) for part in range(1, _PREFIXES + 1)} - {0})


def _is_taken_back(rules: ProviderFormat, history: list[Any], reply: WireReply) -> bool:
    """Return whether a whole reply, with the answers to its calls, goes on with its request in order."""
    if reply.stop_kind not in FINISHED or not reply.items:
        return True
    answers = [WireResult(call, "ok", fields=_fields(rules.needs(call.kind))) for call in reply.calls]
    return rules.check([*(history or rules.user("Go.")), *reply.items, *rules.answer(answers)]) == []


def _fields(needed: tuple[str, ...]) -> dict[str, Any] | None:
    return {key: dict[str, Any]() for key in needed} or None


# --- repositories


class GitError(Exception):
    """A command of git that failed, in git's own words."""


def replies(name: str, folder: Path, copies: Path | None) -> Iterator[Recorded]:
    """Yield the recorded replies of a repository: of a copy of it, or of what is fetched.

    Raises:
        GitError: The commit is not in the copy, or cannot be fetched.
    """
    repository = folder / name.replace("/", "+")
    if copies is not None:
        repository = copies / name.replace("/", "+") / "repo"
    else:
        fetch(f"https://github.com/{name}", SOURCES[name], repository)
    listed = _git(repository, "ls-tree", "-r", "--name-only", "-z", SOURCES[name]).decode().split("\0")
    for path in listed:
        is_fixture = path.startswith(tuple(_FIXTURES))
        if not is_fixture and not ("cassettes/" in path and path.endswith((".yaml", ".yml"))):
            continue
        try:
            text = _git(repository, "show", f"{SOURCES[name]}:{path}").decode("utf-8", "replace")
        except GitError:  # a copy may lack its largest files
            print(f"{name}: {path} is not there")
            continue
        yield from fixture(path, text) if is_fixture else recorded(text)


def fetch(address: str, commit: str, repository: Path) -> None:
    """Fetch a commit into a bare repository, unless it is there.

    It is fetched beside the folder, which it replaces when it is complete.

    Raises:
        GitError: It cannot be fetched; the folder is as it was.
    """
    if repository.is_dir():
        with suppress(GitError):
            _git(repository, "cat-file", "-e", f"{commit}^{{commit}}")
            return
    repository.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=repository.parent) as beside:
        fetched = Path(beside) / "repo"
        fetched.mkdir()
        _git(fetched, "init", "--quiet", "--bare")
        _git(fetched, "fetch", "--quiet", "--depth=1", address, commit)
        shutil.rmtree(repository, ignore_errors=True)
        fetched.rename(repository)


def _git(repository: Path, *arguments: str) -> bytes:
    ran = subprocess.run(["git", "-C", str(repository), *arguments], capture_output=True)
    if ran.returncode:
        said = ran.stderr.decode("utf-8", "replace").strip()
        raise GitError(f"`git {arguments[0]}` failed: {said}")
    return ran.stdout


def table(counts: Mapping[str, Counter[str]]) -> str:
    """Return the counts as Markdown, by format."""
    rows = [("format", *_COLUMNS), ("---", *("---:" for _ in _COLUMNS))]
    rows += [(f"`{name}`", *(f"{counted[column]:,}" for column in _COLUMNS)) for name, counted in counts.items()]
    total = sum(counts.values(), Counter[str]())
    rows.append(("all", *(f"{total[column]:,}" for column in _COLUMNS)))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main() -> None:
    """Replay what is there, print the table, and write it into the page."""
    parser = argparse.ArgumentParser(description="Read replies of real models that others recorded.")
    parser.add_argument("--from", dest="copies", type=Path, help="a folder with copies of the repositories")
    parser.add_argument("--repositories", nargs="*", default=[*SOURCES], help="their names; all of them by default")
    options = parser.parse_args()
    counts: dict[str, Counter[str]] = {name: Counter() for name in PROVIDERS}
    seen, sizes = set[str](), list[str]()
    for name in options.repositories:
        before = len(seen)
        try:
            for one in replies(name, Path(".recordings"), options.copies):
                key = json.dumps([one.format, one.chunks], sort_keys=True)
                if key not in seen:
                    seen.add(key)
                    counts[one.format] += replayed(one)
        except GitError as error:
            parser.exit(1, f"{name}: {error}\n")
        sizes.append(f"{len(seen) - before:,} of {name}")
    day = datetime.now(UTC).strftime("%d %B %Y").lstrip("0")
    made = f"{table(counts)}\nReplayed on {day}: {', '.join(sizes)}.\n"
    print(made, end="")
    if options.repositories == [*SOURCES]:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(_BEGIN)
        PAGE.write_text(f"{before}{_BEGIN}\n{made}\n{_END}{rest.partition(_END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
