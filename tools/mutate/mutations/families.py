"""How jobs can be left behind by those that launched them."""

from __future__ import annotations

from tools.mutate.mutation import Mutation

_CHILDREN = "unit/test_children_of_jobs.py"
_FAMILIES = "e2e/test_fluster_families.py"

MUTATIONS = (
    Mutation(
        "children outlive their parent",
        "controller/controller.py",
        "        self._requests.end_children(now)\n",
        "",
        (f"{_CHILDREN}::test_what_is_below_a_job_ends_with_it_the_deepest_first_and_nothing_else_does",),
    ),
    Mutation(
        "children end in a later commit than their parent",
        "controller/controller.py",
        "        self._requests.end_children(now)\n        written = self.state.changes\n"
        "        refused = self._commit()\n",
        "        written = self.state.changes\n        refused = self._commit()\n"
        "        self._requests.end_children(now)\n",
        (_CHILDREN,),
    ),
    Mutation(
        "a child that comes late runs without its parent",
        "controller/reconcile.py",
        "                self._end_late_children(request.targets, now)\n",
        "",
        (_CHILDREN,),
    ),
    Mutation(
        "a retry of a parent is its end",
        "domain/workloads/family.py",
        "if rule is ChildrenEnd.WITH_ATTEMPT:",
        "if rule is not ChildrenEnd.UNLESS_FAILED:",
        (_CHILDREN,),
    ),
    Mutation(
        "what a parent's next attempt gets is taken for its last one's",
        "controller/families.py",
        "before.state is JobState.RUNNING and ",
        "",
        (_CHILDREN,),
    ),
    Mutation(
        "a job that has ended gets further children",
        "service/launches.py",
        "elif state in JOB_TERMINAL:",
        "elif not state:",
        ("e2e/test_fluster_children.py::test_children_end_with_their_parent_and_say_so_and_no_more_are_launched",),
    ),
    Mutation(
        "children of Iris' tasks are kept when these are tried again",
        "dialects/iris/launches.py",
        "ends or (1 if (tasks or 1) == 1 else max(_CHILDREN))",
        "ends or max(_CHILDREN)",
        ("unit/test_iris_launches.py",),
    ),
    Mutation(
        "a job that may leave its children when it fails ends them",
        "domain/workloads/family.py",
        " and parent.state not in _WELL_OR_ASKED",
        " and not parent.terminal",
        (_CHILDREN,),
    ),
    Mutation(
        "a task's former endpoints of a name are found beside its last one",
        "storage/sql/rows/endpoints.py",
        "    connection.execute(delete(_TABLE).where(*run, _ROWS.id != endpoint.id))\n",
        "",
        ("contract/test_store_endpoints.py",),
    ),
    Mutation(
        "a job finds no programs beside it, though of its family",
        "service/endpoints.py",
        "                top, below = job_id, group\n",
        "                return (WorkScope(job=job_id), WorkScope(group=group + BELOW))\n",
        (_FAMILIES,),
    ),
    Mutation(
        "a job finds programs of every family",
        "service/endpoints.py",
        "places=(*seen.places, *self._family(caller.principal.limit.job))",
        "places=None",
        (_FAMILIES,),
    ),
    Mutation(
        "whoever launches below another's job keeps its owner from ending it",
        "service/operations/batches.py",
        "partial(self._send, kind, seeing.able(Right.CANCEL, self._found(kind, caller, where)), caller, reason)",
        "partial(self._ask, kind, Right.CANCEL, caller, where, reason)",
        ("e2e/test_fluster_children.py::test_what_others_launched_below_a_job_keeps_its_owner_from_nothing",),
    ),
)
