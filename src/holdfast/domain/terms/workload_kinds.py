"""The kinds of workload as stored, which determine the reconciler."""

from __future__ import annotations

GANG = "gang"
KUBEJOB = "kubejob"
JOB_KINDS = {kind: kind for kind in (GANG, KUBEJOB)}
"""The kinds whose workloads are jobs; looking up any other word fails."""
JOBSET = "jobset"
ARRAY = "array"
UNREAD = "job"
"""The kind of a job whose kind is unknown."""
