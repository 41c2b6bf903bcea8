"""Says that there are no actors, whoever imports them."""

_MSG = (
    "Holdfast has no actors: start a server in a job with a port, and have it tell where it answers by "
    "fluster_ctx().registry.register(name, address); others of its family find it by "
    "fluster_ctx().resolver.resolve(name)"
)
raise ImportError(_MSG)
