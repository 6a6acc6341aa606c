"""Places where a name announces a credential, and texts that only look like one.

Both were written before the rules for such places. No value is anybody's.
"""

import base64

STRONG = "Xk9mP2" + "vQ7rT4wZ"
SPECIAL = "q7!Vt" + "#9xLp&2"
WORDY = "Hunter2" + "-zebra"
PLAIN = "trombone" + "4471"
HEXES = "9f3c" + "a1d07be2" + "44c85d10"
LONG = "mQ3vX8rT" + "1kZ5bW7n" + "Y2pL6sD4" + "fG9hJ0cA"
GITHUB = "ghp_" + "a8Kd73Lq0Zx9VbN2mTr5YwP1sHc6Ue4JfGi8"[:36]
OPENAI = "sk-proj-" + LONG + "T3BlbkFJ" + LONG
AWS = "AKIA" + "Q5TZ7XN3" + "KWVB2MHD"
BODY = base64.b64encode(bytes(range(7, 187))).decode()


def armoured(kind: str, lead: str = "") -> bytes:
    """Return a PEM block of this kind."""
    lines = [BODY[start : start + 64] for start in range(0, len(BODY), 64)]
    return (f"{lead}-----BEGIN {kind}-----\n" + "\n".join(lines) + f"\n-----END {kind}-----\n").encode()


def encoded(kind: str, lead: str = "") -> str:
    """Return a PEM block of this kind in base64."""
    return base64.b64encode(armoured(kind, lead)).decode()


RSA = encoded("RSA " + "PRIVATE KEY")
EC = encoded("EC " + "PRIVATE KEY")
PKCS8 = encoded("PRIVATE " + "KEY")
SSH = encoded("OPENSSH " + "PRIVATE KEY")
ENCRYPTED = encoded("ENCRYPTED " + "PRIVATE KEY", "\n")
URLSAFE = base64.urlsafe_b64encode(armoured("PRIVATE " + "KEY")).decode().rstrip("=")
WRAPPED = "\n    ".join(RSA[start : start + 76] for start in range(0, len(RSA), 76))


def hidden(value: str, mark: str, at: int) -> str:
    """Return the value with an invisible mark inside."""
    return value[:at] + mark + value[at:]


# (text, what must not be left of it)
ANNOUNCED: list[tuple[str, str]] = [
    # base64 of a private key
    (f"users:\n- name: admin\n  user:\n    client-key-data: {RSA}\n", RSA),
    (f"kind: Secret\ntype: kubernetes.io/tls\ndata:\n  tls.key: {EC}\n", EC),
    (f'{{"data": {{"tls.key": "{PKCS8}"}}}}', PKCS8),
    (f"export DEPLOY_B64={SSH}", SSH),
    (f"echo {PKCS8} | base64 -d > /etc/ssl/site.pem", PKCS8),
    (f"data:\n  tls.key: |\n    {WRAPPED}\n", WRAPPED.rsplit("\n", 2)[1].strip()),
    (f"the signing thing is {URLSAFE} by the way", URLSAFE),
    (f"ssh-privatekey: {ENCRYPTED}", ENCRYPTED),
    # the short name `pass` beside a user
    (f"user: bob\npass: {WORDY}\n", WORDY),
    (f'{{"user": "bob", "pass": "{STRONG}"}}', STRONG),
    (f"username = bob\npass = {PLAIN}\n", PLAIN),
    (f"smtp:\n  auth:\n    user: 'mailer'\n    pass: '{SPECIAL}'\n", SPECIAL),
    (f"auth: {{ user: 'a@example.org', pass: '{WORDY}' }}", WORDY),
    (f"login: root / pass: {PLAIN}", PLAIN),
    (f"- email: eve@example.org\n  pass: {STRONG}\n", STRONG),
    (f"pass: {STRONG}\nuser: bob\n", STRONG),
    # words with numbers, of which none alone is a password
    ("Mapbox password: tiger7-blue-falcon", "falcon"),
    ("Stripe password is tR7-green-otter", "otter"),
    ("The key of the Mapbox account is password=tiger7-blue-falcon", "falcon"),
    # a column of a table
    (f"| user | password |\n|---|---|\n| bob | {WORDY} |\n", WORDY),
    (
        f"| Service | Login | **Password** |\n|:--|:-:|--:|\n| db | root | `{PLAIN}` |\n| web | www | {STRONG} |\n",
        STRONG,
    ),
    (f"| API key | Owner |\n| --- | --- |\n| {LONG} | ops |\n", LONG),
    (f"host | user | passwd\n--- | --- | ---\ndb1 | root | {SPECIAL}\n", SPECIAL),
    (f"user,password\nbob,{WORDY}\neve,{PLAIN}\n", PLAIN),
    (f"name\tpassword\tnote\nbob\t{STRONG}\told\n", STRONG),
    (f"| env | db_password | port |\n|-|-|-|\n| prod | {PLAIN} | 5432 |\n", PLAIN),
    (f"| Account | Client Secret |\n|---------|---------------|\n| acme | {HEXES} |\n", HEXES),
    # on the line after the announcement
    (f"The password is:\n{STRONG}\n", STRONG),
    (f"Password:\n\n{PLAIN}\n", PLAIN),
    (f"Here is the API key:\n```\n{LONG}\n```\n", LONG),
    (f"The new root password for db1 is\n\n    {SPECIAL}\n", SPECIAL),
    (f"password: >-\n  {WORDY}\n", WORDY),
    (f"**Client secret**:\n`{HEXES}`\n", HEXES),
    (f"## Password\n{STRONG}\n", STRONG),
    (f"the wifi passphrase is as follows:\n> {WORDY}\n", WORDY),
    # the default of something that is named
    (f'variable "db_password" {{\n  type = string\n  default = "{STRONG}"\n}}\n', STRONG),
    (f'variable "api_token" {{ default = "{LONG}" }}', LONG),
    (
        f'variable "admin_password" {{\n  description = "admin"\n  sensitive = true\n  default   = "{WORDY}"\n}}',
        WORDY,
    ),
    (f'{{"variable": {{"db_password": {{"default": "{PLAIN}"}}}}}}', PLAIN),
    (f'parser.add_argument("--password", default="{SPECIAL}")', SPECIAL),
    (f'@click.option("--api-key", default="{HEXES}", help="Key.")', HEXES),
    (f"Parameters:\n  DbPassword:\n    Type: String\n    Default: {STRONG}\n", STRONG),
    (f"env:\n  - name: DB_PASSWORD\n    value: {PLAIN}\n", PLAIN),
    # on a command line
    (f'gh secret set DEPLOY --body "{WORDY}"', WORDY),
    (f"gh secret set PYPI -b {STRONG} --repo acme/api", STRONG),
    (f"gh secret set PYPI --body={PLAIN}", PLAIN),
    (f"aws secretsmanager create-secret --name db --secret-string {WORDY}", WORDY),
    (f"aws ssm put-parameter --name /db/password --type SecureString --value {STRONG}", STRONG),
    (f"az keyvault secret set --vault-name v --name db --value '{SPECIAL}'", SPECIAL),
    (f"echo {PLAIN} | docker secret create db_password -", PLAIN),
    (f"kubectl create secret generic db --from-literal=root={STRONG}", STRONG),
    # something invisible inside
    (f"key {hidden(OPENAI, chr(0x200B), 20)}", OPENAI[30:]),
    (f"key {hidden(GITHUB, chr(0x200C), 9)}", GITHUB[9:]),
    (f"key {hidden(AWS, chr(0x200D), 4)}", AWS[4:]),
    (f"key {hidden(GITHUB, chr(0x2060), 2)}", GITHUB[4:]),
    (f"token {hidden(OPENAI, chr(0xFEFF), 3)}", OPENAI[8:]),
    (f"pass{chr(0xAD)}word: {hidden(STRONG, chr(0xAD), 6)}", STRONG[6:]),
    # names with something before or after
    (f"prod-password: {WORDY}", WORDY),
    (f"db.password={PLAIN}", PLAIN),
    (f"PasswordProd: {STRONG}", STRONG),
    (f"MY_SECRET_KEY_2={HEXES}", HEXES),
    (f"spring.datasource.password.primary = {PLAIN}", PLAIN),
    (f'"stagingDbPasswordOld": "{SPECIAL}"', SPECIAL),
    (f"redis-password-2: {PLAIN}", PLAIN),
    (f"acme.api-key.v2 = {LONG}", LONG),
]

PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(256))).decode()
PUBLIC = encoded("CERTIFICATE")
UUID = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
COMMIT = "d7dcf35a9e0b1c2d3e4f5a6b7c8d9e0f1a2b3c4d"

HARMLESS: list[str] = [
    "password: utf8-mixed-words",
    "The password is bcrypt12-hashed-now",
    "password=api-v2-token",
    "password: policy2-of-staging",
    # prose about credentials
    "the password is stored in the vault",
    "The password is: stored in the vault, ask ops.",
    "Password: see the vault.",
    "The password is:\nstored in 1Password, under Infrastructure.",
    "Passwords:\n- are never logged\n- expire after 90 days",
    "Secrets:\n\nThey live in Vault.",
    "The token is:\n\nsigned with RS256 and valid for an hour.",
    "Reset the password after the first login.",
    "My password: I forgot it again.",
    "We decided that the API key is rotated monthly.",
    "The secret is to start early.",
    "The key is under the mat.",
    "Token counts: 1200 in, 300 out",
    "Password policy: minimum 12 characters",
    "password length: 16",
    "password_min_length = 12",
    "max_tokens: 4096",
    "token_limit=8192",
    "tokens_per_second: 52.4",
    "The user bob could not pass: the gate was closed.",
    # pass that is no password
    "pass: 12 tests, fail: 3",
    "pass: 12\nfail: 3\n",
    "user: bob\nresult: pass\n",
    "user tests\npass: 41\n",
    "try:\n    run()\nexcept OSError:\n    pass\n",
    "class Empty: pass",
    "user: bob\npass: true\n",
    "first pass: collect, second pass: sweep",
    "proxy_pass: http://127.0.0.1:8080",
    "proxy_pass http://backend_pool;",
    "render pass: opaque\nuser: camera\n",
    # columns that hold no credential
    "| test | passed | failed |\n|---|---|---|\n| unit_suite1 | 412 | 3 |\n",
    "| test | passed |\n|---|---|\n| login_flow2 | yes-all4of4 |\n",
    "| setting | password length |\n|---|---|\n| admin | 16 |\n",
    "| Option | Password |\n|---|---|\n| default | required |\n| guest | none |\n",
    "| user | password |\n|---|---|\n| bob | ******** |\n| eve | <your-password> |\n",
    "| user | password hash |\n|---|---|\n| bob | see shadow |\n",
    "| model | tokens | price |\n|---|---|---|\n| large-2024b | 128000 | 15.00 |\n",
    "| key | value |\n|---|---|\n| region | eu-west-1b |\n| size | m5.2xlarge |\n",
    "| primary key | type |\n|---|---|\n| user_id2 | bigint |\n",
    "| method | auth token | rate |\n|---|---|---|\n| GET /v2/items | optional | 60/min |\n",
    "name,passed,seconds\ntest_login2,yes,0.31\n",
    # defaults of other variables
    'variable "region" {\n  default = "eu-west-1b"\n}\n',
    'variable "retries" { default = 30 }',
    "timeout_s: default = 30",
    'variable "password_length" {\n  default = 24\n}\n',
    'variable "db_password" {\n  type = string\n  sensitive = true\n}\n',
    'variable "db_password" { default = "" }',
    'variable "token" {}\nvariable "zone" {\n  default = "eu-west-1b-2"\n}\n',
    'parser.add_argument("--password", default=None, help="Asked for when absent.")',
    'parser.add_argument("--password-file", default="/run/secrets/db2")',
    # references, code, placeholders
    'password = os.environ["DB_PASSWORD"]',
    "password: str",
    "password: str | None = None",
    "def login(user: str, password: str) -> Session2: ...",
    "user.getPassword()",
    "const password = getPassword();",
    "password = self.settings.password2",
    'token = request.headers["Authorization"]',
    "secret: ${{ secrets.DEPLOY_KEY2 }}",
    "password: ${DB_PASSWORD}",
    "password=$DB_PASSWORD2",
    "password: {{ vault.db_password2 }}",
    "password: !vault prod/db",
    "password: <your-password>",
    "password: your_password_here",
    "password: ********",
    "password: xxxxxxxx",
    "api_key = YOUR_API_KEY",
    "gh secret set DEPLOY_KEY2 < deploy_key.txt",
    'gh secret set DEPLOY_KEY2 --body "$DEPLOY_KEY2"',
    'gh pr create --title "Rotate" --body "Rotates the signing2 key"',
    'gh issue create --body "v2.14.0-rc1-build77"',
    "aws secretsmanager get-secret-value --secret-id prod/db2",
    "kubectl get secret db-credentials2 -o yaml",
    "git commit -m 'Password field2'",
    # identifiers and data
    f"id: {UUID}",
    f"commit {COMMIT}",
    f"revision: {COMMIT}",
    f"image: data:image/png;base64,{PICTURE}",
    f"certificate-authority-data: {PUBLIC}",
    f"tls.crt: {PUBLIC}",
    "keyboard: qwertz-2024-de105",
    "monkey: banana-7731x",
    "passenger-id: 9f3ca1d07be244",
    "secretary: m.jones@example.org",
    "tokenizer: cl100k_base-v2",
    "compass.heading = 271.5x12",
    "primary_key: user_id2024",
    "sort-key: created_at2",
    "keyName: sessionKeyA1",
    "publicKeyToken=b77a5c561934e089",
    # invisible characters that are in ordinary texts
    f"Wort{chr(0xAD)}trennung und Zeilen{chr(0xAD)}umbruch",
    f"{chr(0xFEFF)}# Title\n\nThe password is stored in the vault.",
    f"family: {chr(0x1F468)}{chr(0x200D)}{chr(0x1F469)}{chr(0x200D)}{chr(0x1F467)} and a note",
    f"a{chr(0x200B)}very{chr(0x200B)}long{chr(0x200B)}path",
]
