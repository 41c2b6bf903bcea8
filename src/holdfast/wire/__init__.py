"""The public request and response models: the only versioned surface, shared by ``api`` and ``client``.

Decides names and shapes of what crosses the wire; leaves meaning to ``domain`` and reading manifests to ``dialects``.
"""
