"""The failure catalogue: common failures of machine learning and batch work, recognised by their output.

Built-in categories explain failures and can be matched by rules, but change no decision by themselves. An operator's
categories are tried first, and one of the same name replaces a built-in one. ``tests/data/failure_lines.json`` has
real lines for each entry, with their sources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.category import CategoryRule, FailureCategory
from holdfast.domain.failure import FailureCondition
from holdfast.domain.policy.model import Action

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LAST = 1_000_000
"""The precedence of built-in categories, the largest allowed."""
_LOST = (FailureCondition.EXECUTOR_LOST, FailureCondition.NODE_LOST)
INTERNAL = FailureCategory(
    "internal",
    (
        CategoryRule(conditions=frozenset(_LOST), subcategory="lease-expired"),
        CategoryRule(conditions=frozenset({FailureCondition.LAUNCH_FAILED}), subcategory="job-creation-failed"),
        CategoryRule(conditions=frozenset({FailureCondition.UNSCHEDULABLE}), subcategory="job-rejected"),
        CategoryRule(conditions=frozenset({FailureCondition.DEADLINE_EXCEEDED}), subcategory="active-deadline"),
    ),
    LAST,
)
"""Armada's categories of failures of the system itself, if no other category matches."""
_RETRY, _FAIL, _HOLD = Action.RETRY, Action.FAIL, Action.HOLD


def _entry(subcategory: str, pattern: str, suggests: Action, hint: str) -> CategoryRule:
    return CategoryRule(log=pattern, subcategory=subcategory, suggests=suggests, hint=hint)


def _silent(subcategory: str, words: str, hint: str) -> CategoryRule:
    stalled = frozenset({FailureCondition.STALLED})
    return CategoryRule(conditions=stalled, pod_error=words, subcategory=subcategory, suggests=_RETRY, hint=hint)


_STALL = (
    _silent(
        "no-output",
        r"^no output for",
        "It printed nothing for longer than allowed: the end of holdfast logs shows where its processes were.",
    ),
    _silent(
        "no-progress",
        r"^no progress for",
        "It may have printed, but made no progress: the end of holdfast logs shows where its processes were.",
    ),
    _silent(
        "idle-device",
        r"^GPUs idle for",
        "Its GPUs were idle for longer than allowed: the end of holdfast logs shows where its processes were.",
    ),
)
_GPU = (
    _entry(
        "out-of-memory",
        r"(?:CUDA|HIP) out of memory|CUDA_ERROR_OUT_OF_MEMORY|torch\.(?:cuda\.)?OutOfMemoryError"
        r"|CUBLAS_STATUS_ALLOC_FAILED|RESOURCE_EXHAUSTED: Out of memory|cudaErrorMemoryAllocation",
        _FAIL,
        "The memory of the GPU is too small: use a smaller batch or a larger GPU, or see who else uses it.",
    ),
    _entry(
        "ecc",
        r"uncorrectable ECC error|ECC_UNCORRECTABLE",
        _RETRY,
        "The memory of the GPU is faulty: run on another node, and have the GPU reset or replaced.",
    ),
    _entry(
        "device-lost",
        r"fallen off the bus|NVRM: Xid \(|GPU is lost|CUDA-capable devices are busy or unavailable"
        r"|Unable to determine the device handle for GPU",
        _RETRY,
        "The GPU does not answer any more: run on another node, and look at that one's kernel log.",
    ),
    _entry(
        "no-device",
        r"no CUDA-capable device is detected|Found no NVIDIA driver|No CUDA GPUs are available|CUDA_ERROR_NO_DEVICE"
        r"|CUDA driver version is insufficient|Failed to initialize NVML",
        _FAIL,
        "There is no usable GPU or driver: ask for a GPU, and compare the versions of the driver and of CUDA.",
    ),
    _entry(
        "device-assert",
        r"device-side assert triggered",
        _FAIL,
        "A kernel was given bad input, usually an index out of range: run once on the CPU to see which.",
    ),
    _entry(
        "illegal-access",
        r"illegal memory access was encountered|CUDA_ERROR_ILLEGAL_ADDRESS",
        _FAIL,
        "A kernel read or wrote outside of its memory: run with CUDA_LAUNCH_BLOCKING=1 to see which.",
    ),
)
_COLLECTIVE = (
    _entry(
        "timeout",
        r"[Ww]atchdog caught collective operation timeout|Timed out initializing process group|NCCL .*timed? ?out",
        _RETRY,
        "A rank did not join a collective operation in time: look for the rank that is late or gone.",
    ),
    _entry(
        "error",
        r"nccl(?:System|Remote|Internal|UnhandledCuda)Error|NCCL [Ee]rror|NCCL WARN .*(?:failed|closed)",
        _RETRY,
        "Ranks lost contact: the network or another rank failed; NCCL_DEBUG=INFO tells more.",
    ),
)
_MEMORY = (
    CategoryRule(
        conditions=frozenset({FailureCondition.OOM_KILLED}),
        subcategory="limit",
        suggests=_RETRY,
        hint="It used more memory than it asked for: ask for more, or let a policy grow it.",
    ),
    _entry(
        "killed",
        r"oom[-_]kill event|Out of memory: Killed process|cgroup out-of-memory|OOM Killed",
        _RETRY,
        "The kernel killed a process to free memory: ask for more, or let a policy grow it.",
    ),
    _entry(
        "shared",
        r"insufficient shared memory|out of shared memory|unable to open shared memory object",
        _FAIL,
        "Shared memory is too small: use fewer loader workers, or a larger /dev/shm.",
    ),
    _entry(
        "exhausted",
        r"\b_?\w*MemoryError\b|std::bad_alloc|java\.lang\.OutOfMemoryError|Cannot allocate memory|heap out of memory"
        r"|runtime: out of memory",
        _RETRY,
        "It could not get the memory it needs: ask for more, or let it work on less at once.",
    ),
)
_DISK = (
    _entry(
        "full",
        r"No space left on device|\bENOSPC\b|StorageFull",
        _HOLD,
        "A disk is full: make room, then release or retry the job.",
    ),
    _entry(
        "quota",
        r"[Dd]isk quota exceeded|\bEDQUOT\b",
        _HOLD,
        "Your disk quota is used up: delete something or ask for more, then release or retry the job.",
    ),
    _entry(
        "stale",
        r"Stale (?:NFS )?file handle|\bESTALE\b",
        _RETRY,
        "A network file system lost a file: try again, on another node if it happens twice.",
    ),
    _entry(
        "io-error",
        r"Input/output error|Read-only file system|Transport endpoint is not connected",
        _RETRY,
        "A disk or its mount failed: run on another node, and look at that one's kernel log.",
    ),
)
_NETWORK = (
    _entry(
        "dns",
        r"Temporary failure in name resolution|Name or service not known|Could not resolve host|NameResolutionError"
        r"|getaddrinfo failed|\bEAI_AGAIN\b",
        _RETRY,
        "A host name was not found: this usually passes; if not, check the name and the node's DNS.",
    ),
    _entry(
        "reset",
        r"Connection reset by peer|ConnectionResetError|\bECONNRESET\b|Connection aborted|RemoteDisconnected",
        _RETRY,
        "The other side closed a connection: try again after a while.",
    ),
    _entry(
        "refused",
        r"Connection refused|ConnectionRefusedError|\bECONNREFUSED\b",
        _RETRY,
        "Nothing is listening there: is the service up, and are host and port right?",
    ),
    _entry(
        "timeout",
        r"Connection timed out|\bETIMEDOUT\b|ConnectTimeout|Read timed out|No route to host|Network is unreachable",
        _RETRY,
        "A host did not answer in time: try again after a while.",
    ),
)
_SERVICE = (
    _entry(
        "rate-limit",
        r"429 (?:Client Error|Too Many Requests)|Too Many Requests|RateLimitError|\bSlow ?Down\b"
        r"|reduce your request rate|ThrottlingException|RequestLimitExceeded",
        _RETRY,
        "A service was called too often: wait longer between retries, or run fewer jobs at once.",
    ),
    _entry(
        "unavailable",
        r"50[0234] (?:Server Error|Service Unavailable|Bad Gateway|Gateway Time-?out|Internal Server Error)"
        r"|ServiceUnavailable|\((?:InternalError|50[0234])\) when calling|We encountered an internal error",
        _RETRY,
        "A service, such as an object store, failed on its side: try again after a while.",
    ),
    _entry(
        "licence",
        r"(?i)failed to connect to token server|FlexNet Licensing error|license expired|HostID mismatch"
        r"|licensed number of users already reached|cannot connect to license server",
        _HOLD,
        "No licence is available: is one free and valid, and is the licence server up?",
    ),
)
_ACCESS = (
    _entry(
        "credentials",
        r"\(?ExpiredToken(?:Exception)?\b|security token included in the request is expired|NoCredentialsError"
        r"|Unable to locate credentials|401 (?:Client Error|Unauthorized)|InvalidAccessKeyId|DefaultCredentialsError",
        _HOLD,
        "Credentials are missing or have expired: renew them, then release or retry the job.",
    ),
    _entry(
        "permission",
        r"PermissionError|[Pp]ermission denied|Access ?Denied|403 (?:Client Error|Forbidden)|\bEACCES\b",
        _HOLD,
        "It lacks a permission: grant it, then release or retry the job.",
    ),
)
_ENVIRONMENT = (
    _entry(
        "library",
        r"cannot open shared object file|version `GLIBC(?:XX)?_[\d.]+' not found|undefined symbol:",
        _FAIL,
        "A library is missing or of another version: use the environment the program was built for.",
    ),
    _entry(
        "module",
        r"ModuleNotFoundError|ImportError|cannot import name",
        _FAIL,
        "A Python module is missing: is the right environment active, and everything installed in it?",
    ),
    _entry(
        "command",
        r"command not found|: not found$|Exec format error|bad interpreter",
        _FAIL,
        "A command does not exist there: check its name, PATH and the environment.",
    ),
    _entry(
        "file",
        r"FileNotFoundError|No such file or directory",
        _FAIL,
        "A file does not exist there: check the path, and the job's working directory.",
    ),
    _entry(
        "open-files",
        r"Too many open files|\bEMFILE\b",
        _FAIL,
        "It has too many files open: use fewer workers, or raise the limit (ulimit -n).",
    ),
)
_PREEMPTION = (
    _entry(
        "notice",
        r"DUE TO PREEMPTION|[Ss]pot interruption|[Ii]nstance is going to be interrupted|[Pp]reemption notice",
        _RETRY,
        "Its machine was preempted: retry from the last checkpoint.",
    ),
    _entry(
        "time-limit",
        r"DUE TO TIME LIMIT",
        _FAIL,
        "The time limit of an outer scheduler was reached: ask for more time, or write checkpoints.",
    ),
)
_PROGRAM = (
    _entry(
        "diverged",
        r"[Ll]oss (?:became infinite or NaN|is (?:nan|NaN|inf))|FloatingPointError",
        _FAIL,
        "The training diverged: lower the learning rate, or look at the data of that step.",
    ),
    _entry(
        "assertion",
        r"AssertionError|Assertion .*failed",
        _FAIL,
        "A check inside the program failed: this is a bug in it or in its input.",
    ),
    _entry(
        "usage",
        r"SyntaxError|IndentationError|error: unrecognized arguments|error: the following arguments are required",
        _FAIL,
        "The program or its command line is malformed: fix it and submit again.",
    ),
    _entry(
        "crash",
        r"Segmentation fault|Fatal Python error|Bus error|double free or corruption",
        _FAIL,
        "The program crashed in native code: a bug in a library, or a faulty machine if it happens on one only.",
    ),
)
BUILT_IN: Sequence[FailureCategory] = tuple(
    FailureCategory(name, rules, LAST)
    for name, rules in (
        ("stall", _STALL),
        ("gpu", _GPU),
        ("collective", _COLLECTIVE),
        ("memory", _MEMORY),
        ("disk", _DISK),
        ("network", _NETWORK),
        ("service", _SERVICE),
        ("access", _ACCESS),
        ("environment", _ENVIRONMENT),
        ("preemption", _PREEMPTION),
        ("program", _PROGRAM),
    )
)
"""In order of evaluation."""


def builtin_beside(own: Iterable[FailureCategory]) -> Sequence[FailureCategory]:
    """Return the built-in categories that the operator's own do not replace."""
    names = {category.name for category in own}
    return [category for category in BUILT_IN if category.name not in names]
