"""The version, where both the package and the build find it."""

__version__ = "0.1.0"
