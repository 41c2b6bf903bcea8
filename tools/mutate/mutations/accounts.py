"""Who is let in by a socket, and whose server is believed."""

from __future__ import annotations

from tools.mutate.mutation import Mutation

_UNIT, _SOCKET = "unit/test_principals.py", "e2e/test_unix_socket.py"

MUTATIONS = (
    Mutation(
        "a server that runs programs as itself lets everybody in by its socket",
        "app/entrance/accounts.py",
        "if uid not in {own.uid, 0}:",
        "if own.uid is None:",
        (_UNIT,),
    ),
    Mutation(
        "all accounts of other user namespaces are one",
        "app/entrance/accounts.py",
        "if uid == _overflow() and uid != os.geteuid():",
        "if uid == -1:",
        (_UNIT,),
    ),
    Mutation(
        "a request by a socket is taken for the owner's",
        "api/http/serving/routing.py",
        "getattr(request.state, PRINCIPAL, request.app.state.entrance.owner)",
        "request.app.state.entrance.owner",
        (_SOCKET,),
    ),
    Mutation(
        "another user's server is sent jobs and secrets",
        "client/unix.py",
        "if caller and uid not in {caller, 0}:",
        "if caller and uid < 0:",
        (_SOCKET,),
    ),
    Mutation(
        "a socket that somebody listens on is replaced",
        "app/entrance/unix_socket.py",
        "            pass  # it is too busy\n    raise _taken(path)",
        "            pass  # it is too busy",
        (_SOCKET,),
    ),
)
