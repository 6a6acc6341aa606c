"""Likely credentials in text: found by the documented shapes of keys and tokens, and by names that they stand beside.

`redact` is a pure function of the text, of the standard library alone, so that a client can use it where no daemon
answers. What is not a known shape is a credential only where a telling name announces it: hashes, ids and encoded data
are none.
"""

from memoryd.client.credentials.redacting import allow_list, describe_kinds, find, redact, redact_tree
from memoryd.client.credentials.rules import CredentialMatch

__all__ = ["CredentialMatch", "allow_list", "describe_kinds", "find", "redact", "redact_tree"]
