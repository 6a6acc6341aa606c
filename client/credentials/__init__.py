"""Find likely credentials in text: by the documented formats of keys and tokens, and by names next to a value.

`redact` is a pure function that uses only the standard library, so that a client can call it without a daemon. A value
without a known format counts as a credential only next to a name such as `password`; so hashes, ids and encoded data
do not count.
"""

from memoryd.client.credentials.redacting import allow_list, describe_kinds, find, redact, redact_tree
from memoryd.client.credentials.rules import CredentialMatch

__all__ = ["CredentialMatch", "allow_list", "describe_kinds", "find", "redact", "redact_tree"]
