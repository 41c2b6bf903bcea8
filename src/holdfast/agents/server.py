"""Serves the tools on standard input and output, as agents start their servers."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

from holdfast import __version__
from holdfast.agents.arrays import ArrayTools
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.agents.limits import ToolLimits
    from holdfast.agents.tools import ToolContext

_ABOUT = """Holdfast runs programs to completion on unreliable machines, retries them by policy, and explains why.
Look at a job with get_job until its state is Succeeded, Failed, Cancelled or Held; ask why_job and job_logs before a
retry_job. Many tasks of one program are an array: submit_array, get_array, why_array, and rerun_array for what failed.
"""


def serve(surroundings: ToolContext, limits: ToolLimits) -> None:
    """Serve until the agent closes standard input."""
    _server(ArrayTools(surroundings, limits), limits).run("stdio")


def _server(tools: ArrayTools, limits: ToolLimits) -> MCPServer[Any]:
    about = _ABOUT + ("These tools only read." if limits.read_only else _allowed(limits))
    server: MCPServer[Any] = MCPServer("holdfast", version=__version__, instructions=about, log_level="WARNING")
    looks = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    for look in (tools.list_jobs, tools.get_job, tools.why_job, tools.job_logs, tools.get_array, tools.why_array):
        server.add_tool(_readable(look), annotations=looks)
    if limits.read_only:
        return server
    for start in (tools.submit_jobs, tools.retry_job, tools.submit_array, tools.rerun_array):
        server.add_tool(_readable(start), annotations=ToolAnnotations(destructive_hint=False))
    for end in (tools.cancel_job, tools.cancel_array):
        server.add_tool(_readable(end), annotations=ToolAnnotations(destructive_hint=True, idempotent_hint=True))
    return server


def _allowed(limits: ToolLimits) -> str:
    own = "" if limits.any_job else " Only jobs that were submitted with these tools can be retried or cancelled."
    return f"At most {limits.per_call} jobs at once and {limits.per_session} in all can be submitted.{own}"


def _readable(tool: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Turn a refusal into an error that the agent can read."""

    @wraps(tool)
    def call(**arguments: object) -> dict[str, Any]:
        try:
            return tool(**arguments)
        except HoldfastError as error:
            raise ToolError(str(error)) from error

    return call
