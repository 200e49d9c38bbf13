"""The tools of memory and skills together, over one folder of knowledge and one journal."""

from collections.abc import Callable

from journeyman.agent.knowledge.knowledge import Knowledge
from journeyman.agent.tools.journaled import Check, Journaled, Keep, allow
from journeyman.agent.tools.memory_tool import memory_tool
from journeyman.agent.tools.skill_tools import skill_tools
from journeyman.agent.tools.tool import Tool

KNOWLEDGE_TOOLS = ("memory", "skill_manage")
"""Those of them that write: without one of them a review has nothing to write with."""


def knowledge_tools(
    knowledge: Knowledge,
    *,
    keep: Keep,
    check: Check = allow,
    viewed: Callable[[str], None] = lambda _path: None,
) -> tuple[Tool, ...]:
    """`memory`, `skills_list`, `skill_view` and `skill_manage`. Each change is planned, then
    `check` may forbid it, then it is made, then `keep` puts it into the journal; where that fails
    the change is undone. `viewed` hears the path of each file of a skill that was shown.
    """
    journaled = Journaled(knowledge=knowledge, keep=keep, check=check)
    return memory_tool(journaled), *skill_tools(journaled, viewed)
