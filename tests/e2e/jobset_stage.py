"""A server for job sets, the document's own manifests with programs that can be run, and the ledger these write.

The manifests stay as the document has them but for what no machine can run: images and commands that do not exist
become one small program (``PROGRAM``), and the placeholder ``{{topologyDomain}}`` is filled in. What a test changes
beyond that it says itself.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from holdfast.dialects.documents import read_documents
from tests.e2e.server import Server, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from holdfast.wire.jobsets import JobSetView

KEP = Path(__file__).parents[1] / "data" / "kep-262"
TOPOLOGY = "kubernetes.io/hostname"
VERBATIM = "fail-jobset"
NODES = 10
"""As many as the document's simulations need that each want one to themselves."""
PROGRAM = """\
ledger=$1
me="${REPLICATED_JOB_NAME:-}/${JOB_INDEX:-}/$JOB_COMPLETION_INDEX@$HOLDFAST_ATTEMPT"
note() { echo "$* $me $HOLDFAST_ATTEMPT_UID" >>"$ledger"; }
leave() { note end "$1"; exit "$1"; }
trap 'kill $! 2>/dev/null; leave 143' TERM
ok() { leave 0; }
nth() { [ "$(grep -c "^start 0 $me " "$ledger")" = "$1" ]; }
stay() { sleep 600 & wait $!; }
meet() { until [ "$(grep -c "^start 0 [^@]*@$HOLDFAST_ATTEMPT " "$ledger")" -ge "$1" ]; do sleep 0.02; done; }
await() { until [ -e "$ledger.$1" ]; do sleep 0.02; done; }
note start 0
"""
"""The head of every program: it tells the ledger when it begins and how it ends, also when it is told to stop.

A plan follows, a ``case`` over ``me`` (replicated job/index/completion index@attempt): ``ok``, ``leave CODE``, ``stay``
until it is stopped, ``meet N`` programs of the same attempt, ``await`` a word of the test's. ``nth N`` tells whether
this is the Nth program of its attempt, where pods are replaced one by one.
"""
PATIENCE_S = 90.0
ENDED = frozenset({"Completed", "Failed"})
OVER = frozenset({"Succeeded", "Failed", "Cancelled"})
STOPPED = 143

Change = tuple[str, Any]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the ledger."""

    what: str
    code: int
    job: str
    rank: int
    attempt: int
    uid: str

    @property
    def place(self) -> tuple[str, int]:
        """The job and the rank, which only one program may have at a time."""
        return self.job, self.rank


class Ledger:
    """What the programs of one test wrote, in the order they did."""

    def __init__(self, path: Path) -> None:
        """Begin an empty one."""
        self.path = path
        path.touch()

    def lines(self) -> list[Line]:
        """Read it."""
        found = []
        for text in self.path.read_text().splitlines():
            what, code, me, uid = text.split(" ")
            where, attempt = me.split("@")
            job, _, rank = where.rpartition("/")
            found.append(Line(what, int(code), job, int(rank), int(attempt), uid))
        return found

    def say(self, word: str) -> None:
        """Say what programs ``await``."""
        self.path.with_name(f"{self.path.name}.{word}").touch()

    def started(self) -> dict[str, list[int]]:
        """Return the attempts that began, by job and rank as ``job/rank``, in order."""
        found: dict[str, list[int]] = {}
        for line in self.lines():
            if line.what == "start":
                found.setdefault(f"{line.job}/{line.rank}", []).append(line.attempt)
        return found

    def wait_for(self, count: int) -> None:
        """Wait until so many programs have begun."""

        def have_begun() -> bool:
            return sum(line.what == "start" for line in self.lines()) >= count

        wait_until(have_begun, f"{count} programs", within_s=PATIENCE_S)

    def ends(self, attempt: int) -> Counter[int]:
        """Count the exit codes of an attempt."""
        return Counter(line.code for line in self.lines() if (line.what, line.attempt) == ("end", attempt))

    def check(self) -> None:
        """Check that every program ran once and ended, and none beside another of its job and rank."""
        running: dict[tuple[str, int], str] = {}
        begun: Counter[str] = Counter()
        for line in self.lines():
            if line.what == "start":
                assert line.place not in running, f"{line} beside {running[line.place]}"
                running[line.place] = line.uid
                begun[line.uid] += 1
            elif running.get(line.place) == line.uid:  # else it was told to stop before it could write that it began
                del running[line.place]
        assert not running, f"these never ended: {running}"
        assert set(begun.values()) <= {1}, f"a program ran twice: {begun.most_common(3)}"

    def check_generations(self) -> None:
        """Check that no program of an attempt began before all of the attempts before it had ended."""
        running: Counter[int] = Counter()
        for line in self.lines():
            running[line.attempt] += 1 if line.what == "start" else -1
            if line.what == "start":
                earlier = {attempt: count for attempt, count in running.items() if attempt < line.attempt and count}
                assert not earlier, f"{line} while programs of earlier attempts were running: {earlier}"


class Stage(Server):
    """A server with ten nodes, GPUs and impatient pods, and a ledger for each test."""

    def __init__(self, folder: Path, **environ: str) -> None:
        """Say what the machine offers."""
        offers = {"HOLDFAST_NODES": str(NODES), "HOLDFAST_CPUS": "200", "HOLDFAST_GPUS": "20"}
        super().__init__(folder, **offers, HOLDFAST_POD_BACKOFF="50ms", HOLDFAST_POD_BACKOFF_MAX="200ms", **environ)
        self.folder = folder
        self.count = 0

    def open(self) -> None:
        """Start it, and apply the document's first manifest to the letter."""
        self.api = self.start()
        self.verbatim = self.run("apply", "--lenient", "-f", str(KEP / f"{VERBATIM}.yaml"))

    def close(self) -> None:
        """End everything."""
        self.api.close()
        self.clean_up()

    def ledger(self) -> Ledger:
        """Begin a ledger."""
        self.count += 1
        return Ledger(self.folder / f"ledger-{self.count}")

    def apply(self, manifest: Mapping[str, Any]) -> str:
        """Create a job set and return its name."""
        return self.api.create_job_set(manifest, lenient=True).name

    def until(self, name: str, wanted: Callable[[JobSetView], object], what: str) -> JobSetView:
        """Wait for a job set to be as wanted."""
        seen: list[JobSetView] = []

        def is_wanted() -> bool:
            seen[:] = [self.api.job_set(name)]
            return bool(wanted(seen[0]))

        wait_until(is_wanted, f"{what} of {name}, which is {seen[0].state if seen else 'new'}", within_s=PATIENCE_S)
        return seen[0]

    def ended(self, name: str) -> JobSetView:
        """Wait until a set has ended, and nothing of it runs any more."""
        return self.until(
            name,
            lambda view: view.state in ENDED and all(child.state in OVER for child in view.children),
            "the end",
        )

    def delete(self, name: str) -> None:
        """Delete a job set and wait until it has gone, so that another test can use its name."""
        self.api.delete_job_set(name)
        wait_until(lambda: all(one.name != name for one in self.api.job_sets()), f"the end of {name}")

    def processes(self, name: str) -> list[int]:
        """List the processes that came from jobs whose names begin like this."""
        found = []
        for process in self.programs():
            with suppress(psutil.Error):
                if process.environ().get("HOLDFAST_JOB_NAME", "").startswith(name):
                    found.append(process.pid)
        return found

    def decisions(self, name: str) -> list[tuple[str, bool]]:
        """List what was decided about a set's failed jobs: actions, and whether they were granted."""
        log = self.api.job_set_log(name)
        return [(one.decision.action or "", one.decision.granted) for one in log if one.decision is not None]


def program(ledger: Ledger, plan: Mapping[str, str]) -> list[str]:
    """Return the command that does what a plan says of it; who is in no plan succeeds."""
    cases = "".join(f"{who}) {what} ;;\n" for who, what in plan.items())
    return ["/bin/sh", "-c", f'{PROGRAM}case "$me" in\n{cases}esac\nok\n', "program", str(ledger.path)]


def document(file: str, ledger: Ledger, plan: Mapping[str, str], changes: Iterable[Change] = ()) -> dict[str, Any]:
    """Read a manifest of the document, leniently, and put a program in place of what cannot run here.

    Args:
        file: Its name, without the suffix.
        ledger: Where the programs write.
        plan: What they do.
        changes: What is changed besides: dotted paths, and values.
    """
    text = (KEP / f"{file}.yaml").read_text().replace("{{topologyDomain}}", TOPOLOGY)
    (read,) = read_documents(text, name=file, lenient=True)
    for path, value in changes:
        change(read.value, path, value)
    for job in read.value["spec"]["replicatedJobs"]:
        give_program(job["template"]["spec"]["template"], program(ledger, plan))
    return dict(read.value)


def give_program(template: Mapping[str, Any], command: list[str]) -> None:
    """Replace the command of a pod template's only container, and nothing else."""
    (container,) = template["spec"]["containers"]
    container.pop("args", None)
    container["command"] = command


def change(part: Any, path: str, value: object) -> None:  # noqa: ANN401 - any document
    """Set what a dotted path names; in lists, numbers are places, and one beyond the end appends."""
    *before, last = [int(step) if step.isdecimal() else step for step in path.split(".")]
    for step in before:
        part = part[step]
    if isinstance(part, list) and last == len(part):
        part.append(value)
    else:
        part[last] = value


def jobset(name: str, *groups: Mapping[str, Any], **spec: object) -> dict[str, Any]:
    """Write a manifest of a job set, in upstream's form."""
    kind = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name}}
    return {**kind, "spec": {**spec, "replicatedJobs": list(groups)}}


def group(
    name: str,
    command: Sequence[str],
    *,
    replicas: int = 1,
    pods: int = 1,
    cpu: str = "100m",
    job: Mapping[str, Any] | None = None,
    **more: object,
) -> dict[str, Any]:
    """Write a replicated job whose jobs fail with their first failed pod, unless ``job`` says otherwise."""
    template = {"spec": {**job_spec(command, pods=pods, cpu=cpu), "backoffLimit": 0, **(job or {})}}
    return {"name": name, "replicas": replicas, "template": template, **more}


def job_spec(command: Sequence[str], *, pods: int = 1, cpu: str = "100m", restart: str = "Never") -> dict[str, Any]:
    """Write the ``spec`` of an Indexed Job of Kubernetes."""
    container = {"name": "main", "command": list(command), "resources": {"requests": {"cpu": cpu}}}
    return {
        "parallelism": pods,
        "completions": pods,
        "completionMode": "Indexed",
        "template": {"spec": {"restartPolicy": restart, "containers": [container]}},
    }
