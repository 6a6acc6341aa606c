"""The socket's side: connections, access, lanes, dispatch, events, and how the daemon starts and ends.

**Stopping without a failed call.** A daemon that stops refuses calls with a hint to retry, and informs each
connection that waits for nothing that it will run no more calls (an error with id 0); clients then repeat the
call, writes too. For a restart (`succession`) the listening socket stays open and its queue holds who connects
meanwhile: systemd holds the socket and the daemon exits with 75, or the process execs its successor and passes the
socket on. Where `Hello` shows that a newer version was installed, the daemon restarts, once per version.

**Access.** A connection speaks for a `Caller`: the machine's user, or what its token is bound to. Each method
declares its rule (`@rpc`), and `access.admit` applies it before a handler runs: a bound call is placed in its
namespace, a wider reach is refused, and what is the owner's is refused. A handler obeys namespace and reach; one
that changes memories asks `history.check_change` about each in the writer's transaction. A test asks the same of a
daemon with and of one without another agent's memories: the answers must be equal.

**Events** cost nothing while nobody follows them. While somebody does, the writer notes which rows a transaction
wrote and reads them back after its commit (`store/changed_rows.py`). `view` decides what each follower sees: a memory
that leaves its reach is deleted for it, one that enters is created. `subscriptions` sends them in batches of 10 ms;
more than 1,000 waiting events are counted and reported as `missed`.

**Figures.** The event loop counts each call into a histogram of 240 buckets (within 9 %). `stats` returns them with
all that the daemon knows of itself; `top` and `metrics` are made of that one reply.
"""
