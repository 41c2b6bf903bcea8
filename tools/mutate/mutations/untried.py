"""How keeping retries off the nodes that were tried can be broken."""

from __future__ import annotations

from tools.mutate.mutation import Mutation

_TESTS = ("unit/test_untried_nodes.py",)
MUTATIONS = (
    Mutation(
        "a retry that is to go to an untried node is placed on any",
        "domain/placement/fit.py",
        "if self.key[1] == shape.avoid or self.key[1] in shape.avoid_nodes:",
        "if self.key[1] == shape.avoid:",
        _TESTS,
    ),
    Mutation(
        "only the last node counts as tried",
        "domain/workloads/gang/conclude.py",
        "    return and_tried(job.tried, *nodes)\n",
        "    return and_tried((), *nodes)\n",
        _TESTS,
    ),
    Mutation(
        "of a gang only the node of the rank that failed counts as tried",
        "domain/workloads/gang/conclude.py",
        "    nodes = [run.node for run in runs if run.may_have_run]\n",
        "    nodes: list[str] = []\n",
        _TESTS,
    ),
    Mutation(
        "a retry for which no untried node is left waits forever",
        "domain/workloads/retry.py",
        "    if not shape.avoid_nodes or not places:\n        return False\n",
        "    if shape.avoid_nodes or not places:\n        return False\n",
        _TESTS,
    ),
    Mutation(
        "a retry fails although an untried node may come back",
        "domain/workloads/retry.py",
        "and not (away and ever_fits(anywhere, (*places, *away)))",
        "",
        _TESTS,
    ),
    Mutation(
        "no untried node is waited for whose GPU is in trouble",
        "domain/workloads/retry.py",
        "    return not ever_fits(anywhere, places) and",
        "    return not ever_fits(anywhere, [one for one in places if not any(it.health for it in one.devices)]) and",
        _TESTS,
    ),
    Mutation(
        "a pod for which no untried node is left waits forever",
        "controller/workloads/kubejobs.py",
        "        if never:\n            active, work, name = self._pods.waiting[key]\n",
        "        if never and not key:\n            active, work, name = self._pods.waiting[key]\n",
        _TESTS,
    ),
    Mutation(
        "a node that is gone is waited for forever",
        "controller/nodes/away.py",
        "        return now - self._state.since(node.seen_at) < MAY_COME_BACK_S\n",
        "        return node.seen_at < now + MAY_COME_BACK_S\n",
        _TESTS,
    ),
    Mutation(
        "nodes from before this controller are gone for good at once",
        "controller/nodes/away.py",
        "self._state.since(node.seen_at)",
        "node.seen_at",
        _TESTS,
    ),
    Mutation(
        "a retry by hand of a job that has ended is kept off the nodes from before",
        "domain/workloads/gang/conclude.py",
        "        job = evolve(job, avoid_nodes=(), tried=())\n",
        "        job = evolve(job)\n",
        _TESTS,
    ),
    Mutation(
        "nodes that were tried are forgotten with a hold or a drain",
        "domain/workloads/gang/conclude.py",
        "    job = evolve(job, tried=tried_by(job, over.runs, last.failure))\n",
        "    job = evolve(job)\n",
        _TESTS,
    ),
)
