"""``--secret-env NAME[=FILE]``: variables whose values are sent apart from the job, and are not stored with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.manifests import in_spec
from holdfast.cli.submission.export import is_own_job
from holdfast.errors import InvalidManifest, Problem
from holdfast.ports.secrets import LARGEST_SECRET

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.flags import Flags
    from holdfast.cli.manifests import Manifest
    from holdfast.client import Client

_FLAG = "--secret-env"


def secret_values(words: Sequence[str], environ: Mapping[str, str], flags: Flags) -> dict[str, str]:
    """Read the values of secret variables, from this shell or from files; messages never repeat them."""
    values: dict[str, str] = {}
    for word in words:
        name, equals, file = word.partition("=")
        value = _content(file, flags) if equals else environ.get(name)
        if value is None and not equals:
            flags.wrong(_FLAG, f"{name!r} is not set here", hint=f"export it first, or write {_FLAG} {name}=FILE")
        elif value is not None and (trouble := _trouble(value)):
            flags.wrong(_FLAG, f"the value of {name!r} {trouble}")
        elif value is not None:
            values[name] = value
    return values


def _content(file: str, flags: Flags) -> str | None:
    try:
        return Path(file).read_text(encoding="utf-8").removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        flags.wrong(
            _FLAG, f"{file or 'an empty name'} cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}"
        )
        return None


def _trouble(value: str) -> str:
    if not value:
        return "is empty"
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return "is not UTF-8 text"
    if size > LARGEST_SECRET:
        return f"is longer than {LARGEST_SECRET} bytes"
    return "contains a NUL character, which no variable can" if "\0" in value else ""


def with_secrets(manifests: Sequence[Manifest], named: Mapping[str, object]) -> list[Manifest]:
    """Set secret variables in all manifests, in place of their own.

    Raises:
        InvalidManifest: Some are job sets or Jobs of Kubernetes, which cannot have them.
    """
    others = [manifest for manifest in manifests if not is_own_job(manifest)]
    if others:
        problems = [manifest.locate(Problem("kind", f"cannot be combined with {_FLAG}")) for manifest in others]
        raise InvalidManifest(problems=problems, hint="only jobs and arrays in Holdfast's own form have secrets")
    return [in_spec(manifest, {"env": {**_variables(manifest), **named}}) for manifest in manifests]


def _variables(manifest: Manifest) -> Mapping[str, object]:
    env = manifest.spec.get("env")
    return env if isinstance(env, Mapping) else {}


def send_secrets(client: Client, values: Mapping[str, str]) -> dict[str, object]:
    """Send secrets to the server; returns their references for ``env`` of a manifest."""
    return {variable: {"secret": client.keep_secret(value)} for variable, value in values.items()}
