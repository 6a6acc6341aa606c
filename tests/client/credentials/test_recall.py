"""How many of the ways to write a key beside its name are found, and how often other text is taken for one.

`python tests/client/credentials/test_recall.py` prints both figures; the false alarms are those of the files that
`test_false_alarms` reads.
"""

import random
import string

import test_false_alarms
from credential_examples import HOLDING, unmark

from memoryd.client.credentials import find, redact

# A key in files of settings, in code and in data: NAME is its name, VALUE the key.
WAYS = (
    *('NAME = "VALUE"', 'NAME="VALUE"', "NAME=VALUE", "NAME = VALUE", "NAME: VALUE", "NAME: 'VALUE'", 'NAME: "VALUE"'),
    *('{\n  "NAME": "VALUE"\n}', '\\{ \\"NAME\\": \\"VALUE\\" \\}', '{"name": "NAME", "value": "VALUE"}'),
    *("<NAME>VALUE</NAME>", "<NAME>\n    VALUE\n</NAME>", '<add key="NAME" value="VALUE" />'),
    *("NAME: |\n  VALUE", "NAME: >-\n  VALUE", "- name: NAME\n  value: VALUE"),
    *(
        'string NAME = "VALUE";',
        'var NAME string = "VALUE"',
        'NAME := "VALUE"',
        "NAME := `VALUE`",
        'NAME: str = "VALUE"',
    ),
    *('$NAME .= "VALUE"', '"NAME" => "VALUE"', 'NAME = @"VALUE";', "NAME = b'VALUE'", 'set("NAME", "VALUE")'),
    *('NAME ::= "VALUE"', 'NAME :::= "VALUE"', 'NAME ?= "VALUE"', 'NAME += "VALUE"', "NAME,VALUE,", "| NAME | VALUE |"),
    *(
        "export NAME=VALUE",
        "ENV NAME VALUE",
        "run --NAME VALUE",
        "run --NAME=VALUE",
        "the NAME is VALUE.",
        "&NAME=VALUE",
    ),
)
NAMES = ("acme_token", "acmeToken", "ACME_API_KEY", "acme-api-key", "clientSecret", "ACME_SECRET", "auth_token")
FORMS = (
    (string.hexdigits[:16], 32),
    (string.ascii_letters + string.digits, 24),
    (string.ascii_letters + string.digits, 40),
    (string.ascii_lowercase + string.digits, 32),
    (string.ascii_letters + string.digits + "_-", 43),
)


def write_keys() -> list[tuple[str, str]]:
    """Return texts with a key, and the key: each way with each name and each form."""
    drawn = random.Random(20)
    made = []
    for way in WAYS:
        for name in NAMES:
            for chars, length in FORMS:
                drawn_chars = drawn.choices(chars, k=length - 4)
                value = drawn.choice("abcdef") + "4" + "".join(drawn_chars) + "2e"  # some have no digit otherwise
                made.append((way.replace("NAME", name).replace("VALUE", value), value))
    return made


def test_a_key_beside_its_name_is_found_however_it_is_written() -> None:
    missed = [text for text, value in write_keys() if value in redact(text)]
    assert missed == []


def _print_figures() -> None:
    keys, examples = write_keys(), [unmark(marked) for _, marked in HOLDING]
    found = sum(value not in redact(text) for text, value in keys)
    whole = sum(map(bool, map(find, examples)))
    texts = test_false_alarms.read_all()
    size, alarms = sum(map(len, texts.values())) / 1e6, test_false_alarms.alarms(texts)
    print(
        f"found: {found} of {len(keys)} keys beside a name,"
        f" {whole} of {len(examples)} examples of {len(dict(HOLDING))} kinds"
    )
    print(f"false alarms: {len(alarms)} in {size:.1f} MB, {len(alarms) / size:.2f} per MB", *alarms, sep="\n")


if __name__ == "__main__":
    _print_figures()
