"""Reads and writes domains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.dialects.native.envelope import close_envelope, open_envelope
from holdfast.dialects.native.policy import SESSION_RETRY, read_session_retry
from holdfast.dialects.reading import Fields
from holdfast.domain.terms.projects import Domain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.errors import Problem


def read_domain_manifest(value: Mapping[str, Any], *, path: str, problems: list[Problem]) -> Domain | None:
    """Read a domain; ``None`` when anything was wrong."""
    before = len(problems)
    opened = open_envelope(Fields(value, path, problems), spec_required=False)
    spec = opened.spec or Fields({}, f"{path}.spec" if path else "spec", problems)
    domain = Domain(
        opened.name or "",
        description=spec.text("description") or "",
        active=spec.flag("active", default=True),
        session_retry=read_session_retry(spec),
    )
    close_envelope(opened)
    return domain if len(problems) == before else None


def write_domain(domain: Domain) -> dict[str, Any]:
    """Write a domain's ``spec``; it reads back equal."""
    spec: dict[str, Any] = {"active": domain.active}
    if domain.description:
        spec["description"] = domain.description
    if domain.session_retry:
        spec[SESSION_RETRY] = dict(domain.session_retry)
    return spec
