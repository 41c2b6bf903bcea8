"""Callers and the permissions they were granted; ``domain.rights`` decides by one table what they may do."""

from holdfast.domain.access.people import Principal, Role, Via

__all__ = ["Principal", "Role", "Via"]
