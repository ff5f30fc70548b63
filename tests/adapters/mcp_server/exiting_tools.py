"""Tools that end the process, each in another way, and one that does not."""

from __future__ import annotations

import argparse
import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import anyio

from toolcrib import ez_tool, tool


@tool
async def fine() -> str:
    """Return a word."""
    return "fine"


@tool
async def itself() -> str:
    """Exit in the tool."""
    sys.exit(2)


@ez_tool
def in_its_thread() -> str:
    """Exit in the thread of the tool."""
    sys.exit("over")


@ez_tool
def as_argparse_does() -> str:
    """Read a command line that is wrong."""
    argparse.ArgumentParser().parse_args(["--bogus"])
    return ""


@ez_tool
def in_a_thread_of_a_pool() -> str:
    """Exit in a thread of a pool, and wait for it."""
    with ThreadPoolExecutor() as pool:
        return pool.submit(sys.exit, 2).result()


async def _exit() -> str:
    await asyncio.sleep(0)
    sys.exit(2)


@tool
async def in_a_task() -> str:
    """Exit in a task, and wait for it."""
    return await asyncio.create_task(_exit())


@tool
async def in_gathered_tasks() -> str:
    """Exit in two tasks at once."""
    return "".join(await asyncio.gather(_exit(), _exit()))


@tool
async def in_a_task_group() -> str:
    """Exit in a task of a group."""
    async with asyncio.TaskGroup() as group:
        group.create_task(_exit())
    return ""


@tool
async def in_a_task_group_of_anyio() -> str:
    """Exit in a task of a group of anyio."""
    async with anyio.create_task_group() as group:
        group.start_soon(_exit)
    return ""


@tool
async def in_a_task_on_its_own() -> str:
    """Exit in a task that is not waited for."""
    task = asyncio.create_task(_exit())
    await asyncio.wait({task})
    return "gone on"


@tool
async def in_a_callback() -> str:
    """Exit in a callback of the event loop."""
    asyncio.get_running_loop().call_soon(sys.exit, 2)
    await asyncio.sleep(0.01)
    return "gone on"


@tool
async def in_a_thread_of_its_own() -> str:
    """Exit in a thread that is joined."""
    thread = threading.Thread(target=sys.exit, args=(2,))
    thread.start()
    await asyncio.to_thread(thread.join)
    return "gone on"
