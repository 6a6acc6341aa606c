"""Half an emoji in JSON: hosts in JavaScript that cut a text within a pair write a surrogate without its other half.

No strict reader takes such an escape (`\\ud83d`). It becomes the replacement character, so that the rest arrives.
"""

from memoryd.client.patterns import compile_late

_ESCAPE = compile_late(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)


def replace_lone_surrogates(text: str) -> str:
    """Return JSON without escapes of surrogates that are no pair."""
    return _ESCAPE.sub(lambda found: r"\ufffd" if found[1] else found[0], text) if r"\u" in text else text
