"""Handlers of the calls about sharing and tokens."""

from concurrent.futures import Future

from memoryd.client.errors import Unauthenticated
from memoryd.client.protocol import (
    AddToken,
    Authenticate,
    Done,
    Identity,
    ListTokens,
    NewToken,
    RevokeToken,
    TokenList,
)
from memoryd.daemon.registry import handles
from memoryd.daemon.server.dispatch import Context
from memoryd.daemon.store.caller import NOBODY


@handles(Authenticate)
def authenticate(context: Context, call: Authenticate) -> Identity:
    """Bind the connection; whoever presents a wrong token is nobody, not whom the connection spoke for before."""
    try:
        caller = context.core.tokens.find_caller(call.token)
    except Unauthenticated:
        context.become(NOBODY)
        raise
    context.become(caller)
    role = "owner" if caller.role == "nobody" else caller.role
    return Identity(name=caller.name, namespace=caller.namespace, role=role)


@handles(AddToken)
def add_token(context: Context, call: AddToken) -> "Future[NewToken]":
    """Make a token."""
    return context.core.tokens.add(call)


@handles(ListTokens)
def list_tokens(context: Context, call: ListTokens) -> TokenList:
    """List the tokens."""
    return context.core.tokens.list_tokens()


@handles(RevokeToken)
def revoke_token(context: Context, call: RevokeToken) -> Done:
    """Revoke a token."""
    context.core.tokens.revoke(call.name).result()
    return Done(message=f"revoked {call.name}")
