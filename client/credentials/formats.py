"""Formats of credentials that are recognised by themselves: one row for each, as the vendor documents it.

`anchors` are literal parts of which every such credential has one; a pattern is tried only where one occurs (one that
is `free` begins before its anchor and is searched for). Anchors of a pattern that ignores case are in lower case. The
group `secret`, where a pattern has one, is what is taken out, nothing where it did not take part; otherwise the whole
match is, or what follows it up to `end_of_rest`. A row that is not `loose` is one long run of characters (`RUN_CHARS`),
so that text without such a run need not be looked through for it. No pattern can backtrack far: each is a literal
followed by one run, or by parts that cannot overlap; one whose runs may have its anchor in them also matches what is
none, so as not to begin in it again.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from memoryd.client.credentials import armour
from memoryd.client.credentials.usage import USES
from memoryd.client.patterns import compile_late


class Format(NamedTuple):
    """One shape: what it is called, what every one of them contains, the pattern, and where that is documented."""

    name: str
    anchors: tuple[str, ...]
    pattern: re.Pattern[str]
    source: str
    free: bool = False
    loose: bool = False
    folded: bool = False  # case does not matter
    end_of_rest: Callable[[str, int], int] | None = None

    def span(self, text: str, match: re.Match[str]) -> tuple[int, int]:
        """Return where what is taken out begins and ends; where there is nothing, it ends where it begins."""
        if self.end_of_rest:
            return match.end(), self.end_of_rest(text, match.end())
        return match.span("secret" if "secret" in self.pattern.groupindex else 0)


def _make(
    name: str, anchors: str, pattern: str, source: str, flags: int = 0, free: bool = False, loose: bool = False
) -> Format:
    if pattern.startswith(r"\b"):
        pattern = _BEGINNING + pattern.removeprefix(r"\b")
    return Format(
        name, tuple(anchors.split()), compile_late(pattern, flags), source, free, loose, flags == re.IGNORECASE
    )


_BEGINNING = r"(?:\b|(?<=%[0-9A-F]{2}))"  # in an encoded address a letter may stand before it: `%3D`
MIN_RUN = 16
RUN_CHARS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+/=.~%:?&-"


FORMATS: tuple[Format, ...] = (
    _make(
        "private key", "-----BEGIN", armour.BEGIN, "RFC 7468, RFC 1421, RFC 9580, OpenSSH PROTOCOL.key", loose=True
    )._replace(end_of_rest=armour.end_of_key),
    _make(
        "private key",
        "Private-Lines:",
        r"Private-Lines: \d{1,3}(?P<secret>(?:\r?\n[A-Za-z0-9+/=]{16,})+(?:\r?\n[A-Za-z0-9+/=]{1,15}(?=\r?\n))?)",
        "PuTTY manual, appendix C: PPK file format",
        loose=True,
    ),
    _make(
        "private key",
        "LS0tLS1CRUdJTi 0tLS0tQkVHSU4g tLS0tLUJFR0lOI",
        r"(?:LS0tLS1CRUdJTi|0tLS0tQkVHSU4g|tLS0tLUJFR0lOI)[A-Za-z0-9+/_-]{0,24}?(?:UFJJVkFURSBLRV|BSSVZBVEUgS0|QUklWQVRFIEtFW)"
        r"[A-Za-z0-9+/_-]{20,20000}+(?:(?:\\n|\r?\n)[ \t]{0,40}+(?=[A-Za-z+/]{0,400}\d)[A-Za-z0-9+/]{16,400}+"
        r"(?=[\s\\\"'=]|\Z))*+(?:(?:\\n|\r?\n)[ \t]{0,40}+[A-Za-z0-9+/]{1,15}(?==))?={0,2}",
        "RFC 7468, encoded once more: Kubernetes docs, kubeconfig and TLS secrets",
    ),
    _make("age key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{58}", "C2SP age specification"),
    _make(
        "AWS key pair",
        "AKIA ASIA ABIA ACCA",
        r"\b(?P<secret>A(?:KI|SI|BI|CC)A[A-Z0-9]{16}[\s,:;|/\"']{1,4}[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        "AWS IAM user guide: access keys",
    ),
    _make(
        "AWS access key",
        "AKIA ASIA ABIA ACCA",
        r"\bA(?:KI|SI|BI|CC)A[A-Z0-9]{16}\b",
        "AWS IAM user guide: unique identifiers",
    ),
    _make(
        "AWS secret key",
        "secret_access_key secretaccesskey",
        r"secret_?access_?key[\\\"']{0,2}\s{0,3}[:=]\s{0,3}[\\\"']{0,2}"
        r"(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        "AWS IAM user guide: access keys",
        re.IGNORECASE,
        loose=True,
    ),
    _make("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"\bgh[pousr]_[A-Za-z0-9]{36,255}", "GitHub docs: token formats"),
    _make("GitHub token", "github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{36,255}", "GitHub docs: token formats"),
    _make(
        "GitLab token",
        "glpat- gldt- glrt- glcbt- glptt- glft- glsoat- glagent- glimt-",
        r"\bgl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt)-[A-Za-z0-9_.-]{20,300}",
        "GitLab docs: token overview, prefixes",
    ),
    _make("Anthropic key", "sk-ant-", r"\bsk-ant-[a-z]{2,10}\d{2}-[\w-]{24,200}", "Anthropic console: API keys"),
    _make("OpenRouter key", "sk-or-", r"\bsk-or-v1-[0-9a-f]{64}", "OpenRouter docs: authentication"),
    _make(
        "OpenAI key",
        "sk-proj- sk-svcacct- sk-admin- sk-None-",
        r"\bsk-(?:proj|svcacct|admin|None)-[\w-]{24,300}",
        "OpenAI platform docs: API keys",
    ),
    _make("API key", "sk-", r"\bsk-(?=[A-Za-z0-9]{0,31}\d)[A-Za-z0-9]{32,128}\b", "OpenAI (first form), DeepSeek"),
    _make("Langfuse key", "sk-lf-", r"\bsk-lf-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "Langfuse docs: API keys"),
    _make("LangSmith key", "lsv2_", r"\blsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}", "LangSmith docs: API keys"),
    _make("Groq key", "gsk_", r"\bgsk_[A-Za-z0-9]{40,64}\b", "Groq console: API keys"),
    _make("xAI key", "xai-", r"\bxai-[A-Za-z0-9]{60,100}\b", "xAI docs: API keys"),
    _make("Perplexity key", "pplx-", r"\bpplx-[A-Za-z0-9]{40,64}\b", "Perplexity docs: API keys"),
    _make("Tavily key", "tvly-", r"\btvly-(?:dev-|prod-)?[A-Za-z0-9]{28,40}\b", "Tavily docs: API keys"),
    _make(
        "Hugging Face token",
        "hf_ api_org_",
        r"\b(?:hf|api_org)_[A-Za-z0-9]{34,40}\b",
        "Hugging Face docs: user access tokens",
        loose=True,  # most are of letters alone
    ),
    _make("Replicate token", "r8_", r"\br8_[A-Za-z0-9]{37,40}\b", "Replicate docs: API tokens"),
    _make("Google API key", "AIza", r"\bAIza[\w-]{35}(?![\w-])", "Google Cloud docs: API keys"),
    _make("Google access token", "ya29.", r"\bya29\.[\w-]{30,}", "Google identity docs: OAuth 2.0"),
    _make("Google client secret", "GOCSPX-", r"\bGOCSPX-[\w-]{28}", "Google identity docs: OAuth clients"),
    _make(
        "Azure storage key",
        "AccountKey=",
        r"AccountKey=(?P<secret>[A-Za-z0-9+/]{86}==)",
        "Azure docs: connection strings",
    ),
    _make(
        "Azure client secret",
        "Q~",
        r"(?<![\w~.-])[\w~.-]{3}\dQ~[\w~.-]{31,34}",
        "Microsoft Entra docs: secrets",
        free=True,
    ),
    _make(
        "Stripe key",
        "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_",
        r"\b[sr]k_(?:live|test|prod)_[A-Za-z0-9]{16,255}",
        "Stripe docs",
    ),
    _make("webhook secret", "whsec_", r"\bwhsec_[A-Za-z0-9+/=]{24,}", "Standard Webhooks specification, Stripe docs"),
    _make(
        "Slack token",
        "xoxb- xoxp- xoxa- xoxe- xoxs- xoxr- xoxo-",
        r"\bxox[a-z]-[A-Za-z0-9-]{16,}",
        "Slack docs: tokens",
    ),
    _make("Slack token", "xapp-", r"\bxapp-\d-[A-Za-z0-9-]{20,}", "Slack docs: app-level tokens"),
    _make(
        "Slack webhook",
        "hooks.slack.com/",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9_/]{24,})",
        "Slack docs: incoming webhooks",
    ),
    _make(
        "Discord webhook",
        "/api/webhooks/",
        r"/api/webhooks/\d{15,20}/(?P<secret>[\w-]{60,80})",
        "Discord docs: webhooks",
    ),
    _make(
        "Telegram bot token",
        ":AA",
        r"\b\d{8,10}:AA[\w-]{33}(?![\w-])",
        "Telegram Bot API: authorizing your bot",
        free=True,
    ),
    _make("SendGrid key", "SG.", r"\bSG\.[\w=-]{20,24}\.[\w=-]{39,50}", "SendGrid docs: API keys"),
    _make("Mailgun key", "key-", r"\bkey-[0-9a-f]{32}\b", "Mailgun docs: API keys"),
    _make(
        "Mailchimp key",
        "-us1 -us2 -us3 -us4 -us5 -us6 -us7 -us8 -us9",
        r"\b[0-9a-f]{32}-us\d{1,2}\b",
        "Mailchimp docs: API keys",
        free=True,
    ),
    _make("npm token", "npm_", r"\bnpm_[A-Za-z0-9]{36}\b", "npm docs: access tokens"),
    _make("PyPI token", "pypi-", r"\bpypi-Ag[\w-]{50,}", "PyPI help: API tokens"),
    _make("RubyGems key", "rubygems_", r"\brubygems_[0-9a-f]{48}\b", "RubyGems guides: API keys"),
    _make("Docker token", "dckr_", r"\bdckr_(?:pat|oat)_[\w-]{20,}", "Docker docs: access tokens"),
    _make("DigitalOcean token", "dop_v1_ doo_v1_ dor_v1_", r"\bdo[opr]_v1_[0-9a-f]{64}", "DigitalOcean docs: tokens"),
    _make("Vault token", "hvs. hvb. hvr.", r"\bhv[sbr]\.[\w-]{24,}", "HashiCorp Vault docs: tokens"),
    _make(
        "Terraform token",
        ".atlasv1.",
        r"\b[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{50,}",
        "HCP Terraform docs: API tokens",
        free=True,
    ),
    _make("Databricks token", "dapi", r"\bdapi[0-9a-f]{32}(?:-\d)?\b", "Databricks docs: access tokens"),
    _make("Atlassian token", "ATATT3 ATCTT3", r"\bAT[AC]TT3[\w=-]{60,}", "Atlassian docs: API tokens"),
    _make("Linear key", "lin_api_ lin_oauth_", r"\blin_(?:api|oauth)_[A-Za-z0-9]{40,64}\b", "Linear docs: API keys"),
    _make("Notion token", "ntn_", r"\bntn_[A-Za-z0-9]{40,60}\b", "Notion docs: authentication"),
    _make("Figma token", "figd_", r"\bfigd_[\w-]{38,44}", "Figma docs: personal access tokens"),
    _make("Grafana token", "glsa_ glc_", r"\bgl(?:sa|c)_[A-Za-z0-9+/=_]{32,}", "Grafana docs: service accounts"),
    _make("New Relic key", "NRAK-", r"\bNRAK-[A-Z0-9]{27}\b", "New Relic docs: API keys"),
    _make("Sentry token", "sntrys_ sntryu_", r"\bsntry[su]_[A-Za-z0-9+/=_]{40,}", "Sentry docs: auth tokens"),
    _make("Supabase key", "sbp_ sb_secret_", r"\b(?:sbp_[0-9a-f]{40}|sb_secret_[\w-]{24,})", "Supabase docs: API keys"),
    _make("Netlify token", "nfp_", r"\bnfp_[A-Za-z0-9]{36,44}\b", "Netlify docs: access tokens"),
    _make(
        "PlanetScale token", "pscale_", r"\bpscale_(?:tkn|pw|oauth)_[\w=.-]{32,64}", "PlanetScale docs: service tokens"
    ),
    _make("Postman key", "PMAK-", r"\bPMAK-[0-9a-f]{24}-[0-9a-f]{34}\b", "Postman docs: API keys"),
    _make("Airtable token", "pat", r"\bpat[A-Za-z0-9]{14}\.[0-9a-f]{64}\b", "Airtable docs: personal access tokens"),
    _make("Doppler token", "dp.", r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{40,}", "Doppler docs: tokens"),
    _make("Shopify token", "shpat_ shpca_ shppa_ shpss_", r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}\b", "Shopify docs"),
    _make("Square token", "sq0atp- sq0csp-", r"\bsq0(?:atp|csp)-[\w-]{22,43}", "Square docs: access tokens"),
    _make("Pinecone key", "pcsk_", r"\bpcsk_[A-Za-z0-9_]{50,80}", "Pinecone docs: API keys"),
    _make("memoryd token", "mt_", r"\bmt_[\w-]{43}(?![\w-])", "this project: tokens that bind a connection"),
    _make(
        "JWT",
        "eyJ",
        r"\b(?:(?P<secret>eyJ[\w-]{10,}+\.eyJ[\w-]{8,}+\.[\w-]{16,})|eyJ[\w-]{10,}+)",
        "RFC 7519, RFC 7515",
    ),
    _make(
        "bearer token",
        "bearer",
        r"\bbearer:?[ \t]+[\"'`]?(?P<secret>(?=[A-Za-z._~+/-]{0,200}\d)[A-Za-z0-9._~+/-]{16,}=*)",
        "RFC 6750",
        re.IGNORECASE,
        loose=True,
    ),
    _make(
        "basic authorization",
        "authorization",
        r"\bauthorization[\\\"'\]]{0,4}[ \t]{0,3}[:=,][ \t]{0,3}[\\\"'`]{0,2}(?:basic|token)[ \t]+"
        r"(?P<secret>(?=[A-Za-z0-9+/](?-i:[a-z]*[A-Z0-9]))[A-Za-z0-9+/]{8,}=*)",
        "RFC 7617",
        re.IGNORECASE,
        loose=True,
    ),
    _make(
        "password in a URL",
        "://",
        r"://[^\s/:@\"'<>]{0,100}:(?P<secret>[^\s/\"'<>]{3,200})@(?=[\w\[{.$-])",
        "RFC 3986 section 3.2.1",
        loose=True,
    ),
    _make(
        "signed URL",
        "?sig= &sig= ?x-amz-signature= &x-amz-signature= &x-goog-signature= &signature= ?signature=",
        r"[?&](?:sig|X-Amz-Signature|X-Goog-Signature|Signature)=(?P<secret>[A-Za-z0-9%+/_-]{40,600}=*)",
        "Azure docs: SAS; AWS docs: query string authentication; Google Cloud docs: signed URLs",
        re.IGNORECASE,
    ),
    _make(
        "Authress key",
        ".acc_ .acc-",
        r"(?<![\w.])(?:sc|ext|scauth|authress)_\w{5,30}\.\w{4,6}\.acc[_-][\w-]{10,32}\.[\w+/=-]{30,120}",
        "Authress docs: access keys",
        free=True,
    ),
    _make("MaxMind key", "_mmk", r"\b[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk\b", "MaxMind docs: license keys", free=True),
    _make("OnePassword key", "A3-", r"\bA3-[A-Z0-9]{6}(?:-[A-Z0-9]{5,11}){4,5}(?![\w-])", "1Password docs: Secret Key"),
    _make("OnePassword token", "ops_eyJ", r"\bops_eyJ[\w+/=-]{100,1000}", "1Password docs: service accounts"),
    _make("Adobe secret", "p8e-", r"\bp8e-[a-zA-Z0-9_-]{32}(?![\w-])", "Adobe docs: OAuth credentials"),
    _make("Alibaba access key", "LTAI", r"\bLTAI[A-Za-z0-9]{17,21}\b", "Alibaba Cloud docs: AccessKey pair"),
    _make(
        "Artifactory token",
        "AKC cmVmd",
        r"\b(?:AKC[a-zA-Z0-9]{10,80}|cmVmd[A-Za-z0-9]{59})\b",
        "JFrog docs: access tokens",
    ),
    _make(
        "Bedrock key",
        "ABSK bedrock-api-key-",
        r"\b(?:ABSK[\w+/]{40,300}|bedrock-api-key-[\w+/]{40,2000})={0,2}",
        "Amazon Bedrock docs: API keys",
    ),
    _make("ClickHouse key", "4b1d", r"\b4b1d[A-Za-z0-9]{38}\b", "ClickHouse Cloud docs: API keys"),
    _make("Clojars token", "CLOJARS_", r"\bCLOJARS_[a-z0-9]{60}\b", "Clojars wiki: deploy tokens"),
    _make("Cloudflare key", "v1.0-", r"\bv1\.0-[a-f0-9]{24}-[a-f0-9]{146}\b", "Cloudflare docs: Origin CA keys"),
    _make("Duffel token", "duffel_", r"\bduffel_(?:test|live)_[\w=-]{43}", "Duffel docs: access tokens"),
    _make(
        "Dynatrace token",
        "dt0c01.",
        r"\bdt0[a-z]\d\d\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}\b",
        "Dynatrace docs: access tokens",
    ),
    _make("EasyPost key", "EZAK EZTK", r"\bEZ[AT]K[A-Za-z0-9]{54}\b", "EasyPost docs: authentication"),
    _make("Facebook token", "EAA", r"\bEAA[MC][A-Za-z0-9]{80,300}", "Meta docs: access tokens"),
    _make("Flutterwave key", "FLWSECK", r"\bFLWSECK(?:_TEST)?-[a-zA-Z0-9]{12,40}(?:-X)?", "Flutterwave docs: API keys"),
    _make(
        "Fly.io token",
        "fo1_ fm1 fm2_",
        r"\b(?:fo1_[\w-]{43}|fm(?:1[ar]|2)_[A-Za-z0-9+/]{80,1000}=*)",
        "Fly.io docs: access tokens",
    ),
    _make("Frame.io token", "fio-u-", r"\bfio-u-[\w=-]{64}", "Frame.io docs: developer tokens"),
    _make(
        "GitLab token",
        "glffct- gloas- glrtr- GR1348941",
        r"\b(?:gl(?:ffct|oas|rtr)-|GR1348941)[\w-]{20,300}",
        "GitLab docs: token overview, prefixes",
    ),
    _make("Grafana token", "eyJrIjoi", r"\beyJrIjoi[A-Za-z0-9]{50,400}={0,3}", "Grafana docs: API keys"),
    _make(
        "Harness token",
        "pat. sat.",
        r"\b[ps]at\.[\w-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}\b",
        "Harness docs: API keys",
    ),
    _make("Heroku key", "HRKU-", r"\bHRKU-AA[\w-]{58}", "Heroku docs: API tokens"),
    _make("Infracost key", "ico-", r"\bico-[a-zA-Z0-9]{32}\b", "Infracost docs: API keys"),
    _make("42 secret", "s-s4t2", r"\bs-s4t2(?:af|ud)-[a-f0-9]{64}\b", "42 API docs"),
    _make("JWT", "ZXlK", r"\bZXlK[A-Za-z0-9+/]{60,4000}={0,2}", "RFC 7519, encoded once more"),
    _make("Octopus key", "API-", r"\bAPI-(?=[A-Z]{0,25}\d)[A-Z0-9]{26,32}\b", "Octopus Deploy docs: API keys"),
    _make("OpenShift token", "sha256~", r"\bsha256~[\w-]{43}(?![\w-])", "OpenShift docs: OAuth tokens"),
    _make("Prefect key", "pnu_ pnb_", r"\bpn[ub]_[a-zA-Z0-9]{36}\b", "Prefect docs: API keys"),
    _make("Pulumi token", "pul-", r"\bpul-[a-f0-9]{40}\b", "Pulumi docs: access tokens"),
    _make("ReadMe key", "rdme_", r"\brdme_[a-z0-9]{70}\b", "ReadMe docs: API keys"),
    _make("Scalingo token", "tk-us-", r"\btk-us-[\w-]{48}(?![\w-])", "Scalingo docs: API tokens"),
    _make("Brevo key", "xkeysib-", r"\bxkeysib-[a-f0-9]{64}-[a-zA-Z0-9]{16}\b", "Brevo docs: API keys"),
    _make(
        "SettleMint token",
        "sm_aat_ sm_pat_ sm_sat_",
        r"\bsm_[aps]at_[a-zA-Z0-9]{16}\b",
        "SettleMint docs: access tokens",
    ),
    _make("Shippo token", "shippo_", r"\bshippo_(?:live|test)_[a-fA-F0-9]{40}\b", "Shippo docs: authentication"),
    _make("Slack token", "xoxe.xox", r"\bxoxe\.xox[bp]-\d-[A-Za-z0-9-]{100,300}", "Slack docs: token rotation"),
    _make(
        "SoftLayer key",
        "softlayer.com/soap/",
        r"softlayer\.com/soap/v3(?:\.1)?/(?P<secret>[a-z0-9]{64})\b",
        "IBM Cloud docs: SoftLayer API",
    ),
    _make(
        "Sourcegraph token",
        "sgp_",
        r"\bsgp_(?:[a-zA-Z0-9]{5,16}_)?[a-fA-F0-9]{40}\b",
        "Sourcegraph docs: access tokens",
    ),
    _make("Square token", "EAAA", r"\bEAAA[\w-]{56,60}(?![\w-])", "Square docs: access tokens"),
    _make(
        "Teams webhook",
        ".webhook.office.com/",
        r"\.webhook\.office\.com/webhookb2/(?P<secret>[\w@/-]{90,200})",
        "Microsoft Teams docs: webhooks",
    ),
    _make("Twilio key", "SK", r"\bSK[a-fA-F0-9]{32}\b", "Twilio docs: API keys"),
    *(
        Format(name, anchors, compile_late(pattern, flags), source, free, True, flags == re.IGNORECASE)
        for name, anchors, pattern, source, flags, free in USES
    ),
)
