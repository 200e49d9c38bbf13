"""What the name of a field, a variable or an option says about its value: whether this is a place
for a secret, and how sure that is.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

Place = Literal["password", "secret", "loose", "code", "header", "cookie", "phone", "card"]
"""`password` and `secret`: what stands here goes, unless it only refers to something. `loose`: the
name is used for other things too, so the value must look random. `code`: short numbers such as a
PIN. `header`: a scheme and then the secret. `cookie`: pairs. `phone`, `card`: enough digits."""

_PASSWORD = (
    *("password", "passwd", "passphrase", "passcode", "passwort", "kennwort", "seedphrase"),
    *("contrasena", "senha", "wachtwoord", "haslo", "heslo", "salasana", "losenord", "motdepasse"),
)
FOREIGN_PASSWORDS = (
    *("contraseña", "hasło", "lösenord", "пароль", "密码", "密碼", "パスワード", "비밀번호"),
)
"""Names of a password with letters that English has not; they are looked for as they are."""
_OWNERS_OF_PASS = frozenset(
    {
        *("db", "database", "user", "smtp", "mail", "mysql", "pg", "ftp", "ssh", "sudo", "root"),
        *("admin", "store", "key", "keystore", "truststore", "require", "become", "vault", "bind"),
        *("ldap", "my", "redis", "mongo", "postgres", "svc", "service", "proxy", "wifi", "login"),
    }
)
_GLUED_PASS = frozenset(owner + end for owner in _OWNERS_OF_PASS for end in ("pass", "pw"))
_SECRET = (
    *("clientsecret", "appsecret", "consumersecret", "signingsecret", "webhooksecret"),
    *("sharedsecret", "apisecret", "jwtsecret", "sessionsecret", "secretstring", "cookiesecret"),
    *("accesstoken", "refreshtoken", "authtoken", "bearertoken", "apitoken", "sessiontoken"),
    *("securitytoken", "bottoken", "idtoken", "privatetoken", "deploytoken", "usertoken"),
    *("connectionstring", "connstr", "recoverycode", "backupcode", "totpsecret", "otpsecret"),
    *("privatekeypem", "accountsid", "mnemonic", "secretkeybase", "privatekeyid"),
)
_OWNERS_OF_KEY = frozenset(
    {
        *("api", "access", "secret", "private", "auth", "signing", "encryption", "decryption"),
        *("master", "account", "admin", "service", "deploy", "ssh", "license", "licence"),
        *("subscription", "webhook", "wallet", "jwt", "aes", "hmac", "cipher", "security", "app"),
    }
)
_OWNERS_OF_LOOSE_KEYS = frozenset(
    {"session", "client", "shared", "recovery", "unseal", "root", "storage", "fernet", "wrapping"}
)
_GLUED_KEYS = frozenset(owner + "key" for owner in _OWNERS_OF_KEY)
_NAMES_OF_KEYS = ("primary", "foreign", "public", "sort", "partition", "cache", "idempotency")
_LOOSE = frozenset(
    {
        *("token", "secret", "auth", "credential", "cred", "creds", "jwt", "bearer", "dsn"),
        *("pass", "pw", "apitoken", "authn", "webhook", "sas", "nonce", "salt", "unseal"),
        *("signing", "secretid", "phpsessid", "jsessionid", "sessionid", "sessid"),
    }
)
_CODE = frozenset(
    {"pin", "otp", "totp", "cvv", "cvc", "cvv2", "ssn", "pincode", "otpcode", "securitycode"}
)
_CODES_BY_TWO = frozenset(
    {
        *("pin code", "otp code", "mfa code", "2fa code", "totp code", "verification code"),
        *("security code", "card code", "cvv code", "cvc code", "social security number"),
    }
)
_PHONE = frozenset({"phone", "telephone", "mobile", "cellphone", "fax", "phonenumber", "msisdn"})
_CARD = frozenset({"cardnumber", "creditcardnumber", "ccnumber", "creditcard"})

# Words that only say which of several values it is.
_WHICH = frozenset(
    {
        *("value", "confirm", "confirmation", "again", "repeat", "hash", "b64", "base64", "enc"),
        *("prod", "production", "dev", "test", "staging", "live", "default", "current", "old"),
        *("new", "plain", "plaintext", "text", "raw", "str", "data", "1", "2", "3"),
    }
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+[a-z]*")


@lru_cache(maxsize=4096)
def place_of(name: str) -> Place | None:
    """The kind of place that a name marks; None for an ordinary one."""
    if not name.isascii() and name.lower().endswith(FOREIGN_PASSWORDS):
        return "password"
    words = [word.lower() for word in _WORD.findall(name[-80:])]
    while len(words) > 1 and words[-1] in _WHICH:
        words.pop()
    if not words:
        return None
    last = words[-1]
    before = words[-2] if len(words) > 1 else ""
    glued = before + last
    singular = glued.removesuffix("s") if not glued.endswith("ss") else glued
    if last in ("authorization", "authorisation"):
        return "header"
    if last.rstrip("s") in ("cookie", "setcookie"):
        return "cookie"
    if singular.endswith(_PASSWORD) or last in ("pwd", "passe", "psk"):
        return "password"
    if name == "PASS":  # of a test that passed
        return None
    if (last in ("pass", "pw") and before in _OWNERS_OF_PASS) or last in _GLUED_PASS:
        return "password"
    if last in _CODE or " ".join(words[-2:]) in _CODES_BY_TWO or glued in _CODE:
        return "code"
    if singular.endswith(_SECRET) or "".join(words[-3:]) in _SECRET or _is_secret_key(last, before):
        return "secret"
    if last in _PHONE or glued in _PHONE:
        return "phone"
    if glued in _CARD or "".join(words[-3:]) in _CARD:
        return "card"
    return "loose" if _is_loose(name, last, before) else None


def _is_secret_key(last: str, before: str) -> bool:
    if last in ("key", "keys"):
        return before in _OWNERS_OF_KEY
    return last.removesuffix("s") in _GLUED_KEYS or last.endswith(("apikey", "secretkey"))


def _is_loose(name: str, last: str, before: str) -> bool:
    if last in ("key", "keys"):
        if before in _OWNERS_OF_LOOSE_KEYS:
            return True
        return bool(before) and name.isupper() and before not in _NAMES_OF_KEYS
    if last == "id" and before == "secret":
        return True
    if last == "pat":
        return bool(before) or name == "PAT"
    return last in _LOOSE or last.removesuffix("s") in _LOOSE


VALUE_NAMES = frozenset({"value", "text", "val", "content", "string", "input", "default"})
_NAMING = ("name", "key", "field", "variable", "selector", "element", "label", "locator", "env")


def place_of_value(fields: Mapping[str, object]) -> Place | None:
    """The place that one field names for another: `{"name": "DB_PASSWORD", "value": "…"}`, or a
    form that is filled in: `{"selector": "#password", "text": "…"}`.
    """
    if VALUE_NAMES.isdisjoint(fields):
        return None
    for naming in _NAMING:
        name = fields.get(naming)
        if isinstance(name, str) and 2 < len(name) < 200:
            words = [place_of(word) for word in _PIECE.findall(name)]
            for place in ("password", "secret", "code"):
                if place in words:
                    return place
    return None


_PIECE = re.compile(r"[\w-]{2,60}")
