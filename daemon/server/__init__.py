"""The server: connections, access control, lanes, dispatch, events, and how the daemon starts and stops.

**Stopping without a failed call.** A daemon that stops refuses new calls with a hint to retry. To each connection that
waits for no reply it sends a farewell (an error with id 0): it will run no more calls from there, so the client
may repeat a call that it has just sent, even a write. During a restart (`succession`) the listening socket stays open
and clients that connect wait in its queue: either systemd holds the socket and the daemon exits with 75, or the
process execs its successor and passes the socket on. When `Hello` shows that a newer version was installed, the
daemon restarts, once per version.

**Access.** A connection speaks for a `Caller`: the machine's user, or the holder of a token, which is bound to a
namespace. Each method declares its rule (`@rpc`), and `access.admit` applies the rule before a handler runs: it places
the call of a bound caller in the caller's namespace, and refuses a wider reach and the methods of the owner. Handlers
respect the namespace and reach of the call; before changing a memory they call `history.check_change` in the writer's
transaction. A test sends the same calls to a daemon with another agent's memories and to one without them: the answers
must be equal.

**Events** cost nothing without subscribers. Otherwise the writer notes which rows a transaction wrote and reads them
back after the commit (`store/changed_rows.py`). `view` decides what each subscriber sees: a memory that leaves the
subscriber's reach is reported as deleted, one that enters it as created. `subscriptions` sends the events of each
10 ms together; beyond 1,000 waiting events it only counts them and reports them as `missed`.

**Metrics.** The event loop counts the duration of each call in a histogram of 240 buckets, accurate to 9 %. `stats`
returns these with everything else that the daemon measures; `top` and `metrics` format that reply.
"""
