"""The kinds of workload as they are stored: who looks after one."""

from __future__ import annotations

GANG = "gang"
KUBEJOB = "kubejob"
JOB_KINDS = {kind: kind for kind in (GANG, KUBEJOB)}
"""The kinds whose workloads are jobs; looking one up refuses every other word."""
JOBSET = "jobset"
ARRAY = "array"
UNREAD = "job"
"""The kind of a job whose kind is unknown."""
