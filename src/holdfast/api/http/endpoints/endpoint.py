"""What an endpoint is: an address, what it takes, what it answers, and the use case behind it.

The endpoints themselves are in the modules that ``MODULES`` names, one function each; ``workloads`` adds those that
every kind of work has. ``serving`` answers HTTP with them; a command without a server calls them in its own process.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from holdfast.domain.access.group import BELOW, LONGEST
from holdfast.domain.audit import Caller
from holdfast.domain.terms.entries import ENTRIES, NOTIFIER
from holdfast.domain.terms.kinds import KINDS
from holdfast.service.manifests.text import Text
from holdfast.service.operations.backend import Backend
from holdfast.wire.base import API

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from holdfast.wire.base import Response

LONGEST_NAME = 255
MOST_FILTERS = 64
MODULES = {
    "healthz": ("system",),
    "readyz": ("system",),
    "metrics": ("system",),
    "version": ("system",),
    "me": ("system",),
    "nodes": ("system",),
    "devices": ("system",),
    "dry-run": ("submissions",),
    "secrets": ("submissions",),
    "jobs": ("jobs", "submissions"),
    "arrays": ("arrays",),
    "jobsets": ("jobsets",),
    **{info.plural: ("entries",) for info in ENTRIES.values()},
    "settings": ("settings",),
    NOTIFIER.plural: ("entries", "notifications"),
    "notifications": ("notifications",),
    "summary": ("figures",),
    "overview": ("figures",),
    "report": ("figures",),
    "job-names": ("figures",),
    "events": ("events",),
    "audit": ("events",),
    "tokens": ("tokens",),
    **{kind.plural: (f"{kind.package}.views",) for kind in KINDS.values() if kind.package},
}
"""The modules with the endpoints of an address, by its first word, in the order in which they are described.

A command that needs one of them imports no others.
"""


@dataclass(frozen=True, slots=True)
class Param:
    """The description and the limits of a parameter."""

    description: str | None = None
    ge: int | None = None
    le: int | None = None
    max_length: int | None = None
    header: str | None = None
    """The header that carries it; without one, name and type say which part of the path, query or body does."""

    @property
    def limits(self) -> dict[str, Any]:
        """The description and the limits that are set, by name."""
        names = ("description", "ge", "le", "max_length")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class Parameter(NamedTuple):
    """One parameter of an endpoint, and where its value comes from."""

    name: str
    source: Literal["backend", "caller", "text", "body", "path", "query", "header"]
    """The server gives ``backend`` and ``caller``, ``text`` is the body as sent, others are parts of the request."""
    key: str
    """Its name in that part of the request."""
    type: Any
    limits: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Takes:
    """A body that is read as text: a manifest, or with ``many`` several."""

    description: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})
    many: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer with a status, a location or a version of its own."""

    view: Response
    status: int | None = None
    """``None``: the endpoint's usual status."""
    location: str | None = None
    version: str | None = None
    """The ``ETag``, for conditional requests."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one address; the function's docstring says what it does, and its parameters what it takes."""

    method: str
    path: str
    answer: type[Response] | None
    call: Callable[..., Reply | Response | bytes | None]
    refusals: tuple[int, ...] = ()
    summary: str = ""
    status: int = 200
    created: tuple[type[Response], str] | None = None
    """The model that it answers with 201, and when."""
    takes: Takes | None = None
    name: str = ""
    """The operation's name; by default the function's."""

    @property
    def parameters(self) -> list[Parameter]:
        """The function's parameters, with the sources of their values."""
        hints = get_type_hints(self.call, include_extras=True)
        hints.pop("return", None)
        return [self._parameter(name, hint) for name, hint in hints.items()]

    def _parameter(self, name: str, hint: Any) -> Parameter:  # noqa: ANN401 - a type
        param = next((part for part in get_args(hint) if isinstance(part, Param)), Param())
        plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
        if plain in _SOURCES:
            return Parameter(name, _SOURCES[plain], name, plain, {})
        if any(hasattr(part, "model_validate") for part in (plain, *get_args(plain))):
            return Parameter(name, "body", name, plain, {})
        if param.header:
            return Parameter(name, "header", param.header, plain, param.limits)
        return Parameter(name, "path" if f"{{{name}}}" in self.path else "query", name, plain, param.limits)


_SOURCES: dict[Any, Literal["backend", "caller", "text"]] = {Backend: "backend", Caller: "caller", Text: "text"}


class Endpoints(list[Endpoint]):
    """The endpoints of one module, under one heading."""

    def __init__(self, tag: str, prefix: str = API) -> None:
        super().__init__()
        self.tag, self._prefix = tag, prefix

    def add(  # noqa: PLR0913 - what there is to say of an endpoint
        self,
        method: str,
        path: str,
        answer: type[Response] | None,
        *refusals: int,
        summary: str,
        status: int = 200,
        created: tuple[type[Response], str] | None = None,
        takes: Takes | None = None,
        name: str = "",
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register the decorated function."""

        def register(call: Callable[..., Any]) -> Callable[..., Any]:
            refusal_codes = (*refusals, 413, 415) if takes else refusals
            self.append(
                Endpoint(
                    method, self._prefix + path, answer, call, refusal_codes, summary, status, created, takes, name
                )
            )
            return call

        return register


def groups() -> Iterator[Endpoints]:
    """Import all modules and yield their endpoints, in the order in which they are described."""
    for name in dict.fromkeys(chain.from_iterable(MODULES.values())):
        yield from _groups_of(name)


def endpoints_near(path: str) -> Iterator[Endpoint]:
    """Yield the endpoints that a path may belong to, by its first word."""
    for name in MODULES.get(path.removeprefix(API).split("/")[1], ()):
        for group in _groups_of(name):
            yield from group


def _groups_of(name: str) -> tuple[Endpoints, ...]:
    groups: tuple[Endpoints, ...] = import_module(name if "." in name else f"{__package__}.{name}").ENDPOINTS
    return groups


def created_status(*, dry_run: bool) -> int:
    """Return 201, or 200 for a dry run."""
    return 200 if dry_run else 201


Word = Annotated[str | None, Param(max_length=LONGEST_NAME)]
User = Annotated[str | None, Param("Name of the user who submitted them.", max_length=LONGEST_NAME)]
Group = Annotated[
    str | None,
    Param("Only of this group; with a slash at the end, also of the groups below it.", max_length=LONGEST + len(BELOW)),
]
Name = Annotated[str, Param(max_length=LONGEST_NAME)]
MustExist = Annotated[bool, Param("Only replace; 404 if it does not exist.")]
DryRun = Annotated[bool, Param("Check everything and store nothing.")]
Lenient = Annotated[bool, Param("Accept what Kubernetes accepts in its kinds, with a warning for each.")]
Key = Annotated[
    str | None, Param("A second request with the same key stores nothing.", max_length=255, header="Idempotency-Key")
]
IfMatch = Annotated[
    str | None, Param("The `ETag` it must still have; otherwise 409.", max_length=1000, header="If-Match")
]
Ref = Annotated[str, Param("A job's id, a unique prefix of it, or a name (the newest job).", max_length=LONGEST_NAME)]
