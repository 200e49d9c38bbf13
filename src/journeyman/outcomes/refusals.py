"""How harnesses begin a result when a call was refused, stopped or is not over: the rows of `words`
in which nothing went wrong with the call itself.
"""

from journeyman.outcomes.rule import Rule

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
