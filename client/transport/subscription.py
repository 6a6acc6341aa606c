"""Follow events: an iterator with a connection of its own, created by `Client.subscribe`."""

from typing import Self

from memoryd.client.errors import TimedOut, Unavailable
from memoryd.client.protocol import Event, Subscribe, Subscribed
from memoryd.client.transport.exchange import BrokenStream, event_of, result_of
from memoryd.client.transport.stream import Stream

GONE = "The daemon has ended; subscribe again when it answers."


class Subscription:
    """Events as they happen. `result` has the counts after the daemon has ended the subscription at its limit.

    It yields every event after its creation. Any thread may close it, which stops a thread that waits for an event.
    """

    def __init__(self, connection: Stream, data: bytes, timeout_s: float, idle_s: float | None) -> None:
        self.result: Subscribed | None = None
        self._connection, self._closed = connection, False
        try:
            connection.send(data, timeout_s)
            self._read_event()  # `started`, or an error
            connection.wait_at_most(idle_s)
        except BrokenStream as broken:
            self.close()
            raise Unavailable(f"{GONE} ({broken})") from None
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        """Wait for the next event."""
        if self._closed:
            raise StopIteration
        try:
            event = self._read_event()
        except TimedOut:
            event = None
        except BrokenStream:
            if self._closed:
                raise StopIteration from None
            self.close()
            raise Unavailable(GONE) from None
        except BaseException:
            self.close()
            raise
        if event is None:
            self.close()
            raise StopIteration
        return event

    def _read_event(self) -> Event | None:
        """Return the next event, None after the last one."""
        reply = self._connection.read_reply()
        event = event_of(reply)
        if event is None:
            self.result = result_of(Subscribe(), reply)
        return event

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """End the subscription."""
        if not self._closed:
            self._closed = True
            self._connection.interrupt()
            self._connection.close()
