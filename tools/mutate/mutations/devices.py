"""How handing out GPUs can be broken."""

from __future__ import annotations

from tools.mutate.mutation import Mutation

MUTATIONS = (
    Mutation(
        "a pod begins again in its place on a node that is drained",
        "controller/workloads/pods.py",
        "        if cordon is not None and cordon.drain:\n",
        "        if cordon is None and kept.node == '':\n",
        ("unit/test_drains.py",),
    ),
    Mutation(
        "a device is not charged to the run that has it",
        "domain/placement/assignment.py",
        "                free[device] -= amount\n\n    def release",
        "                free[device] -= 0\n\n    def release",
        ("unit/test_devices.py",),
    ),
    Mutation(
        "a round gives a device away twice",
        "domain/placement/scheduling.py",
        "                take(free, given, shape.request)\n",
        "                take(dict(free), given, shape.request)\n",
        ("unit/test_devices.py",),
    ),
    Mutation(
        "a device in trouble is handed out",
        "domain/placement/assignment.py",
        "for device in devices if not device.trouble}",
        "for device in devices if device}",
        ("unit/test_devices.py",),
    ),
    Mutation(
        "a retry is given the gpu that failed on any node",
        "domain/placement/fit.py",
        'if f"{device}@{key[1]}" not in shape.avoid_devices}',
        "if device}",
        ("unit/test_device_anti_affinity.py",),
    ),
    Mutation(
        "whoever asks for no gpu sees all of them",
        "engines/devices/visible.py",
        '_NONE, _NONE_IN_CONTAINERS = "-1", "void"',
        '_NONE, _NONE_IN_CONTAINERS = "", ""',
        ("unit/test_process_engine_parts.py",),
    ),
    Mutation(
        "a device that a run has shown to be faulty is handed out",
        "controller/nodes/cordons.py",
        "evolve(each, cordon=known.get(each.id))",
        "evolve(each, cordon=None)",
        ("unit/test_device_cordons.py",),
    ),
    Mutation(
        "a person's decision about a device is forgotten with the controller",
        "controller/nodes/cordons.py",
        "each.cordon for each in node.devices if each.cordon is not None",
        "each.cordon for each in node.devices if False",
        ("unit/test_device_cordons.py",),
    ),
    Mutation(
        "a device that other programs use is handed out",
        "engines/devices/watch.py",
        "used_by=used_by)",
        'used_by="")',
        ("unit/test_device_watch.py",),
    ),
    Mutation(
        "a pod takes nothing of what is counted by a name",
        "dialects/jobset/program.py",
        "named=tuple(sorted((name, amount) for name, amount in counted.items() if amount)),",
        "named=(),",
        ("unit/test_pod_resources.py",),
    ),
    Mutation(
        "an init container takes what is counted by a name beside the others",
        "dialects/jobset/program.py",
        "named = tuple((name, max(one.amount_of(name), other.amount_of(name))) for name in names)",
        "named = tuple((name, one.amount_of(name) + other.amount_of(name)) for name in names)",
        ("unit/test_pod_resources.py",),
    ),
    Mutation(
        "a queue's limit of a named resource lets one more in",
        "domain/placement/quota.py",
        "if after.amount_of(each) > most)",
        "if after.amount_of(each) - 1000 > most)",
        ("unit/test_scheduling.py",),
    ),
    Mutation(
        "a queue may limit what nobody has without a word",
        "service/operations/catalogue.py",
        "if not queue.max_running.named and not queue.per_user.max_running.named:",
        "if queue.name:",
        ("unit/test_service_catalogue.py",),
    ),
    Mutation(
        "a pod begins again on a device that is in trouble",
        "domain/workloads/kubejob/look.py",
        "if kept is not None and self.facts.useless(kept):",
        "if kept is not None and False:",
        ("unit/test_device_cordons.py",),
    ),
    Mutation(
        "a new controller takes places for kept that were given up",
        "domain/workloads/kubejob/programs.py",
        "self.facts.plan.in_place and not pod.record.place_given_up",
        "self.facts.plan.in_place",
        ("unit/test_device_cordons.py",),
    ),
)
