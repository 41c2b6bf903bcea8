"""Who calls, and what operators give to whom; ``domain.rights`` decides by one table what they may do."""

from holdfast.domain.access.people import Principal, Role, Via

__all__ = ["Principal", "Role", "Via"]
