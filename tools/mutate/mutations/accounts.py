"""Who is let in by a socket, and whose server is believed."""

from __future__ import annotations

from tools.mutate.mutation import Mutation

_UNIT, _SOCKET, _AS = "unit/test_principals.py", "e2e/test_unix_socket.py", "e2e/test_run_as.py"

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
    Mutation(
        "a program that runs as another account keeps root's groups",
        "engines/process/shim/account.py",
        "        os.setgroups(account.groups)\n        os.setresgid(account.gid, account.gid, account.gid)",
        "        os.setresgid(account.gid, account.gid, account.gid)",
        (_AS,),
    ),
    Mutation(
        "a program that runs as another account can become root by a setuid program",
        "engines/process/shim/account.py",
        "        gain_no_privileges()\n",
        "",
        (_AS,),
    ),
    Mutation(
        "links in an account's directory are followed with root's rights",
        "engines/process/shim/account.py",
        "    os.seteuid(account.uid)\n",
        "",
        (_AS,),
    ),
    Mutation(
        "the log of an account may be a link to another's file",
        "engines/process/files.py",
        "return None if uid == os.geteuid() else uid",
        "return None if uid else uid",
        (_AS,),
    ),
    Mutation(
        "an account takes over another's checkpoints",
        "engines/process/shim/supervisor/launch.py",
        "if who is not None and not who.owns(",
        "if who is None and not who.owns(",
        (_AS,),
    ),
    Mutation(
        "an account that was made again is taken for the one before it",
        "engines/process/shim/account.py",
        "if found.pw_uid != self.uid:",
        "if self.uid < 0:",
        (_AS,),
    ),
    Mutation(
        "every account gets every secret",
        "storage/secrets.py",
        "return bool(found.st_mode & stat.S_IROTH)",
        "return True",
        (_AS,),
    ),
)
