"""Foreign text in, domain values out: strict readers and writers of manifests; nothing here decides about failures."""
