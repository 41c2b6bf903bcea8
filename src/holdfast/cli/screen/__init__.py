"""Drawing on a whole terminal, for ``get --watch`` and ``top``."""
