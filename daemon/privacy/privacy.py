"""Remove credentials and private passages from calls before anything is stored.

`dispatch` passes every call through here, so a credential cannot get into a row, its history, the journal, the full
text, the list of skipped turns, a trace, or a file that a call writes. Calls that store text have a field
`allow_secrets`. Queries and tasks, which traces contain, are redacted too, but never refused. Identifiers (ids,
namespaces, paths of workspaces) are not changed; a key that contains a credential is refused.

Files of workspaces belong to their owner and are not changed, but their text in the index is redacted
(`workspaces/documents/files.py`). The removed texts are kept nowhere. Passages between `<private>` and `</private>` are
removed from every call, whatever the settings and the call say about credentials, and never lead to a refusal.
"""

from collections import Counter
from typing import Any, TypeVar

import msgspec

from memoryd.client.credentials import allow_list, describe_kinds, redact, redact_tree
from memoryd.client.credentials.private import KIND, cut_private, cut_private_tree
from memoryd.client.errors import Invalid
from memoryd.client.protocol import Call, Redacted
from memoryd.daemon.config import PrivacyConfig
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.limits import check_depth

# Fields of calls that store nothing, which traces and lists contain.
ASKING = ("query", "task", "prompt", "session")
NAMES = frozenset(
    "id ids namespace below clears reach workspace file supersedes superseded_by role tier outcome origin target kind"
    " by".split()
)

C = TypeVar("C", bound=Call[Any])
V = TypeVar("V", bound=msgspec.Struct | dict[str, Any])


class Privacy:
    """Applies the settings of one daemon for credentials and private passages."""

    def __init__(self, config: PrivacyConfig) -> None:
        self.mode = config.secrets
        self.allowed = allow_list(config.allow)

    def clean(self, call: C) -> tuple[C, Redacted]:
        """Return a call without private passages and credentials, and the kinds of the removed texts.

        Raise `Invalid` if the call contains credentials and the settings refuse them.
        """
        kinds: Counter[str] = Counter()
        allows: bool | None = getattr(call, "allow_secrets", None)
        if allows is None:
            changes = {}  # it stores nothing, and is never refused
            for name in ASKING:
                value = getattr(call, name, None)
                if isinstance(value, str) and (new := self._clean_text(value, None, self.mode == "allow")) is not value:
                    changes[name] = new
            return (msgspec.structs.replace(call, **changes) if changes else call), {}
        clean: C = self._clean(call, kinds, allows or self.mode == "allow")
        if self.mode == "refuse" and (found := Counter({kind: n for kind, n in kinds.items() if kind != KIND})):
            raise _refuse("It", "Remove it", found)
        return clean, dict(kinds)

    def strip(self, call: C) -> C:
        """Return a call to send to another machine: without credentials, whatever the settings say."""
        clean: C = self._clean(call, Counter(), False)
        return clean

    def text(self, text: str) -> str:
        """Return the text of a file for the index: without credentials, with the same number of lines."""
        return text if self.mode == "allow" else redact(text, allowed=self.allowed, keep_lines=True)

    def _clean_text(self, text: str, kinds: Counter[str] | None, allows: bool) -> str:
        text = cut_private(text, kinds)
        return text if allows else redact(text, kinds, self.allowed)

    def _clean(self, value: Any, kinds: Counter[str], allows: bool) -> Any:
        """Return a value without private passages and, unless they are allowed, without credentials.

        If it has none, the same object is returned.
        """
        if isinstance(value, str):
            return self._clean_text(value, kinds, allows)
        if isinstance(value, msgspec.Struct):
            changes = {}
            for name in value.__struct_fields__:
                old = getattr(value, name)
                if name == "key":
                    if old and not allows:  # two keys with credentials could become the same
                        found: Counter[str] = Counter()
                        redact(old, found, self.allowed)
                        if found:
                            raise _refuse("The key", "Choose another key", found)
                elif name not in NAMES and isinstance(old, str | list | dict | msgspec.Struct) and old:
                    new = self._clean(old, kinds, allows)
                    if new is not old:
                        changes[name] = new
            return msgspec.structs.replace(value, **changes) if changes else value
        if isinstance(value, list):
            entries = []
            for number, item in enumerate(value):
                try:
                    entries.append(self._clean(item, kinds, allows))
                except Invalid as error:
                    raise Invalid(f"Memory {number}: {error}", {"index": number}) from None
            return entries if any(new is not old for new, old in zip(entries, value, strict=True)) else value
        if isinstance(value, dict):
            check_depth(value)
            before = kinds.total()
            tree = cut_private_tree(value, kinds)
            if not allows:
                tree = redact_tree(tree, kinds, self.allowed)
            return value if kinds.total() == before else tree
        return value


def find_privacy(core: Core) -> Privacy:
    """Return the `Privacy` of a daemon."""
    return core.state(Privacy, core.config.privacy)


def _refuse(what: str, advice: str, kinds: Counter[str]) -> Invalid:
    sentence = f"{what} contains what looks like {describe_kinds(kinds)}, so nothing was stored. {advice}, or store it"
    return Invalid(
        f"{sentence} as it is with allow_secrets=True (`--allow-secrets` in memctl).", {"secrets": dict(kinds)}
    )
