"""Where ``dialects.codec`` was; goes when nobody looks here any more."""

from holdfast.dialects.codec import dump_spec, load_spec

__all__ = ["dump_spec", "load_spec"]
