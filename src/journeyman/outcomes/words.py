"""The words of harnesses at the beginning of a result, where they put them: refusals,
interruptions, calls that could not be made, background starts, errors.

What a person or a policy decided comes before what went wrong, and what is special before what is
general. A pattern names no inner groups that capture, and begins with a letter where it can.
"""

import re

from journeyman.outcomes.rule import Found, Rule, anywhere, at_the_start

_NAME = r"['\"`(]?[\w./:-]{1,80}+['\"`)]?"

REFUSED: tuple[Rule, ...] = (
    Rule(
        "words.user_said_no",
        "refused",
        "declined",
        (
            r"The user (?:doesn['’]t|does not|didn['’]t|did not) (?:want|allow)",
            r"The user (?:has )?(?:denied|rejected|declined|refused|disapproved)\b",
            r"The user chose to (?:skip|reject|deny|stay)",
            r"The agent proposed a plan that was rejected",
            r"User (?:has )?(?:denied|rejected|declined|refused|did not allow)\b",
            r"user (?:has )?(?:denied|rejected|declined|refused)\b",
            r"I have declined to run",
            r"Skipping tool \[",
            r"Command not executed\. The user rejected",
            r"\[Operation Cancelled\] Reason: User did not allow",
            r"The tool call was denied",
            r"This tool call is rejected",
        ),
        "The user doesn't want to proceed with this tool use. The tool use was rejected.",
        "a person was asked and said no: Claude Code, Cline, Goose, opencode, VS Code, Gemini",
    ),
    Rule(
        "words.rejected_by_user",
        "refused",
        "declined",
        (
            r"(?:exec |shell )?command rejected by",
            r"patch rejected",
            r"rejected by (?:the )?(?:user|configuration)",
            r"Action rejected",
            r"Rejected(?:: |\b by)",
            r"Tool execution was not approved",
            r"Tool call (?:was )?(?:rejected|denied|declined)",
            r"exec_command failed[^\n]{0,400}Rejected\(",
        ),
        "exec command rejected by user",
        "Codex, OpenHands and the Agents SDK, when an approval is not given",
    ),
    Rule(
        "words.denied_by_policy",
        "refused",
        "policy",
        (
            r"Permission (?:for this|for tool|to use|to read|to edit|to write"
            r"|to access)[^\n]{1,600} denied",
            r"Permission denied (?:by ruleset|and could not request permission)",
            r"Tool execution denied",
            r"The user has specified a rule which prevents",
            r"Denied by ",
            r"denied by (?:pre-tool|policy|rule)",
            r"Access denied - (?:path|symlink|parent)",
            r"File is in a directory that is (?:denied|ignored)",
            r"Access to [^\n]{1,300} is blocked",
            r"This action was (?:rejected|blocked)",
            r"The sites robots\.txt",
            r"approval policy is ",
            r"approval required by policy",
            r"`[^`\n]{1,400}` rejected: ",
            r"Operation '[^'\n]{1,200}' is not supported by this environment",
            r"This tool cannot be used in ",
            r"Tool \"[\w.-]{1,80}\" is not allowed",
            r"Background review denied",
            r"Tool usage limit reached",
            r"I tried reusing the same input",
            r"Tool not executed - ",
        ),
        "Permission to use Bash(git push:*) has been denied.",
        "a rule of the settings, a mode or a policy said no before anything ran",
    ),
    Rule(
        "words.blocked",
        "refused",
        "policy",
        (
            r"BLOCKED\b",
            r"Blocked\b",
            r"Stopped [\w-]{1,60}:",
            r"(?:Your |This |The )?(?:[Cc]ommand|[Tt]ool call|[Oo]peration|[Aa]ction"
            r"|[Rr]equest) (?:was |has been "
            r"|is )?(?:blocked|denied|not permitted|not approved)\b",
            r"[\w:.*-]{1,80}+ hook (?:error|blocked|blocking|denied|stopped)",
            r"Hook [\w:.*-]{1,80} denied",
            r"Execution stopped by ",
            r"MCP tool call blocked",
            r"sandbox denied",
        ),
        "PreToolUse:Bash hook error: [guard.sh]: deploys are frozen",
        "guardrails and hooks in front of a tool: Claude Code, Codex, Hermes, SWE-agent",
    ),
    Rule(
        "words.not_asked",
        "refused",
        "pending",
        (
            r"Claude requested permissions? to ",
            r"This (?:Bash )?(?:command|tool call) (?:requires|contains multiple operations)",
            r"(?:Awaiting|awaiting|Waiting for|Pending|Requires) (?:user |human )?(?:approval"
            r"|confirmation)",
            r"Tool execution for [^\n]{1,200} requires user confirmation",
        ),
        "Claude requested permissions to write to a.txt, but you haven't granted it yet.",
        "held for a person who was not there: it did not run",
    ),
)

INTERRUPTED: tuple[Rule, ...] = (
    Rule(
        "words.sibling",
        "interrupted",
        "sibling",
        (
            r"Sibling tool call errored",
            r"Cancell?ed: parallel tool call",
            r"Tool \[[^\]\n]{1,80}\] was (?:interrupted and )?not executed",
        ),
        "Sibling tool call errored",
        "not run because of a call beside it: Claude Code, Cline",
    ),
    Rule(
        "words.interrupted",
        "interrupted",
        "cancelled",
        (
            r"\[?Request interrupted by user",
            r"\[Tool execution (?:cancell?ed|skipped|abandoned|interrupted)",
            r"\[Operation Cancelled\]",
            r"(?:Wall time: [\d.]+ seconds\n)?aborted(?: by user|\s*\Z)",
            r"(?:The )?(?:[Cc]ommand|[Tt]ool call|[Tt]ool execution|[Oo]peration|[Rr]equest"
            r"|[Ee]xecution|[Tt]ask"
            r"|[Ss]cript|[Qq]uery) (?:was |is |has been )?(?:cancell?ed|aborted|interrupted"
            r"|terminated)\b"
            r"(?! because it)",
            r"The user (?:cancell?ed|interrupted|aborted|skipped)",
            r"The execution of this tool, or a previous tool, was interrupted",
            r"[Uu]ser (?:cancell?ed|interrupted|aborted)",
            r"Interrupted by (?:the )?user",
            r"KeyboardInterrupt\s*\Z",
            r"Tool call [\w.-]{1,80} with id \S{1,80} was cancell?ed",
            r"Let the user know the tool call was skipped",
        ),
        "[Tool execution cancelled — terminal was skipped due to user interrupt]",
        "a person stopped it: Claude Code, Codex, Hermes, Gemini, opencode",
    ),
)

INVALID: tuple[Rule, ...] = (
    Rule(
        "words.no_such_tool",
        "invalid",
        "unknown_tool",
        (
            r"No such tool",
            r"No tool named",
            r"Unknown (?:tool|skill|function|agent type|action)\b",
            r"unsupported (?:custom tool |unified exec )?(?:call|function)\b",
            r"Tool (?:not found|with name)",
            r"tool " + _NAME + r" (?:not found|invoked with incompatible)",
            r"(?:The )?(?:Tool|tool|Function|function|Agent type|Skill|Action) "
            + _NAME
            + r" (?:is )?(?:not found|does not exist|not available|unknown|not a valid|don't exist"
            r"|not registered|disabled)",
            _NAME + r" is not a (?:valid|known|recogni[sz]ed) (?:tool|function|action)",
            r"Model tried to call unavailable tool",
            r"You tried to use the tool",
            r"Requested function could not be found",
        ),
        "foo is not a valid tool, try one of [search, fetch].",
        "the harness has no tool of that name",
    ),
    Rule(
        "words.wrong_arguments",
        "invalid",
        "invalid_arguments",
        (
            r"Input ?[Vv]alidation ?[Ee]rror",
            r"Argument [Vv]alidation [Ee]rror",
            r"(?:Found )?\d{1,4} validation errors?\b",
            r"Invalid (?:arguments|parameters|input for tool|tool (?:call|input|arguments)"
            r"|params|JSON|function arguments"
            r"|call to tool)\b",
            r"(?:The )?arguments provided to the tool are invalid",
            r"The [\w.-]{1,80} tool was called with invalid arguments",
            r"Your input to the tool was invalid",
            r"Validation failed for input",
            r"(?:Error )?(?:invoking|executing|calling) tool[^\n]{0,400}(?:validation errors?"
            r"|Field required)",
            r"MCP error -32(?:700|60[0-2])\b",
            r"-32(?:700|60[0-2]): ",
            r"params(?:/[\w/]{1,80})? must ",
            r"Missing (?:value for )?(?:the )?(?:required )?(?:parameter|argument|field|arguments)",
            r"missing required parameter",
            r"missing field `",
            r"missing \d+ required positional",
            r"Invalid (?:URL|expression|argument|value|query|path|regex|pattern)\b[\w ]{0,40}: ",
            r"Required (?:parameter|argument)",
            r"the Action Input is not a valid",
            r"TypeError\b[^\n]{0,4}\n?[\w.<>]{1,120}+\(\) (?:got an unexpected|got multiple"
            r"|missing \d|takes )",
            r"[\w.<>]{1,120}+\(\) (?:got an unexpected keyword|got multiple values"
            r"|missing \d+ required"
            r"|takes (?:from )?\d+ )",
        ),
        "InputValidationError: Read failed due to the following issue:\nfile_path is missing",
        "the harness or the tool checked the arguments and turned them down",
    ),
    Rule(
        "words.unreadable_call",
        "invalid",
        "invalid_arguments",
        (
            r"[Ff]ailed to parse (?:function|tool|exec_command|write_stdin|the )?\s?(?:arguments"
            r"|input|call|JSON)",
            r"Could not parse (?:tool |LLM |the )?(?:input|arguments|call|output)",
            r"(?:An error occurred while |Error )parsing (?:the following )?(?:tool "
            r"|function )?(?:call |arguments|input)",
            r"Error in code parsing",
            r"Malformed (?:tool call|JSON|arguments|command)",
            r"Your output was not formatted correctly",
            r"Your bash command contained syntax errors and was NOT executed",
            r"(?:\[ERROR\] )?You did not use a tool",
            r"Please always provide EXACTLY ONE",
            r"Tool call error:",
            r"Function call arguments are (?:invalid|malformed)",
        ),
        "failed to parse function arguments: missing field `command` at line 1 column 2",
        "the call itself could not be read",
    ),
)

OPEN: tuple[Rule, ...] = (
    Rule(
        "words.background",
        "unknown",
        "background",
        (
            r"Command (?:is )?(?:still )?running in (?:the )?(?:background|terminal)",
            r"Command (?:is )?still running",
            r"Command (?:was (?:manually backgrounded|started in)|moved to background)",
            r"Background (?:process|task|command|job|shell) (?:is )?(?:started|running)",
            r"Started (?:in )?background",
            r"Async agent launched",
            r"(?:Chunk ID: [^\n]{0,80}\n)?(?:Wall time: [^\n]{0,80}\n)?Process running with sess"
            r"ion ID",
            r"Script running with cell ID",
            r"Note: (?:This terminal execution was moved|The command is running)",
            r"\[Command is running in the background",
        ),
        "Command running in background with ID: bash_1",
        "started is not finished: what became of it is told elsewhere",
    ),
    Rule(
        "words.pruned",
        "unknown",
        "",
        (
            r"\[Old tool (?:output|result)",
            r"\[screenshot removed",
            r"\[Tool (?:output|result) (?:pruned|removed|cleared)",
            r"\[\[NOTE\] This file read has been removed",
        ),
        "[Old tool output cleared to save context space]",
        "the result is gone; only a stub is left",
    ),
)

FAILED: tuple[Rule, ...] = (
    Rule(
        "words.timed_out",
        "failed",
        "timeout",
        (
            r"(?:The (?:last )?)?(?:[Cc]ommand|[Tt]ool|[Rr]equest|[Ee]xecution|[Oo]peration"
            r"|[Qq]uery)\b[^\n]{0,200}? "
            r"(?:has )?timed out",
            r"(?:The )?command[^\n]{0,200} was (?:cancell?ed|terminated) (?:because it took"
            r"|after exceeding)",
            r"Command was automatically cancell?ed because",
            r"Timed out (?:after|waiting)",
            r"Timeout(?:Error)?\b[^\n]{0,80}(?:exceeded|after|waiting)",
            r"EXECUTION TIMED OUT",
            r"Note: Command timed out",
        ),
        "Command timed out after 2m 0.0s",
        "harnesses end what takes too long",
    ),
    Rule(
        "words.marked",
        "failed",
        "",
        (
            r"\[?TOOL[_ ]ERROR\]?\b",
            r"\[(?:ERROR|error|Error)\]",
            r"### Error\n",
            r"\[ERROR: ",
            r"<exception>",
            r"MCP error -?\d",
            r"-32\d{3}: ",
            r"JSON-RPC error",
            r"tool call error:",
            r"\[Tool result missing due to internal error",
            r"API Error\b",
            r"Tool [\w.-]{1,80} (?:failed|error)",
        ),
        "[TOOL_ERROR] browser crashed",
        "marks that harnesses put before an error",
    ),
    Rule(
        "words.error",
        "failed",
        "",
        (
            r"(?:\*\*)?(?:Error|ERROR|error)(?:\*\*)?:(?! ?(?:\(none\)|[Nn]one\b|null\b|0\b"
            r"|pip's dependency))",
            r"(?:Error|ERROR) - ",
            r"(?:❌|✗|⛔|🚫) ?(?:Error|ERROR|Failed|FAILED)?",
        ),
        "Error: Payment method not found",
        "the commonest way of all to say it",
    ),
    Rule(
        "words.error_doing",
        "failed",
        "",
        (
            r"(?:An |an )?(?:[Ee]rror|[Ee]xception|ERROR) (?:occurred|executing|invoking|calling"
            r"|running|in|while|during"
            r"|searching|fetching|reading|writing|performing|from|processing|creating|updating"
            r"|getting|accessing"
            r"|applying|validating|code|\d{3})\b",
            r"[^\s:]{1,200}+: Error - ",
            r"(?:There was|I encountered|Encountered|Got) an? (?:unexpected )?error\b",
            r"Encountered error:",
            r"Action error:",
            r"Exception while ",
        ),
        "Error executing tool 'fetch': connection lost",
        "an error and what it came from",
    ),
    Rule(
        "words.execution_failed",
        "failed",
        "",
        (
            r"(?:The )?(?:[Tt]ool |[Cc]ode |[Cc]ommand |[Ss]cript )?(?:[Ee]xecution"
            r"|[Ii]nvocation|[Cc]all) (?:has )?failed\b",
            r"(?:[Cc]ommand|[Ss]cript|[Tt]ool|Request|Query|Operation|Fetch|fetch"
            r"|Connection) failed\b",
            r"COMMAND FAILED",
            r"failed in sandbox\b",
            r"(?:exec_command|write_stdin|collab \w{1,20}|apply_patch(?: verification)?) failed\b",
            r"command failed inside sandbox",
            r"sandbox error",
            r"# \d+ SEARCH/REPLACE block",
            r"Your proposed edit has introduced",
            r"Failed[!:]",
            r"Applying patch failed",
        ),
        "The tool execution failed with the following error:\n<error>\nno such element\n</error>",
        "Cline, smolagents, Codex, SWE-agent and others",
    ),
    Rule(
        "words.failed_to",
        "failed",
        "",
        (
            r"(?:Failed|failed|Failure) to [a-z]",
            r"(?:Could not|Couldn['’]t|Cannot|Can['’]t|Unable to|unable to) (?:be )?[a-z]",
        ),
        "Failed to fetch https://example.com/robots.txt: 404",
        "a result that begins with what could not be done",
    ),
    Rule(
        "words.system_error",
        "failed",
        "",
        (
            r"E(?:NOENT|ISDIR|NOTDIR|ACCES|PERM|EXIST|BUSY|MFILE|INVAL|NOSPC|ROFS|PIPE"
            r"|CONNREFUSED|CONNRESET"
            r"|TIMEDOUT|NOTFOUND|HOSTUNREACH|ADDRINUSE|NOTEMPTY|XDEV|LOOP|NAMETOOLONG|AI_AGAIN): ",
            r"\[Errno \d+\] ",
        ),
        "ENOENT: no such file or directory, open 'a.txt'",
        "Node and Python programs pass on what the system said",
    ),
    Rule(
        "words.http_status",
        "failed",
        "",
        (
            r"(?:Request|Fetch|HTTP(?: request)?|The request|Response) (?:failed|error"
            r"|returned)[^\n]{0,60}?[45]\d\d\b",
            r"HTTP(?:/[\d.]+)? ?(?:[Ee]rror:? ?)?(?:status:? ?)?[45]\d\d\b",
            r"[45]\d\d (?:Client|Server) Error",
            r"Response status code is [45]\d\d",
            r"[45]\d\d (?:Too Many Requests|Not Found|Unauthorized|Forbidden|Bad Request"
            r"|Bad Gateway|Internal Server Error|Service Unavailable|Gateway Time-?out)\b",
            r"(?:<!DOCTYPE html[^>]{0,100}>\s*)?<html[^>]{0,100}>[^\0]{0,200}?<title>[45]\d\d ",
        ),
        "HTTP error: 503 Service Unavailable",
        "clients of web services pass the status on",
    ),
    Rule(
        "words.exception",
        "failed",
        "",
        (
            r"(?:Execution failed\. )?Traceback(?: \(most recent call last\))?:",
            r"-{20,}\n\w{1,60} +Traceback",
            r"(?:[A-Za-z_]\w{0,60}\.){0,6}(?:[A-Z]\w{0,60})?(?:Error|Exception|Timeout"
            r"|Fault)(?:\n|: |\(['\"]|\s*\Z)",
        ),
        "requests.exceptions.HTTPError\n404 Client Error: Not Found",
        "an exception's type first, then its message: Python tools, traces of spans",
    ),
    Rule(
        "words.not_there",
        "failed",
        "not_found",
        (
            r"(?:File|Path|Directory|Folder|Resource|Entity|Page|Object|Record|URL) "
            r"(?:does not exist|doesn['’]t exist"
            r"|not found|was not found)",
            r"No (?:task|file|session|process|shell|issue|such file|such)[^\n]{0,60} "
            r"(?:found with|exists?|or directory)",
            r"Agent type '",
            r"Unknown process id",
            r"Working directory '[^'\n]{1,300}' does not exist",
        ),
        "File does not exist.",
        "a named thing was asked for; a search that finds nothing says it in other words",
    ),
    Rule(
        "words.not_as_assumed",
        "failed",
        "conflict",
        (
            r"File has (?:not been read yet|been (?:unexpectedly )?modified)",
            r"You must read (?:the )?file",
            r"String to replace not found",
            r"oldString not found",
            r"(?:No|Found|Multiple) (?:\d+ )?(?:match|matches|occurrence|occurrences"
            r"|replacement)[^\n]{0,40} "
            r"(?:old_str|the string to replace|old_string|oldString|was performed)",
            r"No changes to make",
            r"No sufficiently similar match",
            r"<error_details>",
        ),
        "File has not been read yet. Read it first before writing to it.",
        "editors that check before they write",
    ),
    Rule(
        "words.too_much",
        "failed",
        "limit",
        (
            r"File content \([^)\n]{1,60}\) exceeds",
            r"File (?:is )?too large",
            r"MCP tool \"[^\"\n]{1,120}\" response \([^)\n]{1,60}\) exceeds",
            r"Rate limit",
            r"Too many requests",
        ),
        "File content (28766 tokens) exceeds maximum allowed tokens (25000).",
        "more than the tool gives at once",
    ),
)

MESSAGES: tuple[Rule, ...] = (
    Rule(
        "words.short_message",
        "failed",
        "",
        (
            "does not exist",
            "doesn't exist",
            "do not exist",
            "could not be found",
            "could not be read",
            "could not be loaded",
            "could not be completed",
            "already exists",
            "not permitted",
            "not authorized",
            "not authorised",
            "is not allowed",
            "not accessible",
            "is not supported",
            "max retries exceeded",
            "duplicate key",
            "connection refused",
            "connection reset",
            "permission denied",
            "access denied",
            "closed unexpectedly",
            "cannot execute",
            "statement timeout",
            "compilation error",
            "syntax error",
            "internal error",
            "server error",
            "net::err_",
            "unrecognized name",
            "err value",
            "kernel died",
        ),
        'column "x" does not exist',
        "a message of one line from a tool that neither shows content nor runs commands",
    ),
)
"""Plain words, in lower case, anywhere in a result of one line."""

NONE_FOUND = Rule(
    "words.none_found",
    "failed",
    "not_found",
    (
        r"No (?!match|result|file\b|files\b|data|row|record|issue|pull|item|change|error|problem)"
        r"[\w ]{1,40} found (?:with|for|at|matching) ",
    ),
    "No tab found with page_id: 9",
    "a named thing was asked for; a search that finds nothing says it in other words",
)

AT_THE_HEAD = (*REFUSED, *INTERRUPTED, *INVALID, *OPEN, *FAILED)

GENERAL = frozenset(
    ("words.marked", "words.error", "words.error_doing", "words.failed_to", "words.exception")
)
"""Rows whose words any text can begin with, so that content of many lines proves nothing."""

AT_THE_END: tuple[Rule, ...] = (
    Rule(
        "words.exhortation",
        "failed",
        "",
        (
            r"Fix the errors and try again\.",
            r"Please fix (?:your mistakes|the error and try again)\.",
            r"Please check your input and try again\.",
            r"Now let's retry: take care not to repeat",
        ),
        "city is not known\n Please fix your mistakes.",
        "Pydantic AI, LangGraph, smolagents and VS Code close an error so",
    ),
    Rule(
        "words.rejected_at_the_end",
        "refused",
        "declined",
        (r"\[Last action has been rejected by the user\]",),
        "OBSERVATION:\n[Last action has been rejected by the user]",
        "OpenHands adds it to what was there before",
    ),
    Rule(
        "words.interrupted_at_the_end",
        "interrupted",
        "cancelled",
        (
            r"\[Request interrupted by user",
            r"\[Command interrupted\]",
            r"<error>Command was aborted before completion</error>",
            r"<\w{0,20}metadata>\nUser aborted the command",
        ),
        "building…\n[Request interrupted by user for tool use]",
        "Claude Code, Hermes and opencode add it to what was printed so far",
    ),
    Rule(
        "words.error_at_the_end",
        "failed",
        "",
        (
            r"\[Error occurred in processing last action\]",
            r"\[Your command [^\n]{1,200} is NOT executed\.",
            r"END error message",
        ),
        "no such element\n[Error occurred in processing last action]",
        "OpenHands adds it to an error",
    ),
    Rule(
        "words.timed_out_at_the_end",
        "failed",
        "timeout",
        (
            r"\[(?:The command|Command) timed out after",
            r"<\w{0,20}metadata>\n[^\n]{0,40}(?:after exceeding timeout|timed out after)",
        ),
        "building…\n[Command timed out after 30s]",
        "OpenHands, opencode and Hermes, when they ended a command",
    ),
    Rule(
        "words.open_at_the_end",
        "unknown",
        "background",
        (
            r"\[The command has no new output after",
            r"<command with shellId[^>\n]{0,80} is still running",
        ),
        "building…\n[The command has no new output after 30 seconds. You may wait longer …]",
        "OpenHands and Copilot, while a command goes on",
    ),
)
"""Words near the end of a result. They begin with a character that is rare in texts, which makes
looking for them quick."""

_LONGEST_END = 300
_LONGEST_MESSAGE = 300
# The two ways in which the words of a row can begin with a number.
_numbered = re.compile(r"\d{1,4} validation error|[45]\d\d ").match
_PREFIXES = ("Error: ", "ERROR: ", "error: ")
_find = at_the_start(AT_THE_HEAD)
_none_found = at_the_start((NONE_FOUND,))
_PHRASES = tuple((phrase, rule) for rule in MESSAGES for phrase in rule.patterns)
_find_late = anywhere(AT_THE_END)
# What is special can stand behind a general "Error: "; the last resort is that word itself.
_special = at_the_start((*REFUSED, *INTERRUPTED, *INVALID, *FAILED[:1]))


def at_the_head(text: str) -> Found | None:
    """The row whose words a result begins with."""
    if text[:1].isdecimal() and not _numbered(text):
        return None  # lines with numbers: what a file holds
    if text.startswith(_PREFIXES):
        return _special(text[7:].lstrip()) or _find(text)
    return _find(text)


def in_a_message(text: str) -> Found | None:
    """The row whose words a result has that is one short line."""
    if len(text) > _LONGEST_MESSAGE or "\n" in text:
        return None
    low = text.lower()
    for phrase, rule in _PHRASES:
        if phrase in low:
            return Found(rule, 0)
    return _none_found(text)


def near_the_end(text: str) -> Found | None:
    """The row whose words stand near the end of a result."""
    return _find_late(text[-_LONGEST_END:])
