"""Reads and writes domains, resource groups, images and keypairs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from holdfast.dialects.native.envelope import Opened, close_envelope, open_envelope
from holdfast.dialects.native.job import MOST_LABELS, read_env, read_labels
from holdfast.dialects.native.policy import SESSION_RETRY, read_session_retry
from holdfast.dialects.reading import LONGEST_NAME, Fields, shown
from holdfast.domain.terms.projects import Domain, Image, KeyPair, ResourceGroup

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.errors import Problem


LONGEST_REFERENCE = 512
LONGEST_OWNER = 255
MOST_WORDS = 64
_REFERENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]*")
_ACCESS_KEY = re.compile(r"[A-Z0-9]{20}")


def _open(value: Mapping[str, Any], path: str, problems: list[Problem]) -> tuple[Opened, Fields]:
    """Open a manifest that needs no ``spec``."""
    opened = open_envelope(Fields(value, path, problems), spec_required=False)
    return opened, opened.spec or Fields({}, f"{path}.spec" if path else "spec", problems)


def read_domain_manifest(value: Mapping[str, Any], *, path: str, problems: list[Problem]) -> Domain | None:
    """Read a domain; ``None`` when anything was wrong."""
    before = len(problems)
    opened, spec = _open(value, path, problems)
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


def read_group_manifest(value: Mapping[str, Any], *, path: str, problems: list[Problem]) -> ResourceGroup | None:
    """Read a resource group; ``None`` when anything was wrong."""
    before = len(problems)
    opened, spec = _open(value, path, problems)
    group = ResourceGroup(
        opened.name or "",
        description=spec.text("description") or "",
        active=spec.flag("active", default=True),
        node_selector=read_labels(spec, "nodeSelector"),
    )
    close_envelope(opened)
    return group if len(problems) == before else None


def write_group(group: ResourceGroup) -> dict[str, Any]:
    """Write a resource group's ``spec``; it reads back equal."""
    optional = {"description": group.description, "nodeSelector": dict(group.node_selector)}
    return {"active": group.active} | {name: value for name, value in optional.items() if value}


def read_image_manifest(value: Mapping[str, Any], *, path: str, problems: list[Problem]) -> Image | None:
    """Read an image; ``None`` when anything was wrong."""
    before = len(problems)
    opened = open_envelope(Fields(value, path, problems))
    spec = opened.spec
    if spec is None:
        return None
    reference = spec.text("reference", required=True, longest=LONGEST_REFERENCE)
    if reference is not None and not _REFERENCE.fullmatch(reference):
        spec.problem("reference", f"{shown(reference)} is not an image's name", hint="such as python:3.11-ubuntu22.04")
    image = Image(
        opened.name or "",
        reference or "",
        architecture=spec.text("architecture", longest=LONGEST_NAME) or "",
        labels=spec.mapping("labels", most=MOST_LABELS),
        env=read_env(spec),
        command=tuple(spec.texts("command", most=MOST_WORDS) or ()),
    )
    close_envelope(opened)
    return image if len(problems) == before else None


def write_image(image: Image) -> dict[str, Any]:
    """Write an image's ``spec``; it reads back equal."""
    optional = {
        "architecture": image.architecture,
        "labels": dict(image.labels),
        "env": dict(image.env),
        "command": list(image.command),
    }
    return {"reference": image.reference} | {name: value for name, value in optional.items() if value}


def read_keypair_manifest(value: Mapping[str, Any], *, path: str, problems: list[Problem]) -> KeyPair | None:
    """Read a keypair; ``None`` when anything was wrong."""
    before = len(problems)
    opened = open_envelope(Fields(value, path, problems), read_name=_read_access_key)
    spec = opened.spec
    if spec is None:
        return None
    keypair = KeyPair(
        opened.name or "",
        spec.text("owner", required=True, longest=LONGEST_OWNER) or "",
        admin=spec.flag("admin"),
        active=spec.flag("active", default=True),
        description=spec.text("description") or "",
    )
    close_envelope(opened)
    return keypair if len(problems) == before else None


def _read_access_key(metadata: Fields) -> str | None:
    name = metadata.text("name", required=True)
    if name is not None and not _ACCESS_KEY.fullmatch(name):
        hint = "20 capital letters and digits, such as AKIAIOSFODNN7EXAMPLE"
        metadata.problem("name", f"{shown(name)} is not an access key", hint=hint)
    return name


def write_keypair(keypair: KeyPair) -> dict[str, Any]:
    """Write a keypair's ``spec``; it reads back equal."""
    spec: dict[str, Any] = {"owner": keypair.owner, "admin": keypair.admin, "active": keypair.active}
    return spec | ({"description": keypair.description} if keypair.description else {})
