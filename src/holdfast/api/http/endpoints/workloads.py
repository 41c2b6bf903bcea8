"""The addresses that every kind of work has: its list, and its verbs, such as cancel, hold and delete."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from holdfast.api.http.endpoints.endpoint import (
    LONGEST_NAME,
    MOST_FILTERS,
    Endpoints,
    Group,
    IfMatch,
    Param,
    Reply,
    User,
    Word,
)
from holdfast.api.http.endpoints.parameters import read_match, read_name, write_cursor
from holdfast.domain.audit import Act, Caller
from holdfast.domain.terms.kinds import KindInfo
from holdfast.service.operations.backend import Backend
from holdfast.service.operations.filters import mark_of_workloads, read_states, workload_filter
from holdfast.wire.base import Response
from holdfast.wire.jobs import Reason
from holdfast.wire.problems import unreadable_views

LARGEST_PAGE = 1000
DEFAULT_PAGE = 100
_LONGEST_REASON = 1000

Limit = Annotated[int, Param(ge=1, le=LARGEST_PAGE)]
State = Annotated[list[str] | None, Param("Any of these; case is ignored.", max_length=MOST_FILTERS)]
Label = Annotated[list[str] | None, Param("Each as `key=value`; all must hold.", max_length=MOST_FILTERS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Presentation:
    """How one kind of work appears in the API."""

    info: KindInfo
    group: Endpoints
    """The endpoints that its addresses are added to."""
    operations: Callable[[Backend], Any]
    """Its operations, which have ``page`` and ``ask``."""
    page: type[Any]
    """The model of a page of its list."""
    listed: Callable[[Any], Iterable[tuple[Any, str, Mapping[str, str]]]]
    """The rows of a page, each with its state and labels."""
    view: Callable[[Any], Response]
    """Shows a row of the list."""
    accepted: Callable[[Backend, Caller, Any], Reply]
    """Answers a verb."""
    answer: type[Response]
    """The model of that answer."""
    versioned: bool = False
    """Whether verbs accept ``If-Match``."""

    @property
    def ref(self) -> Any:  # noqa: ANN401 - a type
        """The type of the parameter that names one in an address."""
        article = "An" if self.info.noun[0] in "aeiou" else "A"
        return Annotated[str, Param(f"{article} {self.info.noun}'s name or id.", max_length=LONGEST_NAME)]

    def add_list(self, name: str) -> None:
        """Add the address of the list, as operation ``name``."""

        def call(  # noqa: PLR0913 - the parameters of an address
            backend: Backend,
            caller: Caller,
            *,
            state: State = None,
            label: Label = None,
            user: User = None,
            group: Group = None,
            limit: Limit = DEFAULT_PAGE,
            cursor: Word = None,
        ) -> Response:
            states, labels = read_states(state or (), label or (), self.info.states)
            where = workload_filter(user, group)
            mark = f"{self.info.noun}s {mark_of_workloads(where, states, labels)}"
            page = self.operations(backend).page(caller, where, after=read_name(cursor, mark), limit=limit)
            items = [
                self.view(workload)
                for workload, its_state, its_labels in self.listed(page)
                if (not states or its_state in states) and set(labels) <= its_labels.items()
            ]
            left = unreadable_views(page.unreadable)
            response: Response = self.page(
                items=items, next_cursor=write_cursor(page.next_after, mark), unreadable=left
            )
            return response

        what = f"List {self.info.noun}s"
        more = "with a filter a page may hold fewer than its limit and still not be the last."
        call.__name__, call.__doc__ = name, f"{what} by name; {more}"
        self.group.add("GET", f"/{self.info.plural}", self.page, summary=what)(call)

    def add_verb(self, act: Act, name: str, summary: str, text: str, *refusals: int) -> None:
        """Add the address of a verb, as operation ``name``."""

        def ask(backend: Backend, caller: Caller, ref: str, reason: str, if_match: str | None = None) -> Reply:
            versions = read_match(if_match).versions
            versions_given = {"if_match": versions} if self.versioned else {}
            return self.accepted(
                backend, caller, self.operations(backend).ask(caller, act, ref, reason, **versions_given)
            )

        call: Callable[..., Any]
        if act is Act.DELETE and self.versioned:

            def call(
                backend: Backend, caller: Caller, ref: str, *, if_match: IfMatch = None, reason: _Why = ""
            ) -> Reply:
                return ask(backend, caller, ref, reason, if_match)
        elif act is Act.DELETE:

            def call(backend: Backend, caller: Caller, ref: str, *, reason: _Why = "") -> Reply:
                return ask(backend, caller, ref, reason)
        elif self.versioned:

            def call(
                backend: Backend, caller: Caller, ref: str, reason: Reason | None = None, *, if_match: IfMatch = None
            ) -> Reply:
                return ask(backend, caller, ref, reason.reason if reason else "", if_match)
        else:

            def call(backend: Backend, caller: Caller, ref: str, reason: Reason | None = None) -> Reply:
                return ask(backend, caller, ref, reason.reason if reason else "")

        call.__name__, call.__doc__ = name, text
        call.__annotations__["ref"] = self.ref
        method, verb = ("DELETE", "") if act is Act.DELETE else ("POST", f"/{act}")
        path = f"/{self.info.plural}/{{ref}}{verb}"
        self.group.add(method, path, self.answer, *refusals, summary=summary, status=202)(call)


_Why = Annotated[str, Param(max_length=_LONGEST_REASON)]
