"""Holdfast runs batch and ML work to completion on unreliable machines, and explains every decision.

From Python: ``holdfast.Client`` submits and follows, ``holdfast.current()`` is the run a program is in. They are
imported when they are first used, so that ``import holdfast`` alone costs nothing.

Reading order: ``domain.lifecycle``, ``domain.policy``, ``controller``, ``ports``, ``app``.
"""

TYPE_CHECKING = False  # importing typing would take a tenth of the time that a small program has
if TYPE_CHECKING:
    from holdfast.sdk.array import Array
    from holdfast.sdk.asynchronous import AsyncArray, AsyncClient, AsyncJob
    from holdfast.sdk.backendai import AsyncBackendAi, BackendAi
    from holdfast.sdk.calls.context import Run, RunFailed, current
    from holdfast.sdk.calls.outcome import CallError
    from holdfast.sdk.client import Client
    from holdfast.sdk.executor import Executor
    from holdfast.sdk.futures import JobFuture
    from holdfast.sdk.job import Job, JobCancelled, JobFailed
    from holdfast.sdk.packing import PackedExecutor
    from holdfast.sdk.states import State
    from holdfast.sdk.waiting import as_completed, wait

__version__ = "0.1.0"
__all__ = [
    "Array",
    "AsyncArray",
    "AsyncBackendAi",
    "AsyncClient",
    "AsyncJob",
    "BackendAi",
    "CallError",
    "Client",
    "Executor",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobFuture",
    "PackedExecutor",
    "Run",
    "RunFailed",
    "State",
    "as_completed",
    "current",
    "wait",
]

_PLACES = {
    "Array": "array",
    "AsyncArray": "asynchronous",
    "AsyncBackendAi": "backendai",
    "AsyncClient": "asynchronous",
    "AsyncJob": "asynchronous",
    "BackendAi": "backendai",
    "CallError": "calls.outcome",
    "Client": "client",
    "Executor": "executor",
    "Job": "job",
    "JobCancelled": "job",
    "JobFailed": "job",
    "JobFuture": "futures",
    "PackedExecutor": "packing",
    "Run": "calls.context",
    "RunFailed": "calls.context",
    "State": "states",
    "as_completed": "waiting",
    "current": "calls.context",
    "wait": "waiting",
}


if not TYPE_CHECKING:  # which would take any name for one of ours

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used."""
        if name not in _PLACES:
            msg = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(msg)
        from importlib import import_module  # noqa: PLC0415 - as above

        value = getattr(import_module(f"{__name__}.sdk.{_PLACES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """List the public names, also those not imported yet."""
    return sorted({*globals(), *__all__})
