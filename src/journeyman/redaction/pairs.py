"""A name and its value in forms that neither an equals sign nor a colon joins: attributes, tables,
blocks, lines below each other, codes for quotes. Rows of what stands before a name and behind it;
the name must mark a place for a secret.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from journeyman.redaction.found import Found
from journeyman.redaction.key_names import Place, place_of
from journeyman.redaction.values import FAMILIES, is_secret, looks_generated, looks_random


class Pair(NamedTuple):
    """A form. The group of `after` is the value; `must_look` says how sure it must be where the
    form has other uses too.
    """

    id: str
    before: str
    after: str
    example: str
    reason: str
    must_look: str = ""


PAIRS: tuple[Pair, ...] = (
    Pair("yaml.name_value", r"name:[ \t]?[\"']?\Z",
         r"[\"']?\r?\n[ \t]{0,40}value:[ \t]?[\"']?([^\s\"']{3,256})",
         "- name: DB_PASSWORD\n  value: hunter2", "variables of Kubernetes"),
    Pair("yaml.block", "", r": ?[|>][+-]?\r?\n[ \t]{1,40}(\S{3,256})[ \t]?(?=\r?\n|\Z)",
         "password: >-\n  hunter2\n", "a YAML value on the line below"),
    Pair("below", "", r"[\"'*]{0,3}:\n{1,2}[ \t]{0,8}([^\s<>{}\[\]]{6,256})[ \t]?(?=\n|\Z)",
         "Password:\nhunTer2hunTer2", "an answer on the line below", "generated"),
    Pair("attributes", r"(?:key|name|id)=\\?[\"'][\w.:]{0,40}\Z",
         r"\\?[\"'][^<>\n]{0,60}? value=\\?[\"']([^\"'\n\\]{3,256})",
         '<add key="DbPassword" value="hunter2" />', "XML and HTML with attributes"),
    Pair("attribute_element", r"(?:key|name)=[\"'][\w.:]{0,40}\Z",
         r"[\"'][^<>\n]{0,60}>\s{0,20}<value>([^<>\n]{3,256})<",
         "<setting name='Password'><value>hunter2</value></setting>", "settings of .NET"),
    Pair("terraform", r"variable \\?\"\Z",
         r"\\?\" \{[^{}]{0,300}?\bdefault\s{0,20}= \\?\"([^\"\n\\]{3,256})",
         'variable "db_password" {\n  default = "hunter2"\n}', "a variable of Terraform"),
    Pair("form_data", r"name=\"\Z", r"\"\r?\n\r?\n([^\r\n]{3,256})",
         'Content-Disposition: form-data; name="password"\r\n\r\nhunter2\r\n--b', "a posted form"),
    Pair("table", r"\|[ \t]{0,9}[*`]{0,2}\Z",
         r"[*`]{0,2}[ \t]{0,40}\|[ \t]{0,9}`?([^\s|`]{3,256})`?[ \t]{0,60}(?=\||\n|\Z)",
         "| password | hunTer2hunTer2 |", "a row of a table", "random"),
    Pair("aligned", r"(?:^|\n)[ \t]{0,9}\Z", r"(?: {2,60}|\t)([^\s|]{8,256})[ \t]?(?=\r?\n|\Z)",
         "root_token        hunTer2hunTer2", "a list in columns", "generated"),
    Pair("cookie_jar", r"\t\d{1,12}\t\Z", r"\t(\S{8,4000})",
         ".example\tTRUE\t/\tTRUE\t1767225600\tsessionid\thunTer2hunTer2", "curl's cookies"),
    Pair("line", r"(?:^|[\n;&>]|\\n)[ \t]{0,9}(?:(?:ENV|ARG|setx|set -g?x|set|setenv) )?\Z",
         r" [\"']?([^\s\"'=:|]{6,256})[\"']?(?=[ \t]?(?:\r?\n|\\n|\Z))",
         "ENV DB_PASSWORD hunTer2hunTer2", "Dockerfiles, redis.conf: a name, a space, a value",
         "random"),
    Pair("setting", r"\b(?:config|configure|conf|connect)(?: [\w-]{1,30}){1,3} \Z",
         r" [\"']?([^\s\"'=]{3,256})",
         "aws configure set aws_secret_access_key hunTer2hunTer2", "a setting of a command",
         "random"),
    Pair("percent", "", r"%22(?:%20|\+)?%3[Aa](?:%20|\+)?%22([^%&\s\"']{3,256})",
         "%22password%22%3A%22hunter2%22", "JSON in an address"),
    Pair("entities", r"(?:&quot;|&#34;)\Z", r"(?:&quot;|&#34;)\s?:\s?(?:&quot;|&#34;)([^&\n]{3,256"
          r"})",
         "&quot;password&quot;: &quot;hunter2&quot;", "JSON in HTML"),
    Pair("coloured", "",
         r"\x1b\[[\d;]{0,12}m\s?[:=]?\s?(?:\x1b\[[\d;]{0,12}m)?\s?[:=]?\s?([^\s\x1b\"'=:]{3,256})",
         "\x1b[34mpassword\x1b[0m: hunter2hunter2", "a terminal's colours", "random"),
)  # fmt: skip
_COMPILED = tuple((row, re.compile(row.before), re.compile(row.after)) for row in PAIRS)
_JOINTS = frozenset(" \t:\"'*`|%&\r\n\\\x1b")
_TAIL = re.compile(r"[\w-]{0,24}")
_BEFORE = 90
_LONGEST_HEAD = 60


class Name(NamedTuple):
    """A name in a text that marks a place for a secret."""

    start: int
    end: int
    place: Place


def start_of_name(text: str, at: int) -> int:
    """Where a name begins that a word at this place is a part of."""
    least = max(0, at - _LONGEST_HEAD)
    while at > least and ((letter := text[at - 1]).isalnum() or letter in "_-.$"):
        at -= 1
    return at


def find_names(text: str, lower: str, words: Iterable[str]) -> list[Name]:
    """The names with one of the words in them."""
    names: list[Name] = []
    for word in words:
        at = lower.find(word)
        while at >= 0:
            tail = _TAIL.match(text, at + len(word))
            end = tail.end() if tail else at + len(word)
            start = start_of_name(text, at)
            place = place_of(text[start:end])
            if place is not None:
                names.append(Name(start, end, place))
            at = lower.find(word, end)
    return names


def find_pairs(text: str, names: Iterable[Name]) -> Iterator[Found]:
    """Every value whose name marks it as a secret."""
    for name in names:
        if text[name.end : name.end + 1] not in _JOINTS:
            continue
        before = text[max(0, name.start - _BEFORE) : name.start]
        for row, form_before, form_after in _COMPILED:
            found = form_after.match(text, name.end)
            if found is None or (row.before and not form_before.search(before)):
                continue
            if is_secret(found[1], name.place) and _looks(found[1], row.must_look):
                yield Found(*found.span(1), FAMILIES[name.place])


def _looks(value: str, as_it_must: str) -> bool:
    if as_it_must == "generated":
        return looks_generated(value)
    return as_it_must == "" or looks_random(value)
