"""The tool `warm_session`, for any agent that can call functions: build, list, load and delete
templates, and look at how reliable sessions were. It is one function over the facade and the
schema that tells a model how to call it; who calls it, and when, is left to others.
"""

from journeyman.warm_session.tool import SCHEMA, warm_session

__all__ = ["SCHEMA", "warm_session"]
