"""Where processes of one machine find each other, and whom they believe."""

from __future__ import annotations

from tools.mutate.mutation import Mutation

MUTATIONS = (
    Mutation(
        "a try that follows another at a job that no node can hold has no time of its own",
        "controller/hopeless.py",
        "if waiting.since <= since]",
        "]",
        ("unit/test_hopeless.py",),
    ),
    Mutation(
        "of many alike jobs that no node can hold one fails in each round",
        "controller/hopeless.py",
        "if waiting.since <= since]",
        "if waiting.since <= since][:1]",
        ("unit/test_hopeless.py",),
    ),
    Mutation(
        "jobs fail because they fit no node before any was reported",
        "controller/hopeless.py",
        "for each in blocked if places else ():",
        "for each in blocked:",
        ("unit/test_hopeless.py",),
    ),
    Mutation(
        "jobs of doors wait behind others that no node can hold",
        "controller/workloads/gangs.py",
        "of_door=spec.pod is not None",
        "of_door=False",
        ("unit/test_hopeless.py",),
    ),
    Mutation(
        "an address of another user is believed",
        "app/data/trust.py",
        "if caller and found.st_uid not in {caller, 0}:",
        "if caller and found.st_uid < 0:",
        ("e2e/test_strangers.py",),
    ),
    Mutation(
        "what others can write is believed",
        "app/data/trust.py",
        "_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH",
        "_OTHERS_WRITE = stat.S_IWOTH & stat.S_IWGRP",
        ("unit/test_trust.py",),
    ),
    Mutation(
        "a token that others can read is used",
        "app/data/trust.py",
        "_OTHERS_READ = stat.S_IRGRP | stat.S_IROTH",
        "_OTHERS_READ = stat.S_IROTH & stat.S_IRGRP",
        ("unit/test_trust.py",),
    ),
    Mutation(
        "a filter that an older server does not know is left out",
        "client/connection.py",
        "if refused and all(name in otherwise and params.get(name) != otherwise[name] for name in refused):",
        "if refused and any(name in otherwise and params.get(name) != otherwise[name] for name in refused):",
        ("contract/test_client_versions.py",),
    ),
    Mutation(
        "a refusal does not count as an answer of a server that is back",
        "client/connection.py",
        "            except HoldfastError:\n                self._answered()\n                raise\n",
        "            except HoldfastError:\n                raise\n",
        ("e2e/test_restarts.py",),
    ),
    Mutation(
        "a name server that never answers is waited for",
        "client/transport.py",
        "limit_s = min(self.timeout or LONGEST_SEARCH_S, LONGEST_SEARCH_S)",
        "limit_s = 1e4",
        ("e2e/test_names.py",),
    ),
    Mutation(
        "a server makes another token whenever it starts",
        "app/server.py",
        "token = given_token(settings) or kept_token(directory)",
        "token = given_token(settings) or __import__('secrets').token_urlsafe(32)",
        ("e2e/test_tokens.py",),
    ),
    Mutation(
        "what a drain takes from pods is stored only once they are looked at",
        "controller/workloads/kubejobs.py",
        "self._put(work, work.record)  # with what is given",
        "pass  # with what is given",
        ("unit/test_broken_worlds.py",),
    ),
)
