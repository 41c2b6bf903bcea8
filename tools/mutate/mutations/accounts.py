"""Who is let in by a socket, and whose server is believed."""

from __future__ import annotations

from tools.mutate.mutation import Mutation

_UNIT, _SOCKET, _AS = "unit/test_principals.py", "e2e/test_unix_socket.py", "e2e/test_run_as.py::test_"

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
        (f"{_AS}each_program_runs_as_who_submits_it_and_roots_as_root",),
    ),
    Mutation(
        "a program that runs as another account can become root by a setuid program",
        "engines/process/shim/account.py",
        "        gain_no_privileges()\n",
        "",
        (f"{_AS}each_program_runs_as_who_submits_it_and_roots_as_root",),
    ),
    Mutation(
        "links in an account's directory are followed with root's rights",
        "engines/process/shim/account.py",
        "    os.seteuid(account.uid)\n",
        "",
        (f"{_AS}links_that_a_program_leaves_in_place_of_its_files_lead_nowhere",),
    ),
    Mutation(
        "the log of an account may be a link to another's file",
        "engines/process/files.py",
        "return None if uid == os.geteuid() else uid",
        "return None if uid else uid",
        (f"{_AS}links_that_a_program_leaves_in_place_of_its_files_lead_nowhere",),
    ),
    Mutation(
        "an account takes over another's checkpoints",
        "engines/process/shim/supervisor/launch.py",
        "if who is not None and not who.owns(",
        "if who is None and not who.owns(",
        (f"{_AS}nobody_is_given_anothers_checkpoints_or_secrets",),
    ),
    Mutation(
        "an account that was made again is taken for the one before it",
        "engines/process/shim/account.py",
        "if found.pw_uid != self.uid:",
        "if self.uid < 0:",
        (f"{_AS}an_account_that_is_gone_or_another_by_now_fails_the_run_with_the_reason",),
    ),
    Mutation(
        "every account gets every secret",
        "storage/secrets.py",
        "return bool(found.st_mode & stat.S_IROTH)",
        "return True",
        (f"{_AS}nobody_is_given_anothers_checkpoints_or_secrets",),
    ),
    Mutation(
        "a server listens to other machines with nothing but its owner's token",
        "app/entrance/network.py",
        "if is_beyond(host) and not any(others) and not has_api_tokens:",
        "if is_beyond(host) and not any(others) and has_api_tokens:",
        ("e2e/test_network.py::test_what_makes_listening_to_others_safe_is_asked_for",),
    ),
    Mutation(
        "whoever comes by the socket is taken for the server's own account",
        "api/http/serving/gates.py",
        'scope["state"][PRINCIPAL] = await self._who(uid)',
        "await self._who(uid)",
        ("e2e/test_every_operation_by_socket.py",),
    ),
    Mutation(
        "a name of an attacker's leads to a server",
        "api/http/serving/gates.py",
        "if name not in self._hosts and not _is_address(name):",
        "if not name:",
        ("e2e/test_network.py::test_a_server_answers_to_its_names_and_to_no_page_of_another",),
    ),
    Mutation(
        "one caller may have all connections",
        "app/doorway.py",
        "return self.most if is_whole else max(1, self.most // _SHARE)",
        "return self.most",
        ("unit/test_doorway.py",),
    ),
    Mutation(
        "connections that have closed are counted for ever",
        "app/doorway.py",
        "self._beside.discard(caller)",
        "self._beside.add(caller)",
        ("unit/test_doorway.py",),
    ),
    Mutation(
        "whoever came last makes way",
        "app/doorway.py",
        "oldest = next(iter(had.new or had.resting), None)",
        "oldest = next(reversed(had.new or had.resting), None)",
        ("unit/test_doorway.py",),
    ),
    Mutation(
        "who is no proxy asks a server in clear",
        "app/connections.py",
        "is_trusted = self.trusted is None or _is_within(self.trusted, self.client)",
        "is_trusted = self.trusted != ()",
        ("e2e/test_network.py::test_behind_a_named_proxy_nobody_else_comes_in_and_its_word_alone_counts",),
    ),
    Mutation(
        "who names a data directory is sent to the current context",
        "app/whereabouts.py",
        "if settings.context or not names_directory:",
        "if settings.context != '':",
        ("e2e/test_contexts.py::test_who_logs_in_asks_that_server_until_another_is_chosen",),
    ),
    Mutation(
        "a token of root's has programs run as root",
        "service/operations/backend.py",
        "if self.as_submitters and known.uid == 0 and known.limit is not None:",
        "if self.as_submitters and known.uid == 0 and known.limit is known:",
        (f"{_AS}by_a_token_programs_run_as_its_users_account_or_the_one_named_for_it_and_never_as_root",),
    ),
    Mutation(
        "answers over a kept connection wait for acknowledgements",
        "app/connections.py",
        "connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)",
        "connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)",
        ("e2e/test_kept_connections.py::test_the_calls_of_a_kept_connection_do_not_wait_for_acknowledgements",),
    ),
)
