"""A real server of llama.cpp with a tiny model of random weights: its grammar makes the calls well formed all the same.

`python -m tests.formats.llama_server` records what its client gets in `llama_replies.json`: of each way the whole reply
and then the chunks of the same reply streamed. They were recorded with xllamacpp 2026.10.11549 and openai 3.54.
"""

from __future__ import annotations

import asyncio
import json
import platform
import random
import struct
import subprocess
import sys
import time
from array import array
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from openai import AsyncOpenAI

from toolcrib import Toolset, tool

RECORDED = Path(__file__).with_name("llama_replies.json")
RUNS_HERE = (sys.platform, platform.machine()) in {("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64")}
"""Whether there is a wheel of `xllamacpp`, which has the server, for this machine."""

_WIDTH, _INNER, _HEADS = 32, 64, 4
_END, _CALL, _CALLED = 4, 5, 6  # the tokens that end a reply, and begin and end a call
_TOKENS = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>", "<tool_call>\n", "</tool_call>"]
_BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
_KINDS = [2, 3, 3, 3, 3, 4, 4, *[6] * 256]  # unknown, control, defined by the user, byte
_TEMPLATE = """
{%- if tools %}
    {{- '<|im_start|>system\\nYou may call functions:\\n<tools>' }}
    {%- for tool in tools %}
        {{- '\\n' }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- '\\n</tools>\\nCall one so:\\n' }}
    {{- '<tool_call>\\n{"name": <name>, "arguments": <object>}\\n</tool_call><|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role }}
    {%- if message.content %}
        {{- '\\n' + message.content }}
    {%- endif %}
    {%- for call in message.tool_calls %}
        {{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
        {{- call.function.arguments | tojson }}
        {{- '}\\n</tool_call>' }}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

Way = Literal["one call", "two calls", "cut"]
WAYS: tuple[Way, ...] = ("one call", "two calls", "cut")
_LIKELY: dict[Way, dict[int, int]] = {  # how much likelier tokens are than their random weights say
    "one call": {_END: 90, _CALL: 60, _CALLED: 40},
    "two calls": {_END: 90, _CALL: 60},
    "cut": {_END: 90, _CALL: 60},
}


@tool(register=False)
async def book_room(city: Literal["Oslo", "Rome"], beds: Literal[1, 2, 3], sea_view: bool = False) -> str:
    """Book a room."""
    return f"{beds} beds in {city}" + (" by the sea" if sea_view else "")


ROOMS = Toolset([book_room])


def request(way: Way, messages: Sequence[Any]) -> dict[str, Any]:
    """Return what is asked of the server."""
    spaces = {str(len(_TOKENS) + byte): -20 for byte in b" \t\n"}
    return {
        "model": "tiny",
        "messages": messages,
        "tools": ROOMS.definitions(format="openai"),
        "tool_choice": "required",
        "parallel_tool_calls": way == "two calls",
        "max_tokens": {"one call": 300, "two calls": 400, "cut": 40}[way],
        "seed": 2,
        "logit_bias": spaces | {str(token): more for token, more in _LIKELY[way].items()},
    }


# --- the server


def client_of(address: str) -> AsyncOpenAI:
    """Return a client of the server."""
    return AsyncOpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)


@contextmanager
def llama_server(folder: Path) -> Iterator[str]:
    """Start the server, and give its address."""
    model = folder / "tiny.gguf"
    _write_model(model)
    words = [sys.executable, "-m", "tests.formats.llama_server", str(model)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        address = next((line for line in process.stdout if line.startswith("http://127.0.0.1:")), "")
        assert address, "the server did not start: is xllamacpp installed, as the extra `dev` has it?"
        yield address.strip()
    finally:
        process.kill()
        process.communicate()


def _serve(model: str) -> None:
    import xllamacpp  # noqa: PLC0415 -- in the server's process alone

    options = xllamacpp.CommonParams()
    options.model.path, options.n_ctx, options.n_parallel, options.verbosity = model, 4096, 1, 0
    options.cpuparams.n_threads, options.hostnames, options.port, options.warmup = 1, ["127.0.0.1"], 0, False
    server = xllamacpp.Server(options)
    print(server.listening_address, flush=True)
    time.sleep(600)


# --- the model: a file in the form GGUF, whose version 3 is described at https://github.com/ggml-org/ggml, docs/gguf.md


def _write_model(path: Path) -> None:
    tokens = [*_TOKENS, *_BYTES]
    facts: dict[str, Any] = {
        "general.architecture": "llama",
        "llama.context_length": 4096,
        "llama.embedding_length": _WIDTH,
        "llama.block_count": 1,
        "llama.feed_forward_length": _INNER,
        "llama.attention.head_count": _HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": _WIDTH // _HEADS,
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": [0.0] * len(tokens),
        "tokenizer.ggml.token_type": _KINDS,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": _END,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.ggml.add_space_prefix": False,
        "tokenizer.chat_template": _TEMPLATE.strip(),
    }
    square, tall, wide = (_WIDTH, _WIDTH), (_WIDTH, _INNER), (_INNER, _WIDTH)
    shapes: dict[str, tuple[int, ...]] = {"token_embd": (_WIDTH, len(tokens)), "output": (_WIDTH, len(tokens))}
    shapes |= {f"blk.0.attn_{part}": square for part in ("q", "k", "v", "output")}
    shapes |= {"blk.0.ffn_gate": tall, "blk.0.ffn_up": tall, "blk.0.ffn_down": wide}
    shapes |= dict.fromkeys(("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"), (_WIDTH,))
    path.write_bytes(_gguf(facts, {f"{name}.weight": shape for name, shape in shapes.items()}))


def _gguf(facts: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(facts))
    head += b"".join(_text(name) + _typed(value) for name, value in facts.items())
    weights, data = random.Random(1), b""
    for name, shape in shapes.items():
        head += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, len(data))
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        data += array("f", [weights.gauss(0, 0.3) if len(shape) > 1 else 1.0 for _ in range(count)]).tobytes()
    return head + bytes(-len(head) % 32) + data


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _typed(value: Any) -> bytes:
    """Return a value after the number of its type."""
    match value:
        case bool():
            return struct.pack("<I?", 7, value)
        case int():
            return struct.pack("<II", 4, value)
        case float():
            return struct.pack("<If", 6, value)
        case str():
            return struct.pack("<I", 8) + _text(value)
        case _:
            parts = [_typed(part) for part in value]
            [kind] = {5 if isinstance(part, int) else struct.unpack("<I", _typed(part)[:4])[0] for part in value}
            return struct.pack("<IIQ", 9, kind, len(parts)) + b"".join(part[4:] for part in parts)


# --- its replies


async def replayed(chunks: Sequence[Any]) -> AsyncIterator[Any]:
    """Yield the chunks of a stream again."""
    for chunk in chunks:
        yield chunk


async def _record(address: str) -> None:
    made: dict[str, Any] = {}
    async with client_of(address) as client:
        for way in WAYS:
            asked = request(way, [{"role": "user", "content": "A room in Oslo."}])
            whole = await client.chat.completions.create(**asked)
            stream = await client.chat.completions.create(**asked, stream=True)
            chunks = [chunk async for chunk in stream]
            made[way] = [reply.model_dump(mode="json", exclude_unset=True) for reply in (whole, *chunks)]
    lines = (f"{json.dumps(way)}: {json.dumps(replies)}" for way, replies in made.items())
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _serve(sys.argv[1])
    else:
        with TemporaryDirectory() as folder, llama_server(Path(folder)) as own:
            asyncio.run(_record(own))
