"""Calls every route with the asyncio client. The test runs it again without async and await, for threads.

    python_scenario.py URL TOKEN WORKSPACE SCRATCH      CAISSON_HOME: the home of the owner's server
"""
from __future__ import annotations

import asyncio
import json
import os
import pathlib
import sys
import tarfile
import urllib.request

from caisson_client import (ApprovalRequiredError, AsyncClient, AsyncSandbox, ConflictError, ForbiddenError,
                            InvalidRequestError, NotFoundError, UnauthorizedError, UnavailableError)

URL, TOKEN, WORKSPACE, SCRATCH = sys.argv[1:5]
requests: list[tuple[str, str, int]] = []


def record(method: str, path: str, status: int) -> None:
    requests.append((method, path, status))


async def commands(sandbox: AsyncSandbox) -> None:
    result = await sandbox.run("echo out; echo err >&2; exit 3")
    assert (result.stdout, result.stderr, result.exit_code, result.ok) == ("out\n", "err\n", 3, False), result
    assert (await sandbox.run(["printf", "%s", "a b"])).stdout == "a b"
    assert (await sandbox.run("cat; echo $X", stdin="in ", environment={"X": "1"})).stdout == "in 1\n"
    assert (await sandbox.run("cat", stdin=b"\xff\x00")).stdout_raw == b"\xff\x00"
    slow = await sandbox.run("sleep 60", command_timeout=0.3)
    assert slow.outcome == "limit" and slow.limit is not None and not slow.ok, slow
    once = [await sandbox.run("echo x >> once; wc -l < once", idempotency_key="run-1") for _ in range(2)]
    assert once[0].stdout == once[1].stdout == "1\n", once

    pieces: list[str] = []
    stream = await sandbox.stream("for i in 1 2 3; do echo $i; done; exit 4")
    async for piece in stream:
        pieces.append(piece.text)
    assert "".join(pieces) == "1\n2\n3\n" and stream.info is not None and stream.info.exit_code == 4

    background = await sandbox.start("read line; echo got $line; cat; echo end", keep_stdin=True)
    assert (await background.info()).running
    await background.write("one\n")
    followed = await background.output()
    async for piece in followed:
        assert piece.text == "got one\n" and piece.offset == 0
        break
    await followed.close()
    await background.write(b"two\n", close=True)
    again = await sandbox.command(background.id).output(stdout_offset=len("got one\n"))
    rest = ""
    async for piece in again:
        rest += piece.text
    assert rest == "two\nend\n", rest
    assert (await background.wait()).exit_code == 0

    sleeper = await sandbox.start("sleep 100")
    await sleeper.signal("TERM")
    assert (await sleeper.wait()).signal == 15
    sleeper = await sandbox.start("sleep 100")
    await sleeper.kill()
    assert not (await sleeper.wait()).running
    assert {one.id for one in await sandbox.commands()} >= {background.id, sleeper.id}

    # A resize reaches the program with a delay: the client's terminal is not the terminal of the sandbox.
    line = "stty size; until stty size | grep '^40 100'; do sleep 0.05; done; read line; echo got $line; exit 7"
    terminal = await sandbox.terminal(line, rows=30, columns=90, command_timeout=30)
    shown, resized, typed = b"", False, False
    async for data in terminal:
        shown += data
        if b"30 90" in shown and not resized:
            resized = True
            await terminal.resize(40, 100)
        if b"40 100" in shown and not typed:
            typed = True
            await terminal.write("hello\n")
    assert b"40 100" in shown and b"got hello" in shown, shown
    assert terminal.result is not None and terminal.result["exit_code"] == 7, terminal.result


async def files(sandbox: AsyncSandbox) -> None:
    scratch = pathlib.Path(SCRATCH)
    assert await sandbox.files.write("a.txt", "hello") == 5
    assert await sandbox.files.write("run.sh", b"#!/bin/sh\necho ran\n", mode=0o755) == 19
    assert (await sandbox.run("./run.sh")).stdout == "ran\n"
    assert await sandbox.files.read("a.txt") == b"hello"
    assert await sandbox.files.read("a.txt", offset=1, length=3) == b"ell"
    assert await sandbox.files.text("a.txt") == "hello"
    assert await sandbox.files.write("pieces", (b"x" * 70000 for _ in range(3))) == 210000
    status = await sandbox.files.stat("a.txt")
    assert status.size == 5 and status.type == "regular file", status
    await sandbox.files.mkdir("d/e")
    await sandbox.files.move("a.txt", "d/b.txt")
    assert "b.txt" in [one.name for one in await sandbox.files.list("d")]
    for wrong in ("a.txt", "nowhere/x"):
        try:
            await sandbox.files.read(wrong)
            raise AssertionError(f"{wrong} was read")
        except NotFoundError as error:
            assert error.status == 404 and error.code == "not_found" and error.reason, error
    try:
        await sandbox.files.read("../../../etc/passwd")
        raise AssertionError("a path led out")
    except (ForbiddenError, NotFoundError, InvalidRequestError):
        pass

    (scratch / "up").write_bytes(bytes(range(256)) * 2000)
    assert await sandbox.files.upload(scratch / "up", "d/up") == 512000
    assert await sandbox.files.download("d/up", scratch / "down") == 512000
    assert (scratch / "up").read_bytes() == (scratch / "down").read_bytes()
    await sandbox.files.pack("d", scratch / "d.tar")
    with tarfile.open(scratch / "d.tar") as archive:
        assert "./up" in archive.getnames(), archive.getnames()
    await sandbox.files.unpack(scratch / "d.tar", "unpacked")
    assert (await sandbox.files.stat("unpacked/up")).size == 512000

    changes = await sandbox.files.watch("d")
    await sandbox.files.write("d/new", "1")
    async for change in changes:
        if change.path.endswith("new"):
            assert change.kind == "created", change
            break
    await changes.close()
    await sandbox.files.remove("d", recursive=True)


async def names(sandbox: AsyncSandbox) -> None:
    """Uses names that are not UTF-8 with every method."""
    scratch = pathlib.Path(SCRATCH)
    await sandbox.files.mkdir("names")
    changes = await sandbox.files.watch("names")
    await sandbox.run(r"""printf 1 > "$(printf 'names/\303\244\377\360\237\230\200b')" """)  # valid UTF-8, and a byte that is not
    async for change in changes:
        assert (change.kind, change.path) == ("created", "names/ä\udcff😀b"), change
        break
    await changes.close()
    (listed,) = await sandbox.files.list("names")
    assert listed.name == "ä\udcff😀b", listed
    path = f"names/{listed.name}"
    assert await sandbox.files.read(path) == b"1" and (await sandbox.files.stat(path)).name == listed.name
    assert await sandbox.files.write(path, "22") == 2 and await sandbox.files.text(path) == "22"
    await sandbox.files.mkdir("names/d\udcfe/e")
    await sandbox.files.move(path, "names/d\udcfe/plain")
    await sandbox.files.move("names/d\udcfe/plain", "names/d\udcfe/\udc80")
    assert await sandbox.files.download("names/d\udcfe/\udc80", scratch / "name") == 2
    assert await sandbox.files.upload(scratch / "name", "names/d\udcfe/up\udcfd") == 2
    await sandbox.files.pack("names/d\udcfe", scratch / "names.tar")
    await sandbox.files.unpack(scratch / "names.tar", "names/u\udcfc")
    assert {one.name for one in await sandbox.files.list("names/u\udcfc")} == {"e", "\udc80", "up\udcfd"}
    await sandbox.files.remove("names/d\udcfe/\udc80")
    shown = (await sandbox.run("find names/d* -type f")).stdout_raw
    assert shown == b"names/d\xfe/up\xfd\n", shown
    await sandbox.files.remove("names", recursive=True)


async def history(owner: AsyncClient) -> None:
    pathlib.Path(WORKSPACE, "kept").write_text("old\n")
    sandbox = await AsyncSandbox.create(client=owner, workspace=WORKSPACE, name="history")
    await sandbox.files.write("kept", "new\n")
    first = await sandbox.checkpoint("first")
    await sandbox.files.remove("kept")
    await sandbox.restore(first.name)
    assert await sandbox.files.text("kept") == "new\n"
    assert "first" in [one.name for one in await sandbox.checkpoints()]
    diff = await sandbox.diff(patch=True)
    assert [(one.path, one.kind) for one in diff.changes] == [("kept", "modified")], diff
    assert "+new" in diff.changes[0].patch
    forked = await sandbox.fork(name="forked")
    assert forked.id != sandbox.id and await forked.files.text("kept") == "new\n"
    await forked.destroy()
    try:
        await sandbox.commit(expect="0" * 64)
        raise AssertionError("a wrong digest was committed")
    except (ConflictError, InvalidRequestError, UnavailableError):
        pass
    planned = await sandbox.commit(dry_run=True)
    assert pathlib.Path(WORKSPACE, "kept").read_text() == "old\n"
    done = await sandbox.commit(expect=planned.digest)
    assert done.digest == planned.digest and pathlib.Path(WORKSPACE, "kept").read_text() == "new\n"
    await commit_names(sandbox)
    await sandbox.destroy()


async def commit_names(sandbox: AsyncSandbox) -> None:
    """Selects one of two files whose names are not UTF-8."""
    await sandbox.run(r"""printf x > "$(printf 'n\377\nx')"; printf y > "$(printf 'n\376\nx')"; printf 'l\351\n' > latin""")
    changes = {one.path: one for one in (await sandbox.diff(patch=True)).changes}
    assert set(changes) == {"n\udcff\nx", "n\udcfe\nx", "latin"}, changes
    assert "\n+l\udce9\n" in changes["latin"].patch, changes
    planned = await sandbox.commit(paths=["n\udcff\nx"], dry_run=True)
    assert [one["path"] for one in planned.applied] == ["n\udcff\nx"], planned
    await sandbox.commit(paths=["n\udcff\nx"], expect=planned.digest)
    written = [name for name in os.listdir(os.fsencode(WORKSPACE)) if name.startswith(b"n")]
    assert written == [b"n\xff\nx"], written
    os.unlink(os.fsencode(WORKSPACE) + b"/n\xff\nx")


async def network(sandbox: AsyncSandbox) -> None:
    server = await sandbox.start("mkdir -p www; echo page > www/index.html; python3 -m http.server -d www 8000")
    port = await sandbox.expose(8000)
    assert port.port == 8000 and str(port.port) in port.preview_url, port
    page = ""
    for _ in range(200):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port.host_port}/", timeout=5) as response:
                page = response.read().decode()
            break
        except OSError:
            await sandbox.run("sleep 0.1")
    assert page == "page\n", page
    assert [one.port for one in await sandbox.ports()] == [8000]
    await sandbox.unexpose(8000)
    assert await sandbox.ports() == []
    await server.kill()
    assert (await sandbox.network.allow("example.org", stop=True)).allowed_hosts == ["example.org"]
    await sandbox.network.deny("bad.example.org")
    assert (await sandbox.network.remove("example.org")).allowed_hosts == []
    assert (await sandbox.network.get()).mode == "proxy"
    assert await sandbox.network.credentials() == []


async def server(owner: AsyncClient, sandbox: AsyncSandbox) -> None:
    assert await owner.health() and await owner.ready()
    assert (await owner.whoami()).owner
    assert "caisson" in await owner.metrics()
    assert (await owner.stats())["sandboxes"] >= 1
    assert [one["name"] for one in await owner.templates()] == ["small"]
    try:
        assert isinstance(await owner.images(), list)
    except UnavailableError as error:
        assert error.status == 501, error
    assert "dev" in await owner.policies.list()
    assert (await owner.policies.get("dev")).explanation
    assert (await owner.policies.check({"resources": {"memory": "256M"}})).valid
    assert not (await owner.policies.check({"resources": {"memory": "much"}})).valid
    assert (await owner.openapi())["openapi"].startswith("3.1")
    assert [one.event for one in await owner.audit.query(sandbox=sandbox.id, limit=5)]
    records, events = await owner.audit.stream(), await owner.events()
    small = await AsyncSandbox.create(client=owner, template="small", labels={"scenario": "python"})
    async for event in events:
        if event.sandbox_id == small.id:
            assert event.type == "sandbox.created", event
            break
    await events.close()
    # The stream begins at the end of the log when the server first reads it. Each request adds a record.
    for _ in range(20):
        await owner.whoami()
    async for entry in records:
        assert entry.seq > 0 and entry.event, entry
        break
    await records.close()
    listed = await owner.sandboxes(label="scenario=python")
    assert [one.id for one in listed.sandboxes] == [small.id]
    page = await owner.sandboxes(limit=1)
    assert len(page.sandboxes) == 1 and page.next_cursor is not None
    assert (await owner.sandboxes(limit=1, cursor=page.next_cursor)).sandboxes[0].id != page.sandboxes[0].id
    await small.destroy()


async def tokens(owner: AsyncClient) -> None:
    async with AsyncClient(URL, token=TOKEN, on_response=record) as caller:
        assert not (await caller.whoami()).owner
        async with await AsyncSandbox.create(client=caller, idempotency_key="create-1") as sandbox:
            same = await AsyncSandbox.create(client=caller, idempotency_key="create-1")
            assert same.id == sandbox.id
            assert (await sandbox.run("ls -A; echo ok")).stdout == "ok\n"
            try:
                await sandbox.network.allow("example.org")
                raise AssertionError("a token allowed a host")
            except ApprovalRequiredError as error:
                asked = error.approvals[0]
            assert asked["id"] in [one.id for one in await caller.approvals.list()]
            assert (await owner.approvals.get(asked["id"])).state == "pending"
            try:
                await caller.approvals.answer(asked["id"], "allow")
                raise AssertionError("a token approved its own request")
            except ForbiddenError:
                pass
            assert (await owner.approvals.answer(asked["id"], "allow", seconds=60)).state == "allowed"
            assert (await sandbox.network.allow("example.org")).allowed_hosts == ["example.org"]
    async with AsyncClient(URL, token="wrong", on_response=record) as stranger:
        try:
            await stranger.sandboxes()
            raise AssertionError("a wrong token was accepted")
        except UnauthorizedError as error:
            assert error.status == 401 and error.try_, error


async def main() -> None:
    async with AsyncClient(on_response=record) as owner:
        sandbox = await AsyncSandbox.create(client=owner, name="main", memory="512M", command_timeout=60)
        assert sandbox.info.name == "main" and sandbox.info.command_timeout == 60, sandbox.info
        assert (await AsyncSandbox.connect(sandbox.id, client=owner)).id == sandbox.id
        assert (await sandbox.extend(1800)).sandbox_timeout == 1800
        assert (await sandbox.refresh()).state == "running"
        await commands(sandbox)
        await files(sandbox)
        await names(sandbox)
        await network(sandbox)
        await server(owner, sandbox)
        await history(owner)
        await tokens(owner)
        await sandbox.destroy()
        try:
            await sandbox.refresh()
            raise AssertionError("a destroyed sandbox was found")
        except NotFoundError:
            pass
    print(json.dumps(requests))


asyncio.run(main())
