"""Tokens of messengers, shops, monitoring and other services, as rows for `tokens`."""

from journeyman.redaction.token_row import Token

_MIX = "aB3dE6gH9k"
_UPPER = "A1B2C3D4E5F6G7H8"
_HEX = "0a1b2c3d4e5f6789"

SERVICE_TOKENS: tuple[Token, ...] = (
    Token(
        "jwt",
        "eyJ",
        r"eyJ[\w-]{8,}(?:\.[\w-]{2,}){1,4}\.?",
        f"eyJ{_MIX * 2}.eyJ{_MIX * 3}.{_MIX * 4}",
        "a signed or encrypted token: a header in base64 and what follows it",
    ),
    Token(
        "jwt",
        "eyJ",
        r"eyJ(?:hbGciOi|0eXAiOi|raWQiOi|lbmMiOi|qa3UiOi|4NXQiOi)[\w-]{4,}",
        f"eyJhbGciOi{_MIX}",
        "the same, cut off in its header",
    ),
    Token("slack_token", "xox", r"xox[a-z](?:\.xox[a-z])?-[\w-]{8,}", f"xoxb-{_MIX * 4}", "Slack"),
    Token("slack_token", "xapp-", r"xapp-[\w-]{12,}", f"xapp-1-{_MIX * 4}", "Slack app"),
    Token(
        "slack_webhook",
        "hooks.slack",
        r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/([\w/-]{8,})",
        f"hooks.slack.com/services/T{_UPPER[:8]}/B{_UPPER[:8]}/{_MIX * 2}",
        "whoever has the address can post",
    ),
    Token(
        "discord_webhook",
        "/webhooks/",
        r"discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/(\d{8,}/[\w-]{8,})",
        f"discord.com/api/webhooks/{'1234567890' * 2}/{_MIX * 6}",
        "whoever has the address can post",
    ),
    Token(
        "discord_token",
        ".",
        r"[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{24,}",
        f"M{_MIX * 2}aB3.GaBcDe.{_MIX * 4}",
        "a bot of Discord; a point stands nearly everywhere, two at this distance do not",
        hint=r"\.[\w-]{6}\.[\w-]{24}",
    ),
    Token("discord_token", "mfa.", r"mfa\.[\w-]{40,}", f"mfa.{_MIX * 8}", "a user of Discord"),
    Token(
        "telegram_token",
        ":A",
        r"(?:bot)?(\d{6,12}:A[A-Za-z][\w-]{20,40})(?![\w-])",
        f"{'1234567890'}:AA{_MIX * 3}abc",
        "a bot of Telegram",
    ),
    Token(
        "teams_webhook",
        ".webhook.office.com/",
        r"[\w-]+\.webhook\.office\.com/([\w@/-]{16,})",
        f"acme.webhook.office.com/webhookb2/{_HEX * 4}",
        "whoever has the address can post",
    ),
    Token(
        "stripe_key", "_live_", r"[sr]k_live_\w{8,}", f"sk_live_{_MIX * 3}", "Stripe, real money"
    ),
    Token("stripe_key", "_test_", r"[sr]k_test_\w{8,}", f"rk_test_{_MIX * 3}", "Stripe, test"),
    Token("stripe_key", "whsec_", r"whsec_[\w+/=]{12,}", f"whsec_{_MIX * 3}", "signs webhooks"),
    Token("square_token", "sq0", r"sq0[a-z]{3}-[\w-]{16,}", f"sq0csp-{_MIX * 4}", "Square"),
    Token(
        "paypal_token",
        "access_token$",
        r"access_token\$\w+\$\w{8,}\$[0-9a-f]{16,}",
        f"access_token$production${_HEX}${_HEX * 2}",
        "PayPal",
    ),
    Token(
        "shopify_token", "shp", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{16,}", f"shpat_{_HEX * 2}", "shop"
    ),
    Token(
        "twilio_key",
        "SK",
        r"SK[0-9a-f]{32}(?![0-9A-Za-z])",
        f"SK{_HEX * 2}",
        "Twilio, a key",
        hint=r"SK[0-9a-f]{32}",
    ),
    Token(
        "twilio_key",
        "AC",
        r"AC[0-9a-f]{32}(?![0-9A-Za-z])",
        f"AC{_HEX * 2}",
        "its account",
        hint=r"AC[0-9a-f]{32}",
    ),
    Token(
        "sendgrid_key",
        "SG.",
        r"SG\.[\w-]{16,}(?:\.[\w-]{4,})?",
        f"SG.{_MIX * 2}.{_MIX * 4}",
        "mail",
    ),
    Token("mailgun_key", "key-", r"key-[0-9a-f]{32}", f"key-{_HEX * 2}", "Mailgun"),
    Token("mailchimp_key", "-us", r"[0-9a-f]{32}-us\d{1,2}", f"{_HEX * 2}-us12", "Mailchimp"),
    Token("brevo_key", "keysib-", r"x(?:key|smtp)sib-[\w-]{24,}", f"xkeysib-{_HEX * 4}", "Brevo"),
    Token(
        "resend_key",
        "re_",
        r"re_[A-Za-z0-9]{6,10}_[A-Za-z0-9]{20,}",
        f"re_{_MIX[:8]}_{_MIX * 3}",
        "mail",
    ),
    Token(
        "linear_key", "lin_", r"lin_(?:api|oauth)_[A-Za-z0-9]{12,}", f"lin_api_{_MIX * 4}", "Linear"
    ),
    Token("notion_token", "ntn_", r"ntn_[A-Za-z0-9]{24,}", f"ntn_{_MIX * 5}", "Notion"),
    Token(
        "notion_token", "secret_", r"secret_[A-Za-z0-9]{43}(?!\w)", f"secret_{_MIX * 4}aB3", "older"
    ),
    Token(
        "figma_token",
        "fig",
        r"fig[doru]_[\w-]{16,}",
        f"figd_{_MIX * 4}",
        "Figma",
        hint=r"fig[doru]_",
    ),
    Token(
        "airtable_token",
        "pat",
        r"pat[A-Za-z0-9]{14}\.[0-9a-f]{16,}",
        f"pat{_MIX}aB3d.{_HEX * 4}",
        "Airtable",
        hint=r"pat[A-Za-z0-9]{14}\.",
    ),
    Token(
        "newrelic_key",
        "NR",
        r"NR(?:AK|JS|II|IQ|RA|SP)-[\w-]{16,}",
        f"NRAK-{_UPPER * 2}",
        "New Relic",
        hint=r"NR[A-Z]{2}-",
    ),
    Token("newrelic_key", "NRAL", r"[0-9a-f]{36}NRAL", f"{_HEX * 2}0a1bNRAL", "New Relic licence"),
    Token("sentry_token", "sntry", r"sntry[sua]_[\w+/=-]{16,}", f"sntrys_{_MIX * 6}", "Sentry"),
    Token(
        "grafana_token",
        "gl",
        r"gl(?:sa|c)_[\w+/=-]{16,}",
        f"glsa_{_MIX * 4}",
        "Grafana",
        hint=r"gl(?:sa|c)_",
    ),
    Token("postman_key", "PMAK-", r"PMAK-[\w-]{16,}", f"PMAK-{_HEX * 2}", "Postman"),
    Token("dropbox_token", "sl.", r"sl\.(?:u\.)?[\w-]{100,}", f"sl.u.{_MIX * 13}", "Dropbox"),
    Token("facebook_token", "EAA", r"EAA[A-Za-z0-9]{80,}", f"EAA{_MIX * 10}", "Facebook"),
    Token(
        "sonar_token",
        "sq",
        r"sq[pua]_[0-9a-f]{40}",
        f"squ_{_HEX * 2}01234567",
        "SonarQube",
        hint=r"sq[pua]_",
    ),
    Token(
        "buildkite_token",
        "bk",
        r"bk(?:ua|ct)_[A-Za-z0-9]{20,}",
        f"bkua_{_HEX * 2}",
        "Buildkite",
        hint=r"bk(?:ua|ct)_",
    ),
    Token("circleci_token", "CCIP", r"CCIP(?:AT|RJ)_[\w-]{16,}", f"CCIPAT_{_MIX * 5}", "CircleCI"),
    Token("contentful_token", "CFPAT-", r"CFPAT-[\w-]{24,}", f"CFPAT-{_MIX * 4}", "Contentful"),
    Token(
        "onepassword_token", "ops_eyJ", r"ops_eyJ[\w+/=-]{24,}", f"ops_eyJ{_MIX * 6}", "1Password"
    ),
    Token(
        "hubspot_token",
        "pat-",
        r"pat-(?:na|eu|ap)\d-[0-9a-f-]{24,}",
        f"pat-na1-{_HEX * 2}",
        "HubSpot",
    ),
    Token(
        "ssh_key",
        "b3BlbnNzaC1rZXktdjE",
        r"b3BlbnNzaC1rZXktdjE[A-Za-z0-9+/=\s]{8,}",
        f"b3BlbnNzaC1rZXktdjE{_MIX * 4}",
        "a private key of OpenSSH without the lines around it",
    ),
)
