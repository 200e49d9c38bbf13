"""The tools as the prompt of a small model lists them."""

from journeyman.models.tool_list import own_words, tool_lines


def test_sentences_of_several_tools_say_nothing_about_one() -> None:
    said = "This tool is a part of the shop. It needs no key. Orders a thing."
    other = "This tool is a part of the shop.\nCancels an order."
    assert own_words([said, other]) == ["It needs no key. Orders a thing.", "Cancels an order."]
    assert own_words([said]) == [said]
    assert own_words(["Same.", "Same."]) == ["", ""]
    assert own_words([]) == []


def test_a_line_has_the_first_sentence_that_is_the_tools_own() -> None:
    tools = [
        {"name": "order", "description": "Part of the shop. Orders a thing. Takes long."},
        {"name": "cancel", "description": "Part of the shop. Cancels an order."},
        {"name": "stop"},
    ]
    assert tool_lines(tools) == [
        "order(): Orders a thing.",
        "cancel(): Cancels an order.",
        "stop()",
    ]
