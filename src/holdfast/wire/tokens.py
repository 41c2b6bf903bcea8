"""API tokens: what is asked for, and what is shown of them, which is the text only once."""

from pydantic import Field

from holdfast.wire.base import Body, Response, Timestamp


class TokenBody(Body):
    """A token that is asked for."""

    name: str = Field(max_length=255)
    user: str | None = Field(default=None, max_length=255)
    """Who is taken for calling when it is shown; by default who asks."""
    role: str | None = None
    """At most this; by default as much as its user may."""
    scopes: list[str] = Field(default_factory=list)
    """What it is for, each as ``verbs@kind``, or of work in one place as ``verbs@job:queue=NAME`` or
    ``verbs@job:group=GROUP``; by default everything."""
    expires_s: float | None = None
    """In how many seconds it expires; by default never."""


class TokenView(Response):
    """A token without its text."""

    name: str
    user: str
    role: str
    scopes: list[str] = Field(default_factory=list)
    state: str
    """Valid, Expired or Revoked."""
    created_at: Timestamp
    created_by: str = ""
    expires_at: Timestamp | None = None
    used_on: str = ""
    """The day on which it was last used."""


class TokenMade(TokenView):
    """A new token, with its text, which is shown this once."""

    token: str


class TokenPage(Response):
    """Tokens, by name."""

    items: list[TokenView]
