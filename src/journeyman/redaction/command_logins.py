"""Secrets that single programs take on their command line, as rows for `logins`. Options whose name
tells it, such as --password, are for `places`.
"""

from journeyman.redaction.login_row import Login

_V = r"\\?[\"']?([^\s\"'|;<>\\]{3,200})"
_ARGS = r"\b[^\n|;]{0,300}? "

COMMAND_LOGINS: tuple[Login, ...] = (
    Login("curl.user", "curl ", r"\bcurl\b[^\n]{0,300}? (?:-[a-zA-Z]{0,6}u|--user)[ =]?"
          r"\\?[\"']?[^\s:\"'\\]{0,80}:([^\s\"'\\]{1,200})",
          "curl -sSu bob:hunter2 https://host.example/", "curl's user and password"),
    Login("httpie.user", "http ", r"\bhttp\b[^\n]{0,200}? (?:-a|-u|--auth)[ =]?[\"']?"
          r"[^\s:\"']{1,80}:([^\s\"']{1,200})",
          "http -a bob:hunter2 host.example", "the same of HTTPie"),
    Login("curl.cookie", "curl", r"\bcurl\b[^\n]{0,300}? (?:-b|--cookie) ?\\?[\"']?([\w.-]{1,40}=["
          r"^\"'\n\\]{6,400})",
          "curl -b 'sid=0a1b2c3d4e' https://host.example/", "curl's cookies", "cookie"),
    Login("mysql.password", "-p", r"\b(?:mysql|mysqldump|mysqladmin|mariadb|mariadb-dump)\b[^\n|;]"
          r"{0,300}? "
          r"-p[\"']?([^\s\"'-][^\s\"']{0,100})",
          "mysql -u root -phunter2 shop", "MySQL wants it glued to the option"),
    Login("p.password", " -p", r"\b(?:sshpass|docker login|podman login|helm registry login|mongo|"
          r"mongosh|mongodump|mongorestore|oc login|az login|twine upload|doctl|cf login|ipmitool)"
          + _ARGS + r"-p[ =]?\\?[\"']?([^\s\"'\\-][^\s\"'\\]{0,100})",
          "sshpass -p hunter2 ssh bob@host", "programs with a short option for it"),
    Login("archive.password", "-p", r"\b(?:7z[az]?|rar|unrar)" + _ARGS +
          r"-(?:p|hp)([^\s\"'-][^\s\"']{2,100})",
          "7z x a.7z -phunter2", "the password of an archive"),
    Login("w.password", " -w",
          r"\b(?:ldapsearch|ldapadd|ldapmodify|ldapwhoami|ldappasswd)" + _ARGS +
          r"-w ?" + _V,
          "ldapsearch -D cn=admin -w hunter2 -b dc=example", "LDAP's option"),
    Login("P.password", " -P",
          r"\b(?:sqlcmd|bcp|isql|tsql|unzip|zip|ipmitool)" + _ARGS + r"-P ?" + _V,
          "sqlcmd -S db -U sa -P hunter2 -Q 'select 1'", "SQL Server, zip"),
    Login("k.password", " -k", r"\bopenssl enc" + _ARGS + r"-k " + _V,
          "openssl enc -aes-256-cbc -k hunter2 -in a", "OpenSSL's option"),
    Login("redis.password", "redis-cli", r"redis-cli\b[^\n|;]{0,99}? -a[ =]?" + _V,
          "redis-cli -h cache -a hunter2 ping", "Redis' option"),
    Login("redis.auth", "AUTH ", r"(?:redis|\d> ?|> ?|^|\n)[^\n]{0,40}?\bAUTH (?:[\w-]{1,40} )?([^"
          r"\s\"':=]{6,200})(?=\s|\Z)",
          "redis-cli> AUTH hunter2hunter2", "Redis' command", must_look="random"),
    Login("openssl.password", "pass:", r"-pass(?:in|out|word)? [\"']?pass:([^\s\"']{1,100})",
          "openssl rsa -passin pass:hunter2 -in key.pem", "OpenSSL's way"),
    Login("smb.password", "-U", r"\b(?:smbclient|rpcclient|winexe|net rpc)" + _ARGS +
          r"-U ?[\"']?[\w\\.-]{1,60}%" + _V,
          "smbclient //nas/share -U 'bob%hunter2'", "Samba's user and password"),
    Login("htpasswd", "htpasswd", r"\bhtpasswd(?: -\w{1,8}){0,4} -\w{0,6}b\w{0,6}(?: [^\s-]\S{0,99"
          r"})? [\w.@-]{1,60} " + _V,
          "htpasswd -bc .htpasswd bob hunter2", "a password for a web server"),
    Login("chpasswd", "chpasswd", r"[\"' ][\w.-]{1,60}:([^\s\"'|:]{3,100})[\"']? ?\| ?(?:sudo )?ch"
          r"passwd",
          "echo 'bob:hunter2' | chpasswd", "a new password for a user"),
    Login("add_user", "rabbitmqctl", r"\brabbitmqctl (?:add_user|change_password) \S{1,60} " + _V,
          "rabbitmqctl add_user bob hunter2", "a user of RabbitMQ"),
    Login("net_use", "net ", r"\bnet (?:use|user) \S{1,60} (?:\\{2,4}\S{1,99} )?([^\s/\\*][^\s/]{2"
          r",100})(?= /)",
          "net use Z: \\\\nas\\share hunter2 /user:bob", "a share of Windows"),
    Login("sudo.password", "sudo", r"echo (?:-[en] )?[\"']?([^\s\"'|]{1,100})[\"']? ?\| ?sudo (?:-"
          r"\w{1,9} ){0,3}-\w{0,5}S",
          "echo hunter2 | sudo -S apt update", "a password piped to sudo"),
    Login("stdin.password", "-stdin", r"\b(?:echo|printf)(?: -\w{1,3})? \\?[\"']?([^\s\"'|\\]{3,30"
          r"0})\\?[\"']? ?\|"
          r"[^\n|;]{1,200}--(?:password|token|with-token|secret)-stdin",
          "echo hunter2 | docker login -u bob --password-stdin", "a password piped to a login"),
    Login("here.secret", "<<<",
          r"\b(?:secrets?|login|token|passwd|password)\b[^\n|;]{0,200}<<< ?" + _V,
          "wrangler secret put API <<< hunter2", "a secret as a here-string", "secret"),
    Login("login.token", "login", r"\b(?:vault|wandb|railway|huggingface-cli|sentry-cli) login"
          r"(?: -\S{1,30}){0,3} \\?[\"']?([\w.+/=-]{12,300})",
          "wandb login " + "0a1b2c3d" * 5, "a login with a key", "secret", "random"),
    Login("auth.token", "auth", r"\b(?:snyk auth|ngrok authtoken|ngrok config add-authtoken) "
          r"\\?[\"']?([\w.+/=-]{12,300})",
          "snyk auth " + "0a1b2c3d" * 5, "the same with another word", "secret", "random"),
    Login("unseal.key", "unseal", r"\boperator unseal (?:-\S{1,30} ){0,3}([\w.+/=-]{12,300})",
          "vault operator unseal " + "0a1B2c3D" * 5, "a share of a vault's key", "secret"),
    Login("secret.set", "secret", r"\b(?:gh|az keyvault|vercel|doppler|wrangler|fly|flyctl|supabas"
          r"e|eb|pulumi|dotnet)\b"
          r"[^\n|;]{0,60}? ?(?:user-)?secrets? (?:set|put|add)\b[^\n|;]{0,200}? (?:--body|-b|--val"
          r"ue)[ =]" + _V,
          "gh secret set DEPLOY --body hunter2", "a secret for a job or a vault", "secret"),
    Login("secret.pair", "secret", r"\bsecrets? (?:set|put|import)(?: -\S{1,40})* [A-Z][A-Z0-9_]{2"
          r",60}=" + _V,
          "fly secrets set COOKIE_SALT=hunter2", "the same in pairs", "secret"),
    Login("secret.dotnet", "user-secrets",
          r"user-secrets set \\?[\"']?[\w:.-]{1,80}\\?[\"']? " + _V,
          'dotnet user-secrets set "Stripe:Key" "hunter2"', "secrets of .NET", "secret"),
    Login("secret.literal", "--from-literal", r"\bsecret\b[^\n]{0,200}?--from-literal[ =][\"']?[\w"
          r".-]{1,80}=" + _V,
          "kubectl create secret generic db --from-literal=conn=hunter2", "Kubernetes", "secret"),
    Login("secret.ssm", "SecureString", r"SecureString\b[^\n|;]{0,200}? --value[ =]" + _V,
          "aws ssm put-parameter --type SecureString --value hunter2", "AWS", "secret"),
    Login("keytool", "pass ", r" -(?:store|key|src|dest|srcstore|deststore)pass " + _V,
          "keytool -genkey -storepass hunter2 -keystore k.jks", "Java's key stores"),
    Login("sql.password", " '", r"(?i:\b(?:password|identified by|identified with \w{1,40} by))\s"
          r"{1,4}'([^'\n]{1,100})'",
          "CREATE USER bob WITH PASSWORD 'hunter2'", "SQL for a new user"),
)  # fmt: skip
