"""Words in code for interpreters other than Python that mean deleting, starting or sending.
Code is not parsed here: what has none of these words is let through.
"""

import re
from typing import NamedTuple

from journeyman.gate.inner import Code, Language
from journeyman.gate.places import Places


class Words(NamedTuple):
    """What to look for in one language, with an example."""

    language: Language
    pattern: re.Pattern[str]
    examples: tuple[str, ...]


def _words(language: Language, pattern: str, *examples: str) -> Words:
    return Words(language, re.compile(pattern, re.MULTILINE), examples)


WORDS: tuple[Words, ...] = (
    _words(
        "perl",
        r"\b(?:unlink|rmtree|remove_tree|fork|getppid)\b|\b(?:system|exec|rmdir|fork|kill|chmod|chown|truncate|rename|"
        r"eval|syscall|do)\s*[(\"'$@q]|\bqx\b|`|IO::Socket|LWP::|HTTP::Tiny|File::Path|"
        r"open\s*\(?[^;]*(?:['\"]\s*\||\|\s*['\"]|['\"]\s*>+\s*['\"]?\s*,?\s*['\"]?[/~])",
        'system("rm -rf x")',
        "unlink 'a'",
        "print `id`",
        'open(F, "|sh")',
    ),
    _words(
        "ruby",
        r"\b(?:system|exec|spawn|fork|syscall)\b\s*[(\"'%`]|\b(?:instance_)?eval\b|`|%x|FileUtils|"
        r"(?:File|Dir|IO|Pathname|Process|Kernel)\s*\.?\s*(?:delete|unlink|rmdir|popen|rename|"
        r"chmod|chown|kill|exec|system|send|rm)|Open3|TCPSocket|Net::HTTP|open-uri|\bsend\b|"
        r"\.rmtree|File\.(?:write|open)\s*\(?\s*['\"][/~]",
        'FileUtils.rm_rf("x")',
        "`id`",
        'Kernel.send(:system, "ls")',
    ),
    _words(
        "node",
        r"child_process|execSync|spawnSync|\bfs(?:\.promises|/promises)?['\")\]]*\s*\.\s*(?:rm|unlink"
        r"|rmdir|chmod|chown|rename|truncate|symlink)|\b(?:rmSync|unlinkSync|rmdirSync|rimraf)\b|"
        r"process\.(?:kill|binding|dlopen|ppid)|\b(?:net|tls|dgram)['\")\]]*\.(?:connect|createConnection|"
        r"createSocket)|\beval\s*\(|\bFunction\s*\(|constructor\s*[.\[(]|require\s*\(\s*"
        r"(?!['\"][^'\"]+['\"]\s*\))|\bimport\s*\(|method\s*:\s*['\"](?:POST|PUT|DELETE|PATCH)|"
        r"\.request\s*\(|Deno\.(?:run|Command|remove)|Bun\.(?:spawn|\$)|"
        r"(?:write|append)File(?:Sync)?\s*\(\s*['\"`][/~]|createWriteStream\s*\(\s*['\"`][/~]",
        'require("child_process").execSync("ls")',
        'require("fs").rmSync("x",{recursive:true})',
        'require("child_"+"process")',
    ),
    _words(
        "php",
        r"\b(?:system|exec|shell_exec|passthru|popen|proc_open|pcntl_exec|unlink|rmdir|eval|assert|"
        r"fsockopen|stream_socket_client|chmod|chown|rename|curl_exec|mail|posix_kill|call_user_func\w*)\s*\(|`|"
        r"file_put_contents\s*\(\s*['\"][/~]|\$\w+\s*\(",
        'system("ls");',
        "unlink('a');",
    ),
    _words(
        "lua",
        r"os\s*\.\s*(?:execute|remove|rename)|io\s*\.\s*popen|\bload(?:string)?\s*\(|"
        r"os\s*\[|io\s*\[|_G\b|require\s*\(?\s*['\"]socket|io\.open\s*\(\s*['\"][/~]",
        'os.execute("ls")',
        'io.popen("ls")',
    ),
    _words(
        "awk",
        r"\bsystem\s*\(|\|\s*&?\s*(?:getline|\"(?!(?:sort|uniq|cat|wc|column|head|tail)\b[^|;&$`]*\")|[A-Za-z_]\w*\s*(?:$|[;}]))|\"\s*\|&?\s*getline|"
        r">\s*\"(?:/(?!dev/(?:null|stdout|stderr))|\.\.|~)|/inet/",
        'BEGIN { system("rm x") }',
        'BEGIN { "id" | getline x }',
        '{ print | "sh" }',
    ),
    _words(
        "vim",
        r"!\s*\w|\b(?:system|delete|writefile|libcall|job_start|termopen|luaeval|py3eval)\s*\(|"
        r":?\b(?:py3?|python3?|lua|perl|ruby|tcl|terminal|source|so)\s+\S|\bw(?:rite)?!?\s+[/~]",
        ":!rm x",
        "%!sh",
        "call delete('x')",
    ),
    _words(
        "other",
        r"\b(?:system2?|shell|unlink|exec|run|spawn|popen|eval|rm|open\s+pipe|cmd)\s*[(`\"'{]|"
        r"do\s+shell\s+script|\bspawn\s|^\s*(?:shell|!|pi|python)\b|Remove-Item|Invoke-Expression|Invoke-WebRequest|\biex\b|Start-Process|"
        r"\bexec\s|file\s+delete|file\.remove|Runtime\.getRuntime|ProcessBuilder|\.execute\s*\(|"
        r"shell-command|call-process|delete-(?:file|directory)|System\.cmd|File\.rm|callCommand",
        'do shell script "ls"',
        'system("ls")',
        "exec rm x",
    ),
)
_BY_LANGUAGE = {row.language: row for row in WORDS}

_SED_SUBSTITUTION = re.compile(
    r"s([^\w\s\\])(?:\\.|(?!\1).)*\1(?:\\.|(?!\1).)*\1([gpiImMe0-9]*)(?:w\s*(\S+))?", re.DOTALL
)
_SED_ADDRESS = r"(?:\d+|\$|/(?:\\.|[^/\n])*/)?(?:,(?:[+~]?\d+|\$|/(?:\\.|[^/\n])*/))?!?\s*"
_SED_EXECUTES = re.compile(rf"(?:^|[;{{}}\n])\s*{_SED_ADDRESS}e(?:\s|$)")
_SED_WRITES = re.compile(rf"(?:^|[;{{}}\n])\s*{_SED_ADDRESS}[wW]\s*(\S+)")
_STRING = re.compile(r"\"([^\"\n]{2,200})\"|'([^'\n]{2,200})'")


def is_dangerous(code: Code, places: Places) -> bool:
    """Whether code has a word that a person should look at, or names a file of secrets."""
    if code.language == "sed":
        return _sed(code.text, places)
    row = _BY_LANGUAGE.get(code.language)
    if row is not None and row.pattern.search(code.text):
        return True
    for found in _STRING.finditer(code.text):
        text = found[1] or found[2]
        path = places.resolve(text, places.workspace) if not text.isspace() else None
        if path is not None and places.is_secret(path):
            return True
    return False


def _sed(text: str, places: Places) -> bool:
    written = []
    for found in _SED_SUBSTITUTION.finditer(text):
        if "e" in found[2]:
            return True
        written.append(found[3] or "")
    rest = _SED_SUBSTITUTION.sub("p", text)
    if _SED_EXECUTES.search(rest):
        return True
    written += _SED_WRITES.findall(rest)
    paths = [places.resolve(each, places.workspace) for each in written if each]
    return any(path is None or not places.is_inside(path) for path in paths)
