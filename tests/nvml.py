"""A shared library with the interface of NVIDIA's NVML, compiled here, whose two GPUs do what a file says.

Each line of the file ``nvml.state`` beside it is a UUID and what is true of it: ``lost``, ``gone``,
``busy``, or the number of a process that computes on it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

UUIDS = ("GPU-5d1c", "GPU-77aa")
SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { char old[16]; unsigned domain, bus, device, ids, subsystem; char id[32]; } pci_t;
typedef struct { unsigned pid; unsigned long long used; unsigned gpu, compute; } process_t;
static const char *uuids[] = {"GPU-5d1c", "GPU-77aa"};

static int said(const char *uuid, const char *word, process_t *to, unsigned most) {
    char name[64], what[64];
    unsigned found = 0;
    FILE *state = fopen(STATE, "r");
    while (state && fscanf(state, "%63s %63s", name, what) == 2) {
        if (strcmp(name, uuid)) continue;
        if (word ? !strcmp(what, word) : atoi(what) > 0) {
            if (to && found < most) to[found] = (process_t){atoi(what), 0, 0, 0};
            found++;
        }
    }
    if (state) fclose(state);
    return found;
}

int nvmlInitWithFlags(unsigned flags) { return REFUSES; }
int nvmlInit_v2(void) { return REFUSES; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return "refused"; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) { *handle = (void *)(index + 1UL); return 0; }
int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle) {
    for (long index = 0; index < 2; index++) {
        if (strcmp(uuid, uuids[index])) continue;
        *handle = (void *)(index + 1);
        return said(uuid, "lost", NULL, 0) ? 15 : said(uuid, "gone", NULL, 0) ? 6 : 0;
    }
    return 6;
}
int nvmlDeviceGetUUID(void *handle, char *to, unsigned size) { strncpy(to, uuids[(long)handle - 1], size); return 0; }
int nvmlDeviceGetName(void *handle, char *to, unsigned size) { strncpy(to, "NVIDIA A100-SXM4-40GB", size); return 0; }
int nvmlDeviceGetMemoryInfo(void *handle, memory_t *to) { to->total = 40ULL << 30; to->free = to->used = 0; return 0; }
int nvmlDeviceGetPciInfo_v3(void *handle, pci_t *to) {
    memset(to, 0, sizeof *to);
    snprintf(to->id, sizeof to->id, "00000000:%02X:00.0", 0x3b + (int)(long)handle - 1);
    return 0;
}
int nvmlDeviceGetUtilizationRates(void *handle, unsigned *to) {
    to[0] = said(uuids[(long)handle - 1], "busy", NULL, 0) ? 80 : 0;
    return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, process_t *to) {
    unsigned room = *count, found = said(uuids[(long)handle - 1], NULL, to, room);
    *count = found;
    return found > room ? 7 : 0;
}
"""


def compiled(folder: Path, *, refuses: int = 0) -> dict[str, str]:
    """Compile it into a folder; returns the environment in which it is NVIDIA's."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler to make the library with")
    (folder / "nvml.c").write_text(SOURCE)
    library = folder / "libnvidia-ml.so.1"
    told = [f"-DREFUSES={refuses}", f'-DSTATE="{folder}/nvml.state"']
    subprocess.run([compiler, "-shared", "-fPIC", *told, "-o", library, folder / "nvml.c"], check=True)
    searched = os.pathsep.join(filter(None, [str(folder), os.environ.get("LD_LIBRARY_PATH")]))
    return {"LD_LIBRARY_PATH": searched}
