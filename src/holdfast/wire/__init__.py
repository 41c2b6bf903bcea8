"""The public request and response models, shared by ``api`` and ``client``: the only versioned surface."""
