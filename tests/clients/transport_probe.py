"""transport_probe.py NAME URL SCRATCH: runs the asyncio client with a peer of transport_test.py; prints one line.

The test runs it again without async and await, for threads.
"""
from __future__ import annotations

import asyncio
import json
import pathlib
import sys

from caisson_client import AsyncClient, AsyncSandbox, CaissonError, SandboxInfo

NAME, URL, SCRATCH = sys.argv[1:4]
TIMEOUT = 0.5 if NAME == "silent" else 20.0


async def probe(client: AsyncClient, sandbox: AsyncSandbox) -> object:
    if NAME.startswith("resume"):
        stream = await sandbox.stream("anything")
        text = ""
        async for piece in stream:
            text += piece.text
        return [text, stream.info.exit_code if stream.info else None]
    if NAME == "ended_events":
        async for _ in await client.events():
            pass
        return "ended"
    if NAME.endswith("terminal"):
        terminal = await sandbox.terminal()
        shown = b""
        async for data in terminal:
            shown += data
        return [shown.decode(), terminal.result]
    if NAME == "refused_upload":
        return await sandbox.files.write("a", (b"x" * 65536 for _ in range(2000)))
    if NAME == "cut_body":
        return await sandbox.files.download("a", pathlib.Path(SCRATCH) / "cut")
    if NAME.startswith("idle_"):
        await client.whoami()
        if NAME == "idle_put":
            return await sandbox.files.write("a", "content")
        if NAME == "idle_post":
            return (await sandbox.run("anything")).stdout
    return (await client.whoami()).name


async def main() -> None:
    async with AsyncClient(URL, request_timeout=TIMEOUT, start=False) as client:
        sandbox = AsyncSandbox(client, SandboxInfo("a b/c", "", {}, "running", 0, 0))
        try:
            outcome = await probe(client, sandbox)
        except CaissonError as error:
            outcome = type(error).__name__
    print(json.dumps(outcome))


asyncio.run(main())
