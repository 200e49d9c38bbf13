"""Rules on other machines: sending data out, reaching in, and publishing. Fetching a page or a file
is everyday work; what is sent to the machine itself goes nowhere.
"""

import re

from journeyman.gate.command import Command
from journeyman.gate.places import Places
from journeyman.gate.rule import Rule, both, either, has, no, programs, told
from journeyman.gate.words import OUTPUT

_LOCAL = re.compile(
    r"(?:[a-z]+://)?(?:[^@/]*@)?(?:localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1?\]|::1|"
    r"[\w-]+\.localhost|host\.docker\.internal)(?::.*|/.*)?",
    re.IGNORECASE,
)
_REMOTE = re.compile(r"(?!/)(?:[\w.-]+@)?[\w.\[\]-]+::?(?!\\).*|rsync://.*|s?ftp://.*")
_METADATA = re.compile(
    r"(?:https?://)?(?:169\.254\.169\.254|\[?fd00:ec2::254|metadata\.google\.internal|"
    r"100\.100\.100\.200)",
    re.IGNORECASE,
)
_SENDS = (
    "-d",
    "--data",
    "--data-raw",
    "--data-binary",
    "--data-urlencode",
    "--json",
    "-F",
    "--form",
)
_UPLOADS = (
    "-T",
    "--upload-file",
    "--form-string",
    "--post-file",
    "--post-data",
    "--body-data",
    "--body-file",
    "--data-ascii",
)
_FETCHERS = programs("curl wget http https xh httpie curlie aria2c lynx w3m")
_WITH_VALUE = (
    *("-X", "--request", "-H", "--header", "-o", "--output", "-A", "-u", "--user", "-b", "-c"),
    *("-e", "-m", "--max-time", "--connect-timeout", "-w", "--write-out", "-O", "-P", "-K"),
    *("--retry", "-x", "--proxy", "-D", "--cacert", "--cert", "-t", "-T", "--resolve", *_SENDS),
)
_UNVERIFIED = re.compile(
    r"-[a-zA-Z]{0,6}k[a-zA-Z]{0,6}|--insecure|--no-check-certificate|--check-certificate=false|"
    r"--verify=(?:no|false)|--no-verify-ssl|--tls-verify=false|--insecure-skip-tls-verify(?:=true)?|"
    r"--ssl-no-verify|--skip-tls-verify|-Dmaven\.wagon\.http\.ssl\.insecure=true"
)
_TASK = re.compile(r"(?:deploy|publish|release)(?:[:_-]?(?:prod|production|live|all|site|docs))?")
_METHODS = re.compile(r"POST|PUT|PATCH|DELETE", re.IGNORECASE)


def _goes_out(command: Command) -> bool:
    """Whether a request leaves the machine, or could."""
    addresses = [
        word.text for word in command.operands(*_WITH_VALUE) if not _METHODS.fullmatch(word.text)
    ]
    addresses += command.values("--url")
    return any(not _LOCAL.fullmatch(text) for text in addresses[:1]) or any(
        "://" in text and not _LOCAL.fullmatch(text) for text in addresses
    )


def _sends(command: Command, _: Places) -> bool:
    if not _goes_out(command):
        return False
    if command.program == "wget":
        method = command.value("--method") or "GET"
        return command.has("--post-file", "--post-data", "--body-data", "--body-file") or bool(
            _METHODS.fullmatch(method)
        )
    method = command.value("-X", "--request") or "GET"
    if command.program in ("http", "https", "xh", "httpie"):
        texts = command.arguments
        return any(_METHODS.fullmatch(text) for text in texts) or any(
            re.fullmatch(r"[\w-]+(?::?=|@|=@).*", text) for text in texts
        )
    exact = any(text.partition("=")[0] in (*_SENDS, *_UPLOADS) for text in command.arguments)
    attached = any(re.match(r"-[a-zA-Z]*[dFT][@\w/.{\"']", text) for text in command.arguments)
    bundled = any(re.fullmatch(r"-[a-zA-Z]+[dFT]", text) for text in command.arguments)
    return exact or attached or bundled or bool(_METHODS.fullmatch(method)) or command.has("-K")


def _carries_output(command: Command, _: Places) -> bool:
    """An address or a header made of what another command prints."""
    return _goes_out(command) and any(OUTPUT in text for text in command.arguments)


def _metadata(command: Command, _: Places) -> bool:
    return any(_METADATA.match(text) for text in command.arguments)


def _unverified(command: Command, _: Places) -> bool:
    if command.program in _FETCHERS and not _goes_out(command):
        return False
    return any(_UNVERIFIED.fullmatch(text) for text in command.arguments)


def _copies_away(command: Command, _: Places) -> bool:
    operands = command.operands("-e", "--rsh", "-P", "-i", "-p", "-o", "-F", "--exclude")
    return any(not word.known or _REMOTE.fullmatch(word.text) for word in operands)


def _only_looks(command: Command, _: Places) -> bool:
    """A check whether a port is open."""
    return command.program in ("nc", "ncat", "netcat") and command.has("-z")


NETWORK: tuple[Rule, ...] = (
    Rule(
        "network.send",
        "ask",
        "It sends data to another machine.",
        (
            "curl -d @notes.txt https://a.example",
            "curl -T x https://a.example",
            "curl -F f=@x a.b",
            "wget --post-file=x https://a.example",
            "curl -X DELETE https://api.example/users/1",
        ),
        _FETCHERS,
        _sends,
    ),
    Rule(
        "network.carry",
        "ask",
        "It sends what another command prints to another machine.",
        ('curl "https://a.example/?q=$(base64 notes.txt)"', "dig $(whoami).a.example"),
        _FETCHERS | programs("dig nslookup host ping drill getent"),
        _carries_output,
    ),
    Rule(
        "secret.metadata",
        "ask",
        "It asks the cloud for the credentials of this machine.",
        ("curl http://169.254.169.254/latest/meta-data/",),
        _FETCHERS,
        _metadata,
    ),
    Rule(
        "network.unverified",
        "ask",
        "It talks to a server without checking that it is the right one.",
        (
            "curl -k https://a.example",
            "curl -fsSLk https://a.example -o x",
            "wget --no-check-certificate https://a.example",
            "kubectl --insecure-skip-tls-verify get pods",
        ),
        _FETCHERS | programs("kubectl helm oc podman skopeo buildah aws mvn"),
        _unverified,
    ),
    Rule(
        "network.connect",
        "ask",
        "It opens a connection to another machine or lets others connect to this one.",
        ("nc a.example 4444", "ssh host ls", "socat - TCP:a.example:80", "telnet a.example"),
        programs(
            "nc ncat netcat socat telnet ssh sftp ftp tftp lftp mosh rsh rlogin rexec cryptcat "
            "ngrok cloudflared localtunnel lt bore chisel frpc tailscale openvpn wg-quick autossh "
            "sshpass smbclient rclone croc wormhole ftpput ftpget openssl"
        ),
        either(
            both(lambda command, _: command.program == "openssl", told("s_client", "s_server")),
            no(
                either(
                    _only_looks,
                    has("-V", "--version"),
                    lambda command, _: command.program == "openssl",
                )
            ),
        ),
    ),
    Rule(
        "network.copy",
        "ask",
        "It copies files from or to another machine.",
        ("scp x host:/tmp", "rsync -a . user@host:backup"),
        programs("scp rsync rcp"),
        _copies_away,
    ),
    Rule(
        "network.mail",
        "ask",
        "It sends mail.",
        ("mail -s x a@b.example < notes.txt",),
        programs("mail mailx sendmail mutt msmtp swaks ssmtp"),
    ),
    Rule(
        "publish.package",
        "ask",
        "It publishes the project for others to install, or changes what is published.",
        ("npm publish", "twine upload dist/*", "cargo publish", "python -m twine upload dist/*"),
        programs(
            "npm yarn pnpm bun twine cargo gem poetry uv flit hatch pdm python mvn gradle gradlew "
            "dotnet vsce ovsx lerna changeset goreleaser semantic-release release-it np helm "
            "docker podman conda anaconda jsr deno composer hex mix rye npx"
        ),
        both(
            either(
                told(
                    *("publish", "unpublish", "upload", "push", "deprecate", "yank", "owner"),
                    *(
                        "twine upload",
                        "deploy",
                        "dist-tag add",
                        "access",
                        "token",
                        "release",
                    ),
                    *("nuget push", "login", "adduser", "npm publish", "hex.publish", "logout"),
                    *("team", "workspaces publish", "flit publish", "poetry publish", "image push"),
                ),
                lambda command, _: (
                    command.subcommand()[:1] == ("setup.py",)
                    and bool({"upload", "register"}.intersection(command.subcommand()))
                ),
                lambda command, _: (
                    command.program in ("goreleaser", "semantic-release", "release-it", "np")
                ),
            ),
            no(has("--dry-run", "--dry")),
        ),
    ),
    Rule(
        "publish.task",
        "ask",
        "By its name this task of the project publishes it.",
        ("make deploy", "npm run publish", "fab release"),
        programs("make gmake just task fab invoke inv rake npm yarn pnpm bun nox tox ant gulp"),
        both(
            lambda command, _: any(
                _TASK.fullmatch(text) for said in command.readings() for text in said[:2]
            ),
            no(has("--dry-run", "-n")),
        ),
    ),
    Rule(
        "publish.site",
        "ask",
        "It puts the project on a public server.",
        ("vercel --prod", "netlify deploy", "flyctl deploy", "heroku ps:scale web=0"),
        programs(
            "vercel netlify fly flyctl heroku firebase wrangler surge railway render amplify eb "
            "serverless sls cdk sam pulumi gatsby-deploy "
            "gh-pages mkdocs capistrano cap fastlane eas"
        ),
        no(
            told(
                *("build", "serve", "dev", "list", "ls", "logs", "status", "whoami", "help"),
                *("synth", "diff", "new", "init", "local", "preview", "validate"),
            )
        ),
    ),
)
