"""How harnesses and tools begin a result when a call could not be made or did not work: the rows of
`words` that count as errors. What is special comes before what is general.
"""

from journeyman.outcomes.rule import Rule

_NAME = r"['\"`(]?[\w./:-]{1,80}+['\"`)]?"

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
            r"(?:No|Found|Multiple) (?:\d+ |multiple )?(?:match|matches|occurrence|occurrences"
            r"|replacement)[^\n]{0,40} "
            r"(?:old_str|the string to replace|oldString|was performed)",
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
        r"No (?!(?:match\w*|results?|files?|data|rows?|records?|issues?|items?|changes?|errors?"
        r"|problems?|pull requests?) found)[\w ]{1,40} found (?:with|for|at|matching) ",
    ),
    "No tab found with page_id: 9",
    "a named thing was asked for; a search that finds nothing says it in other words",
)
