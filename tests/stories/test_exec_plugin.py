"""What a credential plugin of a kubeconfig may do without harm: print without end, leave children behind, hang."""

import asyncio
import json
import os
import shlex
import time
from pathlib import Path

import pytest

from tests.support.event_loops import PATIENCE, either_loop, eventually
from topodns.kube.client.contract import ApiError
from topodns.kube.client.exec_plugin import MAX_PRINTED, Credential, run_plugin

VERSION = "client.authentication.k8s.io/v1"
DEADLINE = 2.0  # seconds, of a plugin that hangs

EXPIRES = ("  expirationTimestamp: 2025-11-27T12:00:00Z",)

pytestmark = either_loop


def printing(**status: object) -> str:
    credential = {"kind": "ExecCredential", "apiVersion": VERSION, "status": status}
    return f"echo '{json.dumps(credential)}'"


async def credential_of(script: str, deadline: float = PATIENCE) -> Credential:
    spec = {"command": "sh", "apiVersion": VERSION, "args": ["-c", script]}
    return await run_plugin(spec, "/", deadline)


async def problem_of(script: str, deadline: float = PATIENCE) -> str:
    with pytest.raises(ApiError) as caught:
        await credential_of(script, deadline)
    return str(caught.value)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_output_without_end_is_refused_before_it_fills_the_memory(loop_name: str) -> None:
    began = time.monotonic()
    problem = await problem_of("cat /dev/zero")
    assert problem == f"exec: sh printed more than {MAX_PRINTED} octets, expected an ExecCredential"
    assert time.monotonic() - began < PATIENCE


async def test_much_output_of_a_plugin_that_then_hangs_does_not_outlast_the_deadline(loop_name: str) -> None:
    problem = await problem_of(f"head -c {MAX_PRINTED} /dev/zero; exec sleep 600", DEADLINE)
    assert problem == f"exec: sh took longer than {DEADLINE:g} s"


async def test_a_flood_on_stderr_does_not_matter_and_its_beginning_is_the_reason(loop_name: str) -> None:
    flood = "echo no network >&2; head -c 10000000 /dev/zero >&2;"
    assert (await credential_of(f"{flood} {printing(token='t')}")).token == "t"
    problem = await problem_of(f"{flood} exit 3")
    assert problem.startswith("exec: sh ended with status 3: no network")
    assert len(problem) < 1000


@pytest.mark.parametrize("starting", ["", "setsid "], ids=["in its group", "in a session of its own"])
@pytest.mark.parametrize("after", [";", "&"], ids=["in the foreground", "in the background"])
async def test_a_child_that_keeps_the_output_open_outlasts_neither_deadline_nor_leaves_descriptors(
    loop_name: str, starting: str, after: str
) -> None:
    await credential_of(printing(token="t"))
    before, began = descriptors(), time.monotonic()
    problem = await problem_of(f"{printing(token='t')}; {starting}sleep 60 {after} true", 0.5)
    assert problem == "exec: sh took longer than 0.5 s"
    assert time.monotonic() - began < 30
    await eventually(lambda: descriptors() <= before)


async def test_a_child_left_behind_in_its_group_is_ended(loop_name: str, tmp_path: Path) -> None:
    await problem_of(f"sleep 20 & echo $! > {tmp_path}/child", DEADLINE)
    child = int((tmp_path / "child").read_text())
    await eventually(lambda: not _is_running(child))


@pytest.mark.parametrize("status", [{"token": {"a": 1}}, {"token": 5}, {"token": "t", "clientKeyData": ["k"]}])
async def test_credentials_that_are_no_strings_are_refused(loop_name: str, status: dict[str, object]) -> None:
    problem = await problem_of(printing(**status))
    assert problem == "exec: sh printed a token, certificate or key that is no string"


async def test_a_credential_in_yaml_is_read_as_by_kubectl(loop_name: str) -> None:
    lines = ("kind: ExecCredential", f"apiVersion: {VERSION}", "status:", "  token: abc", *EXPIRES)
    found = await credential_of(f"printf '%s\\n' {' '.join(map(shlex.quote, lines))}")
    assert (found.token, found.expires) == ("abc", 1_764_244_800)


@pytest.mark.parametrize("printed", ["token abc: [", "- a", "abc", ""])
async def test_output_that_is_no_credential_is_refused_without_a_word_of_it(loop_name: str, printed: str) -> None:
    problem = await problem_of(f"printf %s {shlex.quote(printed)}")
    assert problem.startswith("exec: what sh printed is no ExecCredential")
    assert "abc" not in problem


async def test_a_cancelled_run_ends_the_plugin(loop_name: str, tmp_path: Path) -> None:
    task = asyncio.create_task(credential_of(f"echo $$ > {tmp_path}/plugin; exec sleep 20"))
    await eventually(lambda: (tmp_path / "plugin").exists() and (tmp_path / "plugin").read_text() != "")
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    await eventually(lambda: not _is_running(int((tmp_path / "plugin").read_text())))


def _is_running(process: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
