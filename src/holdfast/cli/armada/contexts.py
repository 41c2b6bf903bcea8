"""``config``: which of the servers in the configuration file is asked, and our own server's configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.armada.failure import Failed
from holdfast.cli.armada.line import ArmadaCommand
from holdfast.errors import InvalidSetting

if TYPE_CHECKING:
    from holdfast.cli.armada.invocation import Invocation


def _use(asked: Invocation) -> int:
    from holdfast.cli.armada.files import read_file
    from holdfast.dialects.yaml_writing import write_yaml

    name, config = asked.words[0], asked.config
    if name.lower() not in config.contexts:
        told = f"unable to use context {name}. Context not defined in config."
        raise Failed(told)
    [document, *_] = read_file(str(config.path), "error reading config file {}: {}")
    kept = {key: one for key, one in document.value.items() if key.lower() != "currentcontext"}
    fresh = config.path.with_name(f"{config.path.name}.new")
    try:
        fresh.write_text(write_yaml({"currentContext": name, **kept}))
        fresh.chmod(config.path.stat().st_mode & 0o777)
        fresh.replace(config.path)
    except OSError as error:
        told = f"error writing modified config: {error.strerror}"
        raise Failed(told) from error
    asked.out(f"Current context set to {name}")
    return 0


def _list(asked: Invocation) -> int:
    current = (asked.flags["context"] or asked.config.current).lower()
    names = sorted(f"{name} (current)" if name == current else name for name in asked.config.contexts)
    asked.out(f"Available contexts: {', '.join(names)}")
    return 0


def _current(asked: Invocation) -> int:
    asked.out(f"Current context: {asked.flags['context'] or asked.config.current}")
    return 0


def _reload(asked: Invocation) -> int:
    from holdfast.wire.problems import read_problem

    with asked.cli.connect() as client:
        try:
            found = client.reload_settings()
        except InvalidSetting as error:
            told = f"{error.message}; what was in force before stays so"
            raise Failed(told, *(f"  {one}" for one in error.problems)) from error
    asked.out(f"{found.file} is in force{'' if found.changed else ', and says what it said before'}")
    if found.enabled is not None:
        applied = "apply" if found.enabled else "do not apply to jobs of the door"
        asked.out(f"Retry policies {applied}; at most {found.global_max_retries} retries of a job")
        asked.out(f"Default retry policy: {found.default_policy_name or 'none'}")
    for warning in found.warnings:
        asked.note(f"warning: {found.file}: {read_problem(warning)}")
    asked.out(f"Error categories: {', '.join(found.categories) or 'none'}")
    return 0


USE = ArmadaCommand("use-context", "Say which context later commands use", _use, "<context>", 1)
LIST = ArmadaCommand("get-contexts", "Show the contexts of the configuration file", _list)
CURRENT = ArmadaCommand("current-context", "Show which context is used", _current)
RELOAD = ArmadaCommand("reload", "Have our server read its configuration file again", _reload)
