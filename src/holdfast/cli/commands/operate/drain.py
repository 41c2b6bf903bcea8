"""``holdfast cordon``, ``drain`` and ``uncordon``: which nodes and GPUs take work."""

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.options import ReasonOption
from holdfast.cli.targets import do_each, required

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.client import Client
    from holdfast.wire.catalogue import NodeView

_LOOK_EVERY_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesOptions:
    names: Annotated[
        list[str], typer.Argument(metavar="NODE...", help="One or more; holdfast get nodes lists them.")
    ] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class UncordonOptions:
    names: Annotated[
        list[str], typer.Argument(metavar="NODE|GPU...", help="Names of nodes; ids of GPUs, or ID@NODE.")
    ] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class CordonOptions(UncordonOptions):
    reason: ReasonOption = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainOptions(NodesOptions):
    reason: ReasonOption = ""
    wait: Annotated[bool, typer.Option("--wait", help="Wait until nothing runs there.")] = False


def cordon(options: CordonOptions, cli: Cli) -> int:
    """Stop placing work on nodes, or handing out GPUs; what is already running continues."""
    with cli.connect() as client:
        gpus, nodes = _apart(client, options)
        code = _of_gpus(gpus, lambda name: client.cordon_device(name, reason=options.reason), "cordoned", cli)
        if gpus and not nodes:
            return code
        return max(code, _of_nodes(nodes, lambda name: client.cordon(name, reason=options.reason), "cordoned", cli))


def uncordon(options: UncordonOptions, cli: Cli) -> int:
    """Place work on cordoned or drained nodes again, and hand out cordoned GPUs again.

    A GPU is cordoned automatically when a run shows that it is faulty.
    """
    with cli.connect() as client:
        gpus, nodes = _apart(client, options)
        code = _of_gpus(gpus, client.uncordon_device, "uncordoned", cli)
        return code if gpus and not nodes else max(code, _of_nodes(nodes, client.uncordon, "uncordoned", cli))


def drain(options: DrainOptions, cli: Cli) -> int:
    """Cordon nodes, and stop what runs there.

    Jobs are warned and stopped, and continue elsewhere or once the node is uncordoned, which uses no retry. Pods of
    Jobs and job sets fail as disrupted (DisruptionTarget), and their own rules decide what follows.
    """
    with cli.connect() as client:
        code = _of_nodes(options.names, lambda name: client.drain(name, reason=options.reason), "is being drained", cli)
        if code == exit_codes.OK and options.wait:
            while any(node.runs for node in _chosen(client, options)):
                time.sleep(_LOOK_EVERY_S)
            cli.output().text(f"{', '.join(options.names)} drained")
        return code


def _chosen(client: "Client", options: NodesOptions) -> "list[NodeView]":
    return [node for node in client.nodes() if node.name in options.names]


def _apart(client: "Client", options: UncordonOptions) -> tuple[list[str], list[str]]:
    """Separate GPUs from nodes; a name that both have is the node's."""
    nodes = {node.name for node in client.nodes()}
    device_names = {name for device in client.devices() for name in (device.id, f"{device.id}@{device.node}")} - nodes
    return [name for name in options.names if name in device_names], [
        name for name in options.names if name not in device_names
    ]


def _of_gpus(names: "Sequence[str]", act: "Callable[[str], object]", done: str, cli: Cli) -> int:
    if not names:
        return exit_codes.OK
    code = do_each(names, act, cli, what="GPU", done=done)
    if code == exit_codes.OK and cli.is_unserved():
        cli.say("no server is running; lists show it once you run `holdfast up`")
    return code


def _of_nodes(names: "Sequence[str]", act: "Callable[[str], object]", done: str, cli: Cli) -> int:
    return do_each(required(names, "holdfast drain NODE"), act, cli, what="node", done=done)


CORDON = Command("cordon", CordonOptions, cordon, "Operate", examples=("holdfast cordon n1 --reason 'a new kernel'",))
DRAIN = Command("drain", DrainOptions, drain, "Operate", examples=("holdfast drain n1 --wait",))
UNCORDON = Command(
    "uncordon", UncordonOptions, uncordon, "Operate", examples=("holdfast uncordon n1", "holdfast uncordon GPU-5d1c")
)
