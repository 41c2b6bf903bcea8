"""What operators write about the projects of sessions, on the command line."""

from __future__ import annotations

from tests.e2e.test_cli_shell import Shell, shell

__all__ = ["shell"]


def test_defaults_of_sessions_are_set_field_by_field_for_all_for_a_domain_and_for_a_queue(shell: Shell) -> None:
    retry = ("--session-retry", "max_retries=2", "--session-retry", "max_retry_delay=null")
    said = shell.run("create", "queue", "vision", "--domain", "lab")
    assert (said.code, "spec.domain: domain 'lab' does not exist" in said.err) == (2, True)
    for words in (
        ("create", "domain", "lab"),
        ("create", "queue", "vision", "--domain", "lab"),
        ("update", "settings"),
    ):
        assert shell.run(*words, *retry).code == 0
    assert shell.run("delete", "domain", "lab").code == 4
    causes = ("--session-retry", "max_retries=default", "--session-retry", "eligible_causes=unknown,oom_killed")
    for words in (("update", "domain", "lab"), ("update", "queue", "vision"), ("update", "settings")):
        assert shell.run(*words, *causes).code == 0
    assert shell.run("update", "settings", "--no-session-retries").code == 0
    expected = {"max_retry_delay": None, "eligible_causes": ["oom_killed", "unknown"]}
    written = [
        shell.run("get", *words, "-o", "json").json["spec"] for words in (("domain", "lab"), ("queue", "vision"))
    ]
    assert [spec["sessionRetry"] for spec in written] == [expected, expected]
    settings = shell.run("get", "settings", "-o", "json").json
    assert (settings["sessionRetryDefault"], settings["sessionRetries"]) == (expected, False)
    assert "eligible_causes=oom_killed,unknown" in shell.run("get", "domains").out
    wrong = shell.run("update", "queue", "vision", "--session-retry", "jitter=much")
    assert (wrong.code, "spec.sessionRetry.jitter" in wrong.err) == (2, True)
    cleared = [word for name in expected for word in ("--session-retry", f"{name}=default")]
    assert shell.run("update", "settings", "--session-retries", *cleared).code == 0
    assert shell.run("delete", "queue", "vision").code == 0
    assert shell.run("delete", "domain", "lab").code == 0
