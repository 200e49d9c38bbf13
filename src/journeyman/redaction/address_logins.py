"""Secrets in addresses, in password files and behind the scheme of a header, as rows for
`logins`.
"""

from journeyman.redaction.login_row import Login

ADDRESS_LOGINS: tuple[Login, ...] = (
    Login("address.password", "://",
          r"://[^\s/:@\"'<>?#]{0,100}:(?!\d{1,5}[/?#])([^\s/\"'<>]{1,200})@(?=[\w\[.$%{-])",
          "postgresql://shop:hunter2@db.example/orders", "user and password before the host"),
    Login("address.user", "://", r"://([^\s/:@\"'<>?#]{16,200})@(?=[\w\[.-])",
          "https://" + "0a1b2c3d" * 4 + "@o1.ingest.example/42",
          "a key in the place of the user: Sentry's addresses, tokens of code hosts",
          "secret", "random"),
    Login("address.user_of_two", "://", r"://([A-Za-z0-9_-]{20,200}):[\w-]{0,40}@",
          "https://" + "0a1b2c3d" * 5 + ":x-oauth-basic@host.example/a.git",
          "the same with a filler as the password", "secret", "random"),
    Login("address.oracle", "thin:", r"\bthin:[\w$#]{1,40}/([^\s@\"'/]{3,100})@(?=[\w/])",
          "jdbc:oracle:thin:scott/hunter2@//db.example:1521/orcl", "Oracle's way"),
    Login("address.sqlplus", "sqlplus ",
          r"\bsqlplus (?:-\w )?[\"']?[\w$#]{1,40}/([^\s@\"'/]{3,100})@(?=[\w/])",
          "sqlplus scott/hunter2@orcl", "the same on a command line"),
    Login("address.go", "@tcp(", r"\b[\w.-]{1,60}:([^\s@\"'`]{2,100})@(?:tcp|unix)\(",
          "shop:hunter2@tcp(db:3306)/orders", "the way of Go's MySQL driver"),
    Login("address.code", "?code=", r"/api/[\w/-]{1,80}\?code=([\w+/%=-]{20,200})",
          "https://shop.example/api/orders?code=" + "aB3dE6gH9k" * 4 + "==",
          "the key of a cloud function", "secret", "random"),
    Login("address.reset", "/reset", r"/(?:reset|verify|invite|magic)[\w-]{0,20}/([\w-]{20,200})(?"
          r"![\w/-])",
          "GET /reset-password/" + "aB3dE6gH9k" * 3 + " 200", "a link that logs in", "secret",
          "random"),
    Login("netrc", "machine ", r"machine \S{1,99}\s{1,9}login \S{1,99}\s{1,9}password (\S{1,99})",
          "machine host.example login bob password hunter2", "the file of curl and git"),
    Login("pgpass", ":", r":(?<=[\w*]:)(?:\d{4,5}|\*):[A-Za-z_*][^:\s]{0,60}:[A-Za-z_][^:\s]{0,60}:"
          r"([^\s:]{3,100})(?=\s|\Z)",
          "db.example:5433:shop:bob:hunter2", "PostgreSQL's password file"),
    Login("bearer", "earer ", r"\b[Bb]earer +([\w.~+/=-]{8,4000})", "-H Bearer " + "a1B2" * 6,
          "a token without its header", "secret", "random"),
    Login("basic", "asic ", r"\b[Bb]asic +([A-Za-z0-9+/]{8,400}={0,2})", "Basic Ym9iOmh1bnRlcjI=",
          "user and password in base64", "secret", "basic"),
    Login("digest", "response=", r"Digest [^\n]{0,300}?\bresponse=\\?\"([0-9a-f]{16,64})",
          'Authorization: Digest username="bob", response="' + "0a1b2c3d" * 4 + '"',
          "the answer of a digest", "secret"),
    Login("hash.crypt", "$", r"(\$(?:1|2[abxy]|5|6|7|y|apr1|argon2\w{0,2}|pbkdf2[\w-]{0,10})\$"
          r"[\w./=,+-]{1,40}\$?[\w./=,+$-]{16,200})",
          "root:$6$saltsalt$" + "aB3dE6gH9k" * 4 + ":19000:0:", "a password that was hashed",
          "password_hash"),
    Login("seed_phrase", "phrase", r"(?i:(?:seed|recovery|mnemonic|backup) phrase)[ :=\"'is]{1,6}"
          r"([a-z]{3,8}(?: [a-z]{3,8}){11,23})\b",
          "seed phrase: " + " ".join(["apple", "river", "stone", "candle"] * 3),
          "the words of a wallet", "secret"),
    Login("putty", "Private-Lines:", r"Private-Lines: \d{1,3}\s{1,4}([A-Za-z0-9+/=\s]{16,8000}?)(?"
          r"=Private-MAC|\Z)",
          "Private-Lines: 1\n" + "aB3dE6gH9k" * 4 + "\nPrivate-MAC: 00", "a key of PuTTY",
          "private_key"),
)  # fmt: skip
