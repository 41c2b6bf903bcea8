"""How a termination message describes an exception: in words, and by its classes, which rules look at."""

from __future__ import annotations


def in_words(error: BaseException) -> str:
    """Say what was raised, as the last line of a traceback does."""
    text = " ".join(str(error).split())
    name = class_name(type(error))
    return f"{name}: {text}" if text else name


def class_name(kind: type) -> str:
    """Name a class as tracebacks do: with its module, unless it is built in."""
    return (
        kind.__qualname__ if kind.__module__ in {"builtins", "__main__"} else f"{kind.__module__}.{kind.__qualname__}"
    )


def kinds(error: BaseException) -> str:
    """Name an exception's classes on one line, its own first."""
    names = [class_name(kind) for kind in type(error).__mro__ if issubclass(kind, BaseException)]
    return f"[{' '.join(names)}]"
