"""Reads the RetryPolicy manifest: the envelope around a policy's ``spec``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.dialects.native.envelope import close_envelope, open_envelope
from holdfast.dialects.native.policy import NATIVE, policy_warnings, read_policy_fields
from holdfast.dialects.reading import Fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.domain.policy.model import RetryPolicy
    from holdfast.errors import Problem


def read_policy_manifest(
    value: Mapping[str, Any], *, path: str, problems: list[Problem], warnings: list[Problem] | None = None
) -> RetryPolicy | None:
    """Read a retry policy; ``None`` when anything was wrong."""
    before = len(problems)
    opened = open_envelope(Fields(value, path, problems))
    policy = read_policy_fields(opened.spec, opened.name or "", NATIVE) if opened.spec is not None else None
    close_envelope(opened)
    if warnings is not None and policy is not None:
        warnings.extend(policy_warnings(policy, f"{path}.spec" if path else "spec"))
    return policy if len(problems) == before else None
