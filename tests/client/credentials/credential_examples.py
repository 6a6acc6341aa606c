"""Texts with a credential and texts that only look so, by kind. `|` parts one, so that this file holds none."""

HEX = "9f86d081884c7d659a2feaa0c55ad015"
MIXED = "q7Rt2ZkP9wXc4VbN8mLs3HdJ6gFy1TaE5uKo0iYe"
KEY_BODY = "\n".join(["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"] * 4 + ["Zz3yQ1=="])


def _whole(texts: list[str]) -> list[str]:
    return [text.replace("|", "") for text in texts]


# Each text holds one credential: the part between « and ».
HOLDING: dict[str, list[str]] = {
    "private key": _whole(
        [
            f"-----BEGIN RSA |PRIVATE KEY-----«\n{KEY_BODY}»\n-----END RSA PRIVATE KEY-----",
            f"-----BEGIN |PRIVATE KEY-----«\n{KEY_BODY}»\n-----END PRIVATE KEY----- and more",
            "key: -----BEGIN EC |PRIVATE KEY-----«\\n"
            + KEY_BODY.replace("\n", "\\n")
            + "»\\n-----END EC PRIVATE KEY-----\\n",
            f"-----BEGIN OPENSSH |PRIVATE KEY-----«\n{KEY_BODY[:64]}»",
            "-----BEGIN RSA |PRIVATE KEY-----«\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0F1E\n\n"
            f"{KEY_BODY}»\n-----END RSA PRIVATE KEY-----",
            f"-----BEGIN PGP |PRIVATE KEY BLOCK-----«\nVersion: 2\n\n{KEY_BODY[:129]}»\n=aB3d\n",
            f"-----BEGIN |PRIVATE KEY-----«\\\\n{KEY_BODY[:64]}\\\\n{KEY_BODY[:64]}»\\\\n-----END PRIVATE KEY-----",
            f"     1\t-----BEGIN EC |PRIVATE KEY-----«\n     2\t{KEY_BODY[:64]}\n     3\t{KEY_BODY[:64]}»\n     4\tx",
            f"-----BEGIN%20|PRIVATE%20KEY-----«%0A{KEY_BODY[:60]}%2B%2F{KEY_BODY[:9]}%3D%3D»%0A-----END%20PRIVATE%20KEY-----",
            f"PuTTY-User-Key-File-3: ssh-rsa\nPrivate-|Lines: 2«\n{MIXED}\n{MIXED}»\nPrivate-MAC: 0",
        ]
    ),
    "age key": _whole(["«AGE-SECRET-|KEY-1" + "Q7RT2ZKP9WXC4VYN8MLS3HDJ6GFY1TAE5UKQ0XYEQ7RT2ZKP9WXC4VYN8M»"]),
    "AWS key pair": _whole(["the pair is «AK|IAQ7RT2ZKP4WXC4VBN,q7Rt2ZkP9wXc4VbN8mLs3HdJ6gFy1TaE5uKo/iYe»"]),
    "AWS access key": _whole(["aws_access_key_id=«AK|IAIOSFODNN7EXAMPLE»", "«AS|IAQ7RT2ZKP4WXC4VBN» expired"]),
    "AWS secret key": _whole(
        [
            "aws_secret_access_key = «wJalrXUtnFEMI/|K7MDENG/bPxRfiCYEXAMPLEKEY»",
            'x: {"SecretAccessKey": "«q7Rt2ZkP9wXc4VbN8mLs|3HdJ6gFy1TaE5uKo/iYe»"}',
        ]
    ),
    "GitHub token": _whole([f"push with «gh|p_{MIXED[:36]}» please", f"«github_|pat_{MIXED[:22]}_{MIXED}»"]),
    "GitLab token": _whole([f"«glp|at-{MIXED[:20]}»", f"«glr|t-{MIXED[:20]}»"]),
    "Anthropic key": _whole([f"export ANTHROPIC_API_KEY=«sk-|ant-api03-{MIXED}{MIXED}-AA»"]),
    "OpenRouter key": _whole([f"«sk-or|-v1-{HEX}{HEX}»"]),
    "OpenAI key": _whole(
        [f"use «sk-pr|oj-{MIXED}_{MIXED}» for that.", f'key="«sk-svc|acct-{MIXED}»"', f"key%3D«sk-pr|oj-{MIXED}»"]
    ),
    "API key": _whole([f"«sk-|{MIXED}{MIXED[:8]}»", f"it is «sk-|{HEX}»"]),
    "Langfuse key": _whole(["«sk-|lf-9f86d081-884c-4d65-9a2f-eaa0c55ad015»"]),
    "LangSmith key": _whole([f"«lsv2_|pt_{HEX}_0a1b2c3d4e»"]),
    "Groq key": _whole([f"«gsk|_{MIXED}{MIXED[:12]}»"]),
    "xAI key": _whole([f"«xai|-{MIXED}{MIXED}»"]),
    "Perplexity key": _whole([f"«pplx|-{MIXED}{MIXED[:8]}»"]),
    "Tavily key": _whole([f"«tvly|-dev-{MIXED[:32]}»"]),
    "Hugging Face token": _whole([f"HF_TOKEN is set: «hf|_{MIXED[:34]}»"]),
    "Replicate token": _whole([f"«r8|_{MIXED[:37]}»"]),
    "Google API key": _whole([f"maps with «AI|za{MIXED[:35]}»"]),
    "Google access token": _whole([f"«ya|29.{MIXED}»"]),
    "Google client secret": _whole([f"«GOC|SPX-{MIXED[:28]}»"]),
    "Azure storage key": _whole([f"AccountName=a;Account|Key=«{MIXED}{MIXED}{MIXED[:6]}==»;"]),
    "Azure client secret": _whole([f"«q7R8|Q~{MIXED[:34]}»"]),
    "Stripe key": _whole([f"«sk_|live_{MIXED[:24]}»", f"«rk_|test_{MIXED[:24]}»"]),
    "webhook secret": _whole([f"«whs|ec_{MIXED[:32]}»"]),
    "Slack token": _whole([f"«xox|b-123456789012-{MIXED[:24]}»", f"«xa|pp-1-A0123456789-{MIXED[:24]}»"]),
    "Slack webhook": _whole(
        ["post to https://hooks.slack|.com/services/«T01234567/B01234567/q7Rt2ZkP9wXc4VbN8mLs3HdJ»"]
    ),
    "Discord webhook": _whole([f"https://discord.com/api/web|hooks/112233445566778899/«{MIXED}{MIXED[:28]}»"]),
    "Telegram bot token": _whole([f"bot «110201543:|AA{MIXED[:33]}»"]),
    "SendGrid key": _whole([f"«SG|.{MIXED[:22]}.{MIXED}abc»"]),
    "Mailgun key": _whole([f"«ke|y-{HEX}»"]),
    "Mailchimp key": _whole([f"«{HEX}|-us14»"]),
    "npm token": _whole([f"//registry/:_authToken=«np|m_{MIXED[:36]}»"]),
    "PyPI token": _whole([f"«pyp|i-AgEIcHlwaS5vcmc{MIXED}{MIXED}»"]),
    "RubyGems key": _whole([f"«ruby|gems_{HEX}{HEX[:16]}»"]),
    "Docker token": _whole([f"«dckr|_pat_{MIXED[:27]}»"]),
    "DigitalOcean token": _whole([f"«do|p_v1_{HEX}{HEX}»"]),
    "Vault token": _whole([f"«hv|s.{MIXED}»"]),
    "Terraform token": _whole([f"«{MIXED[:14]}.atlas|v1.{MIXED}{MIXED[:20]}»"]),
    "Databricks token": _whole([f"«da|pi{HEX}»"]),
    "Atlassian token": _whole([f"«ATA|TT3{MIXED}{MIXED}=0A1B2C3D»"]),
    "Linear key": _whole([f"«lin_|api_{MIXED}»"]),
    "Notion token": _whole([f"«nt|n_{MIXED}{MIXED[:6]}»"]),
    "Figma token": _whole([f"«fi|gd_{MIXED}»"]),
    "Grafana token": _whole([f"«gl|sa_{MIXED[:32]}_0a1b2c3d»"]),
    "New Relic key": _whole(["«NR|AK-Q7RT2ZKP9WXC4VBN8MLS3HDJ6GF»"]),
    "Sentry token": _whole([f"«sntr|ys_{MIXED}{MIXED}»"]),
    "Supabase key": _whole([f"«sb|p_{HEX}{HEX[:8]}»", f"«sb_|secret_{MIXED[:31]}»"]),
    "Netlify token": _whole([f"«nf|p_{MIXED}»"]),
    "PlanetScale token": _whole([f"«pscale_|tkn_{MIXED}»"]),
    "Postman key": _whole([f"«PM|AK-{HEX[:24]}-{HEX}0a»"]),
    "Airtable token": _whole([f"«pa|t{MIXED[:14]}.{HEX}{HEX}»"]),
    "Doppler token": _whole([f"«dp|.pt.{MIXED}abc»"]),
    "Shopify token": _whole([f"«shp|at_{HEX}»"]),
    "Square token": _whole([f"«sq0|atp-{MIXED[:22]}»"]),
    "Pinecone key": _whole([f"«pc|sk_{MIXED}_{MIXED[:20]}»"]),
    "memoryd token": _whole([f"«m|t_{MIXED}abc»"]),
    "JWT": _whole(["cookie «ey|JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P»"]),
    "bearer token": _whole(
        [
            f"Authorization: Bearer «{MIXED}»",
            f"bearer: «{MIXED}»",
            "curl -H 'authorization: |bearer «mF_9.B5f-4.1JqM-zZ8»'",
        ]
    ),
    "basic authorization": _whole(
        [
            "Authorization: |Basic «YWxhZGRpbjpvcGVuc2VzYW1l»",
            'headers["Authorization"] = "Basic |«YWxhZGRpbjpvcGVuc2VzYW1l»"',
            f"curl -H 'Authorization: token |«{HEX}»'",
        ]
    ),
    "password in a URL": _whole(
        [
            "postgres://app:«s3cr|et»@db.internal:5432/app",
            "REDIS_URL=redis://:«hunt|er2»@cache:6379/0",
            "postgres://app:«p@ss|q7Rt»@db.internal:5432/app",
            "clone https://ci:«q7Rt|2ZkP»@git.acme.test/api.git",
        ]
    ),
    "signed URL": _whole([f"https://a.blob.test/f?sv=2024&si|g=«{MIXED}{MIXED[:6]}%3D»"]),
    "password": _whole(
        [
            "password = «hun|ter2»",
            'password: "«cor|rect-horse-7»"',
            "DB_PASSWORD=«Tr0ub|4dor&3»",
            '{"user": "app", "password": "«s3c|r3t!»"}',
            'log: {\\"password\\": \\"«s3c|r3t!»\\"}',
            "the password is «hun|ter2», do not lose it.",
            "Password for the staging database is «Winter|2024!».",
            "set the root password to «gr8|Wall#»",
            "mysql --password=«q7Rt|2ZkP» -u app",
            "deploy --db-password «q7Rt|2ZkP»",
            "ALTER USER app IDENTIFIED BY '«q7Rt|2ZkP»'",
            "curl -u app:«q7Rt|2ZkP» https://api.acme.test",
            "machine api.acme.test login app password «q7Rt|2ZkP»",
            "<password>«q7Rt|2ZkP»</password>",
            "passphrase = «q7Rt|2ZkP»",
            "PGPASSWORD=«q7Rt|2ZkP» psql",
            "pwd=«q7Rt|2ZkP»;Server=db",
            "passwd=«gr8|Wall#»",
            "password: «s3cr|3tPa55»",
            "DB_PASSWORD=«letme|inplease»",
            "host=db;User Id=sa;Password=«letme|inplease»;Encrypt=True",
            "jdbc:mysql://db/app?user=app&password=«letme|inplease»&ssl=true",
            "DB_PASS=«q7Rt|2ZkP»",
            "ansible_become_pass: «q7Rt|2ZkP»",
            "Das Passwort für den Testserver lautet «q7Rt|2ZkP», bitte nicht weitergeben.",
            "mot de passe : «q7Rt|2ZkP»",
            "contraseña: «q7Rt|2ZkP»",
            "the root password was changed to «q7Rt|2ZkP» on Monday",
        ]
    ),
    "secret": _whole(
        [
            'client_secret = "«q7Rt2ZkP|9wXc4VbN»"',
            "SESSION_SECRET=«q7Rt2ZkP|9wXc4VbN8mLs»",
            "the webhook secret is «q7Rt2ZkP|9wXc4VbN8mLs»",
        ]
    ),
    "token": _whole(
        [
            f'token = "«{HEX}»"',
            f"GITEA_TOKEN: «{HEX}»",
            f"DISCORD_TOKEN=«{MIXED[:24]}.Gh4x2Q.{MIXED[:27]}»",
            f"upload --token «{MIXED}»",
            f"ENV APP_TOKEN «{MIXED}»",
            f"set -gx CI_TOKEN «{MIXED}»",
        ]
    ),
    "key": _whole(
        [
            f"api_key = '«{MIXED}»'",
            f"X-Api-Key: «{HEX}»",
            f"apikey=«{MIXED[:24]}»&q=1",
            f"/login?next=%2Fx%3Fapi_key%3D«{MIXED[:24]}»%26page%3D2",
            f"APP_KEY=«base64:{MIXED}»",
            f"SECRET_KEY_BASE_TEXT and ENCRYPTION_KEY_BASE=«{HEX}»",
            "ENCRYPTION_KEY: «0f1e2d3c-|4b5a-4968-8778-695a4b3c2d1e»",
        ]
    ),
    "credential": _whole([f"credentials: «{MIXED}»"]),
}

HARMLESS: list[str] = [
    "The commit is 4b825dc642cb6eb9a060e54bf8d69288fbee4904.",
    f"sha256:{HEX}{HEX}",
    f"ETag: {HEX}",
    "id 123e4567-e89b-12d3-a456-426614174000 was deleted",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "integrity sha512-oqVuAfXRKap7fdgcCY5uykM6+R9GqQ8K/uxy9rx7HNQlGYl1kPzQho1wx4JwY8wC+q7Rt2ZkP9wXc4VbN8mLs==",
    "version 3.11.4-rc1+build.20240518 of libssl1.1_1.1.1n-0+deb11u5_amd64.deb",
    "/usr/lib/python3/dist-packages/keyring/backends/SecretService.py",
    "https://user@example.org/path:8080@file and mailto:a@example.org",
    "http://[::1]:8080/a@b",
    "set OPENAI_API_KEY=YOUR_API_KEY and GITHUB_TOKEN=<your token>",
    "api_key = xxxxxxxxxxxxxxxxxxxxxxxx",
    "OPENAI_API_KEY=sk-...",
    "key sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "sk-ant-api03-your-key-goes-here-please-dear-reader",
    "password: ${DB_PASSWORD}",
    "password = os.environ['DB_PASSWORD']",
    "password = getpass.getpass()",
    "password = request.form.get('password1')",
    'password: str = "password"',
    "if password != confirm_password2: raise",
    'password = "***********"',
    "postgres://user:password@localhost/db",
    "postgres://user:${PASSWORD}@localhost/db",
    "postgres://<user>:<password>@localhost/db",
    "The password is base64-encoded and the token is sha256 hashed.",
    "The password is required. Your password was changed on Monday.",
    "password must have 8 characters; the password is case-sensitive",
    "Our secret to success is hard work; the key is to begin early.",
    "max_tokens: 4096, token_count = 1500, tokens = 32000",
    "token = tokenizer.encode(text2)",
    "token: BearerTokenAuthentication2",
    "a bearer of bad news, bearer authentication-is-required",
    "Authorization: Bearer <token>",
    "primary_key = user_account_identifier_2",
    "private key: see the folder keys/production-2024",
    "-----BEGIN PRIVATE KEY----- is how such a file begins",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQ\n-----END CERTIFICATE-----",
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC7VJTUt9Us8cKjMzEfYyjiWA4R4 deploy@host",
    "risk-adjusted-returns-2024-and-disk-partition-table-1",
    "npm_config_registry_and_npm_lifecycle_event_2",
    "publicKeyToken=1fc8b3b9a1e18e3b",
    "monkey=0123456789abcdef0123456789abcdef",
    "secret = None",
    "password: !vault |\n  $ANSIBLE_VAULT;1.1;AES256",
    "Das Passwort lautet nicht mehr wie früher, frag bitte die Abteilung 24. Passwort: siehe Tresor",
    "Le mot de passe est obligatoire et doit contenir 8 caractères. Mot de passe : oublié ?",
    "low_pass=20000hz, first_pass: render_2x, db_passes = 3",
    "connect(user=app, password=otherwise, token=somebody)",
    "Authorization: Basic authentication is enough; Authorization: token introspection",
    "DB_PASSWORD=required, PASSWORD=<PASSWORD>, PGPASSWORD=changeme and ?password=hidden",
    "The password was set to expire after 90 days and reset to whatever the user likes.",
    "token_type=bearer&expires_in=3600",
    "the API key is stored in the keyring",
    "[secret: GitHub token] and password = [secret: password]",
    "",
    "a",
    "pw",
]
