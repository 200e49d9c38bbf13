"""Shapes of scripts that start more and more processes: functions that call themselves twice, loops
without end that start something each time.
"""

from tree_sitter import Node

from journeyman.gate.syntax import descendants, text_of

_ALWAYS_TRUE = frozenset({":", "true", "[ 1 ]", "((1))", "[[ 1 ]]"})
_WAITING = frozenset({"sleep", "wait", "read"})


def never_ends(node: Node) -> bool:
    """Whether a loop without end starts something on the side each time."""
    condition = node.named_children[0] if node.named_children else node
    group = next((one for one in node.named_children if one.type == "do_group"), None)
    endless = text_of(condition).strip() in _ALWAYS_TRUE
    return (
        endless
        and group is not None
        and any(one.type == "&" for one in group.children)
        and not any(text_of(one) in _WAITING for one in descendants(group, "command_name"))
    )


def multiplies(name: str, body: Node) -> bool:
    """Whether a function starts itself more than once: in both ends of a pipe, or on the side."""

    def calls(node: Node) -> bool:
        names = descendants(node, "command_name")
        return any(text_of(one) == name for one in names)

    waiting = [body]
    while waiting:
        node = waiting.pop()
        waiting.extend(node.children)
        if node.type == "pipeline" and sum(calls(one) for one in node.named_children) > 1:
            return True
        if node.type == "&":
            before = node.prev_sibling
            if before is not None and before.type != "&" and calls(before):
                return True
    return False
