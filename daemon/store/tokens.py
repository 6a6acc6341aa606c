"""Tokens: each binds the connections that present it to a namespace and a role. Only its SHA-256 is stored.

All tokens are in RAM, so the event loop can look them up, and a revocation takes effect at once. The owner's token is a
file beside the database, created when tokens are required; a process that can read it could read the database, too.
"""

import hashlib
import os
import secrets
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw

from memoryd.client.errors import Busy, Conflict, Invalid, NotFound, StorageFailed, Unauthenticated
from memoryd.client.protocol import AddToken, NewToken, Token, TokenList
from memoryd.daemon.store import namespaces
from memoryd.daemon.store.caller import Caller
from memoryd.daemon.store.store import Store
from memoryd.daemon.store.writer import Transaction

OWNER_FILE = "owner.token"
_PREFIX = "mt_"  # so that people and secret scanners recognise a token
_RANDOM_BYTES = 32
_MAX_NAME = 64
_USE_NOTED_S = 60.0  # the resolution of `last_used_at`


class AccessTokens:
    """The tokens of one database."""

    def __init__(self, store: Store, folder: Path, clock: Callable[[], float], required: bool) -> None:
        self.required = required
        self.owner_file = folder / OWNER_FILE
        self._store, self._clock = store, clock
        self._callers: dict[bytes, Caller] = {}
        self._noted: dict[bytes, float] = {}
        with store.reading() as connection:
            entries: Any = connection.execute("SELECT role, namespace, name, hash, created_at FROM tokens").fetchall()
        for role, namespace, name, key, since in entries:
            self._callers[key] = Caller(role, namespace, name, key, since)
        if required or self.owner_file.exists():
            key = _hash(_read_owner_secret(self.owner_file))
            self._callers[key] = Caller("owner", key=key)

    def find_caller(self, secret: str) -> Caller:
        """Return the caller that a token represents; raise `Unauthenticated` if it is not valid."""
        caller = self._callers.get(_hash(secret))
        if caller is None:
            raise self.refuse()
        return caller

    def find_named(self, name: str) -> Caller | None:
        """Return the caller of the token with this name, None if there is none."""
        return next((caller for caller in list(self._callers.values()) if caller.name == name and name), None)

    def refusal(self, sentence: str) -> Unauthenticated:
        """Return the error for a connection without a valid token; it says where the owner's token is."""
        return Unauthenticated(sentence, {"owner_token": str(self.owner_file)} if self.required else {})

    def refuse(self) -> Unauthenticated:
        """Return the error for a connection whose token is unknown or was revoked."""
        return self.refusal("The token is not known here; it may have been revoked.")

    def is_valid(self, caller: Caller) -> bool:
        """Return whether the token of a caller is still valid."""
        return caller.key in self._callers

    def add(self, call: AddToken) -> "Future[NewToken]":
        """Create a token; the future has its secret, which is not stored."""
        _check_name(call.name)
        if not namespaces.check_new(call.namespace):
            raise Invalid("A token is bound to a namespace; the root is the machine's user.")
        secret = _PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
        caller = Caller(call.role, call.namespace, call.name, _hash(secret), self._clock())

        def write(transaction: Transaction) -> NewToken:
            _insert(transaction.connection, caller)
            transaction.after_commit(lambda: self._callers.update({caller.key: caller}))
            return NewToken(name=call.name, namespace=call.namespace, role=call.role, token=secret)

        return self._store.write(write)

    def revoke(self, name: str) -> "Future[None]":
        """Delete a token; further calls on connections that presented it are refused."""

        def write(transaction: Transaction) -> None:
            key = transaction.connection.execute("DELETE FROM tokens WHERE name = ? RETURNING hash", (name,)).get
            if not isinstance(key, bytes):
                raise NotFound(f"There is no token {name!r}.", {"name": name})
            transaction.after_commit(lambda: self._forget(key))

        return self._store.write(write, over_limit=True)

    def move(self, transaction: Transaction, namespace: str, to: str) -> list[str]:
        """Bind the tokens of a namespace to another one; return their names."""
        sql = "UPDATE tokens SET namespace = ? WHERE namespace = ? RETURNING hash, role, name, created_at"
        moved: Any = transaction.connection.execute(sql, (to, namespace)).fetchall()
        callers = {key: Caller(role, to, name, key, since) for key, role, name, since in moved}
        transaction.after_commit(lambda: self._callers.update(callers))
        return sorted(caller.name for caller in callers.values())

    def read_present(self, caller: Caller) -> Caller:
        """Return a caller with the present namespace and role of its token."""
        present = self._callers.get(caller.key) if caller.key else None
        return present._replace(confined=caller.confined) if present else caller

    def list_tokens(self) -> TokenList:
        """Return all tokens without their secrets."""
        with self._store.reading() as connection:
            sql = "SELECT name, namespace, role, created_at, last_used_at FROM tokens ORDER BY name"
            return TokenList(tokens=[Token(*values) for values in connection.execute(sql)])

    def _forget(self, key: bytes) -> None:
        self._callers.pop(key, None)
        self._noted.pop(key, None)

    def note_use(self, caller: Caller) -> None:
        """Record that a call was made with a token."""
        now = self._clock()
        if caller.name and now // _USE_NOTED_S != self._noted.get(caller.key, 0.0) // _USE_NOTED_S:
            self._noted[caller.key] = now
            with suppress(Busy, StorageFailed):  # the time of the last use is not essential
                sql = "UPDATE tokens SET last_used_at = ? WHERE hash = ?"
                self._store.write(lambda transaction: transaction.connection.execute(sql, (now, caller.key)))


def _hash(secret: str) -> bytes:
    # 256 random bits need no salt and no slow hash.
    return hashlib.sha256(secret.encode()).digest()


def _insert(connection: apsw.Connection, caller: Caller) -> None:
    if connection.execute("SELECT 1 FROM tokens WHERE name = ?", (caller.name,)).get is not None:
        raise Conflict(f"There is a token {caller.name!r} already; revoke it first.", {"name": caller.name})
    sql = "INSERT INTO tokens (name, hash, namespace, role, created_at) VALUES (?, ?, ?, ?, ?)"
    connection.execute(sql, (caller.name, caller.key, caller.namespace, caller.role, caller.since))


def _check_name(name: str) -> None:
    if not name.strip() or len(name) > _MAX_NAME or not name.isprintable():
        raise Invalid(f"The name {name[:40]!r} of a token is not 1 to {_MAX_NAME} printable characters.")


def _read_owner_secret(path: Path) -> str:
    """Return the owner's token from its file, which is created with mode 0600 if there is none."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return _read_secret(path)
    except OSError as error:
        raise StorageFailed(f"The owner's token {path} cannot be made: {error.strerror}.") from None
    secret = _PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
    with os.fdopen(descriptor, "w") as file:
        file.write(secret + "\n")
    return secret


def _read_secret(path: Path) -> str:
    try:
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
        secret = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise StorageFailed(f"The owner's token {path} cannot be read: {error}.") from None
    if len(secret) < _RANDOM_BYTES:
        raise StorageFailed(f"The owner's token {path} is damaged; delete it and start the daemon again.")
    return secret
