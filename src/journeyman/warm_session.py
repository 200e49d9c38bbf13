"""The tool `warm_session` for any agent that calls functions: its definition, and the function that
answers a call. Importing it is quick; reports load numpy and scipy when they are computed.
"""

from journeyman.experience.warm_session import SCHEMA, warm_session

__all__ = ["SCHEMA", "warm_session"]
