"""Reads and checks single values as Kubernetes does, with its messages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from holdfast.domain.workloads.kubejob.model import UNLIMITED

if TYPE_CHECKING:
    from enum import StrEnum

    from holdfast.dialects.jobset.wording import ManifestNotes
    from holdfast.dialects.reading import Fields


LONGEST_LABEL = 63
LONGEST_SUBDOMAIN = 253
TOO_LONG = f"must be no more than {LONGEST_LABEL} characters"
_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_DNS_1123 = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_1123_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_QUALIFIED_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def dns_1035_label(value: str) -> list[str]:
    """Return the problem of a name that becomes a service or host name."""
    return _checked(value, LONGEST_LABEL, _DNS_1035, _1035_RULE)


def dns_1123_label(value: str) -> list[str]:
    """Return the problem of a container's name."""
    return _checked(value, LONGEST_LABEL, _DNS_1123, _1123_RULE)


def dns_1123_subdomain(value: str) -> list[str]:
    """Return the problem of an object's name."""
    return _checked(value, LONGEST_SUBDOMAIN, _SUBDOMAIN, _SUBDOMAIN_RULE)


def label_value(value: str) -> list[str]:
    """Return the problem of a label's value."""
    return _checked(value, LONGEST_LABEL, _LABEL_VALUE, _LABEL_RULE)


def qualified_name(value: str) -> list[str]:
    """Return the problem of a label's key or a condition's type."""
    prefix, slash, name = value.rpartition("/")
    wrong = [f"prefix part {message}" for message in dns_1123_subdomain(prefix)] if slash else []
    if not name:
        return [*wrong, "name part must be non-empty"]
    if len(name) > LONGEST_LABEL:
        wrong.append(f"name part {TOO_LONG}")
    return wrong if _QUALIFIED.fullmatch(name) else [*wrong, _QUALIFIED_RULE]


def domain_prefixed_path(value: str) -> list[str]:
    """Return the problem of a ``managedBy``."""
    domain, slash, path = value.partition("/")
    if not slash or not domain or not path:
        return ['must be a domain-prefixed path (such as "acme.io/foo")']
    wrong = dns_1123_subdomain(domain)
    return wrong if _PATH.fullmatch(path) else [*wrong, "must have a path of letters, digits and '/-._~%!$&'"]


def _checked(value: str, longest: int, pattern: re.Pattern[str], rule: str) -> list[str]:
    wrong = [f"must be no more than {longest} characters"] if len(value) > longest else []
    return wrong if pattern.fullmatch(value) else [*wrong, rule]


E = TypeVar("E", bound="StrEnum")
T = TypeVar("T")
NOT_NEGATIVE = "must be greater than or equal to 0"


def whole(fields: Fields, name: str, *, low: int = -UNLIMITED, high: int = UNLIMITED) -> int | None:
    """Read a 32-bit integer."""
    return fields.integer(name, low=low, high=high)


def count(fields: Fields, notes: ManifestNotes, name: str) -> int | None:
    """Read an integer that is not negative."""
    value = whole(fields, name)
    if value is not None and value < 0:
        notes.invalid(fields.at(name), value, NOT_NEGATIVE)
        return None
    return value


def one_of(fields: Fields, notes: ManifestNotes, name: str, options: type[E]) -> E | None:
    """Read one of an enumeration's values, listed in its order."""
    value = fields.raw(name)
    if value is None:
        return None
    allowed = [option.value for option in options]
    if value not in allowed:
        notes.not_supported(fields.at(name), value, allowed)
        return None
    return options(str(value))


def or_default(value: T | None, default: T) -> T:
    """Return the value, or the default if it is absent; 0 and False are values."""
    return default if value is None else value
