"""Every kind of work, one package each."""
