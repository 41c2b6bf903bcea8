"""Refuses the import of actors, which Holdfast does not have."""

_MSG = (
    "Holdfast has no actors: start a server in a job with a port, and have it register its address by "
    "fluster_ctx().registry.register(name, address); other jobs of its family find it by "
    "fluster_ctx().resolver.resolve(name)"
)
raise ImportError(_MSG)
