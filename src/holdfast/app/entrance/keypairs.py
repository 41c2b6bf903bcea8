"""Identifies callers at Backend.AI's door by the keypairs that they sign with, and writes the administrator's."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from holdfast.api.backendai.signature import is_signed_by, read_credential, read_day
from holdfast.app.data.datadir import KEYPAIR_FILE, DataDir
from holdfast.app.data.token import kept_token, write_private
from holdfast.app.data.trust import trusted_folder
from holdfast.app.entrance.visitors import Visitors, peer_of
from holdfast.domain.access import Role
from holdfast.domain.record import Struct
from holdfast.errors import Unauthenticated, Unavailable
from holdfast.service.access.keypairs import KeypairSecrets
from holdfast.wire.backendai.signatures import SCHEME, SignedCall

if TYPE_CHECKING:
    from starlette.types import Scope

    from holdfast.app.settings import Settings
    from holdfast.domain.access import Principal
    from holdfast.domain.audit import Caller

_KEY = "backendai-keypairs"
"""The file with the key of the secrets of keypairs."""
_ANY = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared, not listened on
_log = logging.getLogger(__name__)
_HINT = f"sign it with the keypair in {KEYPAIR_FILE}, in the server's data directory, or with one of your own"


def secrets_of_keypairs(settings: Settings) -> KeypairSecrets:
    """Return the maker of the secrets of keypairs.

    Raises:
        Refused: The file of the key is another user's, or others can read or write it.
        Unavailable: It cannot be read or written.
    """
    return KeypairSecrets(kept_token(DataDir(settings.data), _KEY).encode())


def administrator(settings: Settings, visitors: Visitors) -> str:
    """Return the user to whom the administrator's keypair belongs; a warning says if it is none."""
    owner, access = visitors.entrance.owner, visitors.backend.access
    name = settings.backendai_owner or owner.name
    if name != owner.name and Role.ADMIN not in access.recognized(access.user(name)).roles:
        hint = f"holdfast update settings --access admin=user:{name}"
        _log.warning("HOLDFAST_BACKENDAI_OWNER: %s is no admin, nor is whoever uses %s: %s", name, KEYPAIR_FILE, hint)
    return name


def write_environment(settings: Settings, url: str, access_key: str, secret: str) -> None:
    """Write the variables that Backend.AI's client needs, readable by the server's account only.

    Raises:
        Refused: The data directory is not safe.
        Unavailable: The file cannot be written.
    """
    variables = {
        "BACKEND_ENDPOINT": _reachable(url, settings),
        "BACKEND_ENDPOINT_TYPE": "api",
        "BACKEND_ACCESS_KEY": access_key,
        "BACKEND_SECRET_KEY": secret,
    }
    path = settings.data / KEYPAIR_FILE
    try:
        with trusted_folder(settings.data) as folder:
            write_private(path, "".join(f"{name}={value}\n" for name, value in variables.items()), folder)
    except OSError as error:
        msg = f"cannot write {path}: {error.strerror}"
        raise Unavailable(msg) from error


def _reachable(url: str, settings: Settings) -> str:
    """Return a server's address with a name in place of "any address of this machine"."""
    split = urlsplit(url)
    host = split.hostname or ""
    if host not in _ANY:
        return url
    name = settings.hosts[0] if settings.hosts else socket.gethostname()
    return f"{split.scheme}://{name}:{split.port}"


class SignedVisitors(Struct, frozen=True):
    """Identifies callers that sign; others need a token, as at other doors."""

    visitors: Visitors
    secrets: KeypairSecrets
    administrator: str
    """The user to whom the administrator's keypair belongs."""

    async def by_http(self, scope: Scope) -> Caller:
        """Return the caller of a request.

        Raises:
            RefusedCall: It has no date, or an old one.
            Unauthenticated: Neither its signature nor its token gives access.
            Unavailable: The caller cannot be determined now.
        """
        headers = Headers(scope=scope)
        authorization = headers.get("authorization")
        if authorization is not None and authorization.startswith(SCHEME):
            signer = self._signer(scope, headers, authorization)
            return await self.visitors.identified(signer, peer_of(scope), scope["state"]["request_id"], is_shown=True)
        try:
            return await self.visitors.by_http(scope)
        except Unauthenticated as error:
            if authorization is not None:
                raise
            msg = "the call is not signed"
            raise Unauthenticated(msg, hint=_HINT) from error

    async def _signer(self, scope: Scope, headers: Headers, authorization: str) -> Principal:
        query = scope["query_string"].decode("latin-1")
        target = scope["raw_path"].decode("latin-1") + (f"?{query}" if query else "")
        call = SignedCall.of(scope["method"], target, headers)
        day = read_day(call.date, self.visitors.backend.clock.now())
        credential = read_credential(authorization)
        owner = await asyncio.to_thread(self._owner, credential.access_key)
        # Where nobody owns the access key, the answer takes as long.
        secret = self.secrets.secret(credential.access_key, "" if owner is None else owner.name)
        if not is_signed_by(secret, call, credential, day) or owner is None:
            msg = "the access key is unknown, or the signature is not by its secret key"
            raise Unauthenticated(msg, hint=_HINT)
        return owner

    def _owner(self, access_key: str) -> Principal | None:
        """Return the owner of a keypair, if it has one."""
        if access_key != self.secrets.access_key(self.administrator):
            return self.visitors.backend.access.signer(access_key)
        owner = self.visitors.entrance.owner
        return owner if owner.name == self.administrator else self.visitors.backend.access.user(self.administrator)
