"""Secrets that calls in programs take as an argument without a name, as rows for `logins`."""

from journeyman.redaction.login_row import Login

_STRING = r"\\?[\"'][^\"'\n\\]{0,100}\\?[\"']"
_V = r"\\?[\"']([^\"'\n\\]{3,300})\\?[\"']"

CODE_LOGINS: tuple[Login, ...] = (
    Login("code.auth_pair", "auth", r"\bauth ?[=:] ?[(\[] ?" + _STRING + r", ?" + _V,
          "requests.get(url, auth=('bob', 'hunter2'))", "user and password of a request"),
    Login("code.basic", "Auth", r"\b\w{0,20}(?:BasicAuth|BasicAuthentication|PasswordAuthenticatio"
          r"n)"
          r"\( ?" + _STRING + r", ?" + _V,
          "HTTPBasicAuth('bob', 'hunter2')", "an object of user and password"),
    Login("code.credential", "Credential", r"\b\w{0,20}Credentials?\( ?" + _STRING + r", ?" + _V,
          'new NetworkCredential("bob", "hunter2")', "the same under another name"),
    Login("code.client", "Client(", r"\bClient\( ?\\?[\"'](?:AC[0-9a-f]{32}|<twilio_key:\d{1,9}>)"
          r"\\?[\"'], ?" + _V,
          "Client('<twilio_key:1>', 'hunter2')", "an account and its token", "secret"),
    Login("code.login", "ogin(", r"\.[lL]ogin\( ?" + _STRING + r", ?" + _V,
          "server.login('bob', 'hunter2')", "a login"),
    Login("code.connection", "onnect", r"\b(?:getConnection|connect)\([^()\n]{0,120}?, ?"
          + _STRING +
          r", ?" + _V + r" ?\)",
          'DriverManager.getConnection(url, "bob", "hunter2abc")', "a connection",
          must_look="random"),
    Login("code.sign", "jwt", r"(?i:\bjwt)\.(?:encode|sign|decode|verify)\( ?[\w.{}\[\]: \"']{1,80"
          r"}?, ?" + _V,
          "jwt.sign(payload, 'hunter2hunter2')", "the key that signs a token", "secret", "random"),
    Login("code.secure_string", "ConvertTo-SecureString",
          r"ConvertTo-SecureString (?:-String )?" + _V,
          "ConvertTo-SecureString 'hunter2' -AsPlainText -Force", "PowerShell"),
    Login("code.extra", ' { "', r"\b(?i:token|secret|password|api_?key) by \w{2,20} ?\{ ?" + _V,
          'val token by extra { "hunter2hunter2" }', "Kotlin's delegates", "secret", "random"),
)  # fmt: skip
