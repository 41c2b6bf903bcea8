"""What is sent along with jobs before they are submitted: contents of work directories, and secrets."""

from holdfast.wire.base import Body, Response


class BlobBody(Body):
    """Something for the work directories of jobs that are about to be submitted."""

    data: str
    """The bytes, as base64."""
    unpack: bool = False
    """Whether it is a zip archive, and is to be refused unless it may be unpacked."""


class BlobKept(Response):
    """Where it is."""

    blob: str
    """Its SHA-256, for ``{path: PATH, blob: SHA}`` or ``{blob: SHA, unpack: true}`` in ``inputs`` of a manifest."""


class SecretBody(Body):
    """A secret for jobs that are about to be submitted."""

    value: str


class SecretKept(Response):
    """Where a secret is."""

    name: str
    """For ``{secret: NAME}`` in ``env`` of a manifest."""
