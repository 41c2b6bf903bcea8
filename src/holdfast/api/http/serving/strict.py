"""Refuses query parameters that an endpoint does not know: a mistyped filter would otherwise list everything.

Values with a NUL are refused, too: no name has one, and not every database accepts one in a query.
"""

from typing import TYPE_CHECKING, get_args, get_origin

from fastapi import Request
from fastapi.routing import APIRoute

from holdfast.domain.suggestion import closest
from holdfast.errors import InvalidRequest, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fastapi.dependencies.models import Dependant


async def known_query_only(request: Request) -> None:  # no thread of its own: it only looks
    """Check the names of all query parameters, that only lists repeat, and that all values are text.

    Raises:
        InvalidRequest: With all problems, and the names that are known.
    """
    route = request.scope.get("route")
    if not request.query_params or not isinstance(route, APIRoute):
        return
    fields = dict(_query_fields(route.dependant))
    names = [name for name, _ in request.query_params.multi_items()]
    problems = [_unknown(name, fields) for name in dict.fromkeys(names) if name not in fields]
    problems += [
        Problem(f"query.{name}", f"is there {names.count(name)} times", hint="send it once")
        for name in dict.fromkeys(names)
        if name in fields and names.count(name) > 1 and not _is_list(fields[name])
    ]
    problems += [
        Problem(f"query.{name}", "contains a NUL character")
        for name, value in request.query_params.multi_items()
        if "\0" in value and name in fields
    ]
    if problems:
        raise InvalidRequest(problems=problems)


def _query_fields(dependant: "Dependant") -> "Iterable[tuple[str, object]]":
    """Return the type of each query parameter by its name."""
    yield from ((field.alias, field.field_info.annotation) for field in dependant.query_params)
    for inner in dependant.dependencies:
        yield from _query_fields(inner)


def _unknown(name: str, fields: "Iterable[str]") -> Problem:
    allowed = tuple(sorted(fields))
    message = "is not a query parameter of this address" if allowed else "this address takes no query parameters"
    return Problem(f"query.{name}", message, allowed=allowed, hint=closest(name, allowed))


def _is_list(annotation: object) -> bool:
    return any(get_origin(part) is list for part in (annotation, *get_args(annotation)))
