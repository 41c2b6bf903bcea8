"""A real client of the official package speaks with ``holdfast mcp``, which does what was allowed and no more."""

from __future__ import annotations

import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp_types import TextContent

from tests.e2e.server import HOLDFAST, Server
from tests.e2e.test_cli_shell import Shell, served, shell

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from pathlib import Path

__all__ = ["served", "shell"]
PATIENCE_S, SOON_S = 60.0, 0.05
LOOKS = {"list_jobs", "get_job", "why_job", "job_logs", "get_array", "why_array"}
CHANGES = {"submit_jobs", "retry_job", "cancel_job", "submit_array", "rerun_array", "cancel_array"}
FAILS = {"name": "fails", "shell": "echo so it goes; exit 7"}
ENDED = {"Succeeded", "Failed", "Cancelled", "Held"}


class Agent:
    """What an agent does with its tools."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def use(self, tool: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - of each tool's own
        answer = await self.client.call_tool(tool, arguments)
        assert not answer.is_error, answer.content
        found: dict[str, Any] | None = answer.structured_content
        assert found is not None
        return found

    async def refused(self, tool: str, **arguments: Any) -> str:  # noqa: ANN401 - as above
        answer = await self.client.call_tool(tool, arguments)
        assert answer.is_error, answer.structured_content
        [said] = answer.content
        assert isinstance(said, TextContent)
        return said.text

    async def submit(self, *jobs: dict[str, Any]) -> list[str]:
        return [one["id"] for one in (await self.use("submit_jobs", jobs=list(jobs)))["items"]]

    async def until(self, job: str, states: set[str]) -> dict[str, Any]:
        with anyio.fail_after(PATIENCE_S):
            while (found := await self.use("get_job", job=job))["state"] not in states:
                with anyio.move_on_after(SOON_S):
                    await anyio.Event().wait()
            return found

    async def until_array(self, array: str, states: set[str]) -> None:
        with anyio.fail_after(PATIENCE_S):
            while (await self.use("get_array", array=array))["state"] not in states:
                with anyio.move_on_after(SOON_S):
                    await anyio.Event().wait()


@asynccontextmanager
async def agent(data: Path, *flags: str, **environ: str) -> AsyncIterator[Agent]:
    command, *arguments = HOLDFAST
    environ = {"HOLDFAST_DATA": str(data), **environ}
    parameters = StdioServerParameters(command=command, args=[*arguments, "mcp", *flags], env=environ, cwd=data.parent)
    async with Client(parameters, read_timeout_seconds=PATIENCE_S) as client:
        yield Agent(client)


def play(data: Path, story: Callable[[Agent], Coroutine[Any, Any, None]], *flags: str) -> None:
    async def whole() -> None:
        async with agent(data, *flags) as one:
            await story(one)

    anyio.run(whole)


def test_an_agent_submits_looks_asks_why_reads_logs_retries_and_cancels(served: Shell) -> None:
    async def story(agent: Agent) -> None:
        tools = (await agent.client.list_tools()).tools
        assert {tool.name for tool in tools} == LOOKS | CHANGES
        assert all(tool.description for tool in tools)
        first, second = await agent.submit(FAILS, {"name": "long", "command": ["sleep", "1000"], "retries": 2})
        found = await agent.until(first, {"Failed"})
        assert (found["labels"], found["attempts"][0]["exit_code"]) == ({"submitted-by": "agent"}, 7)
        assert "exit code 7" in " ".join((await agent.use("why_job", job="fails"))["summary"])
        assert (await agent.use("job_logs", job=first))["text"] == "so it goes\n"
        again = await agent.use("retry_job", job=first)
        assert (again["done"], again["id"]) == ("retried", first)
        while len((await agent.until(first, {"Failed"}))["attempts"]) == 1:
            pass
        assert "nothing to retry" in await agent.refused("retry_job", job="long")
        await agent.use("cancel_job", job="long", reason="not needed")
        assert (await agent.until(second, {"Cancelled"}))["state"] == "Cancelled"
        listed = (await agent.use("list_jobs", states=["Failed"], limit=1))["jobs"]
        assert [job["id"] for job in listed] == [first]

    play(served.folder / "data", story)


def test_an_agent_sweeps_asks_why_runs_again_what_failed_and_cancels(served: Shell) -> None:
    sweep = {"name": "sweep", "shell": 'test "{lr}" != 2', "matrix": {"lr": [1, 2, 3], "seed": [0, 1]}}

    async def story(agent: Agent) -> None:
        made = await agent.use("submit_array", array=sweep)
        assert (made["name"], made["total"], made["labels"]) == ("sweep", 6, {"submitted-by": "agent"})
        await agent.until_array("sweep", {"Failed"})
        (group,) = (await agent.use("why_array", array="sweep"))["groups"]
        assert (group["indexes"], group["count"], group["exit_code"]) == ("2,3", 2, 1)
        assert (await agent.use("get_job", job="sweep-2"))["state"] == "Failed"
        again = await agent.use("rerun_array", array="sweep", indices="3", memory="1Gi")
        assert (again["rerun_of"]["name"], again["indices"]) == ("sweep", "3")
        endless = {"name": "endless", "command": ["sleep", "1000"], "indices": "0-1"}
        await agent.use("submit_array", array=endless)
        assert (await agent.use("cancel_array", array="endless"))["name"] == "endless"
        await agent.until_array("endless", {"Cancelled"})
        too_many = await agent.refused("submit_array", array={**endless, "name": "more", "indices": "0-20"})
        assert "21 jobs are too many for one call" in too_many
        assert "1 of 10 jobs of this session are left" in await agent.refused(
            "submit_array", array={**endless, "name": "most"}
        )

    play(served.folder / "data", story, "--max-jobs", "10")


def test_a_held_job_is_released_by_a_retry(served: Shell) -> None:
    policy = "apiVersion: holdfast.dev/v1\nkind: RetryPolicy\nmetadata: {name: ask-agent}\n"
    rules = "spec: {rules: [{name: person, action: Hold, reason: look at it}]}\n"
    (served.folder / "ask.yaml").write_text(policy + rules)
    assert served.run("apply", "-f", "ask.yaml").code == 0

    async def story(agent: Agent) -> None:
        [job] = await agent.submit({"shell": 'test "$HOLDFAST_ATTEMPT" = 2', "retry_policies": ["ask-agent"]})
        await agent.until(job, {"Held"})
        assert (await agent.use("retry_job", job=job))["done"] == "released"
        assert (await agent.until(job, {"Succeeded"}))["attempt"] == 2

    play(served.folder / "data", story)


@pytest.mark.slow
def test_an_agent_may_do_what_it_was_allowed_and_no_more(served: Shell) -> None:
    data = served.folder / "data"
    served.run("create", "queue", "agents")
    persons = served.run("run", "--detach", "--name", "persons", "--", "sleep", "1000").out.strip()

    async def looking(agent: Agent) -> None:
        assert {tool.name for tool in (await agent.client.list_tools()).tools} == LOOKS
        assert (await agent.use("get_job", job=persons))["name"] == "persons"

    async def bounded(agent: Agent) -> None:
        ok = {"command": ["true"]}
        assert "too many for one call; at most 2" in await agent.refused("submit_jobs", jobs=[ok] * 3)
        bad = await agent.refused("submit_jobs", jobs=[{"command": ["true"], "memory": "much"}])
        assert "memory" in bad
        for _ in range(2):
            jobs = [await agent.until(job, ENDED) for job in await agent.submit(ok, ok)]
            assert {job["queue"] for job in jobs} == {"agents"}
            assert {job["labels"]["team"] for job in jobs} == {"bots"}
        assert "0 of 4 jobs of this session are left" in await agent.refused("submit_jobs", jobs=[ok])
        assert "queue 'default' is not allowed" in await agent.refused("submit_jobs", jobs=[{**ok, "queue": "default"}])
        for tool in ("get_job", "why_job", "job_logs", "cancel_job", "retry_job"):
            assert "these tools see only agents" in await agent.refused(tool, job=persons), tool
        assert {job["queue"] for job in (await agent.use("list_jobs"))["jobs"]} == {"agents"}

    async def own(agent: Agent) -> None:
        assert "lacks the label submitted-by=agent" in await agent.refused("cancel_job", job=persons)

    async def anyones(agent: Agent) -> None:
        await agent.use("cancel_job", job=persons)
        await agent.until(persons, {"Cancelled"})

    play(data, looking, "--read-only")
    play(data, bounded, "--queue", "agents", "--label", "team=bots", "--max-per-call", "2", "--max-jobs", "4")
    play(data, own)
    play(data, anyones, "--any-job")


def test_an_agent_is_told_that_nobody_runs_its_jobs(shell: Shell) -> None:
    async def story(agent: Agent) -> None:
        answer = await agent.use("submit_jobs", jobs=[{"command": ["true"]}])
        assert "holdfast up" in answer["note"]

    play(shell.folder / "data", story)


def test_a_mistake_in_a_request_is_told_by_its_place(shell: Shell) -> None:
    async def story(agent: Agent) -> None:
        assert "programme" in await agent.refused("submit_jobs", jobs=[{"programme": "x"}])
        assert "no job has the id or name" in await agent.refused("get_job", job="nowhere")

    play(shell.folder / "data", story)


def test_without_the_package_the_command_says_what_to_install() -> None:
    hidden = "import sys; sys.modules['mcp'] = None; from holdfast.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", hidden, "mcp"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'holdfast-scheduler[mcp]'" in done.stderr


def test_wrong_limits_are_refused_before_anything_is_served(server: Server) -> None:
    said = Shell(server.data.parent).run("mcp", "--max-per-call", "0", "--label", "x")
    assert said.code == 2
    assert "--max-per-call" in said.err
    assert "--label" in said.err


def test_no_job_at_all_may_be_allowed(shell: Shell) -> None:
    async def story(agent: Agent) -> None:
        assert "0 of 0 jobs" in await agent.refused("submit_jobs", jobs=[{"command": ["true"]}])

    play(shell.folder / "data", story, "--max-jobs", "0")
