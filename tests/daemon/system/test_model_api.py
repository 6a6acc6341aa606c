"""A server that is asked over HTTP: a stop ends what is under way, also what is only connecting."""

import socket
import threading

import pytest

from memoryd.daemon.system.model_api import Address, Remote, RemoteFailed


def test_a_request_that_connects_while_it_is_closed_ends_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        remote = Remote(Address(f"http://127.0.0.1:{silent.getsockname()[1]}", "", ""))
        remote.close()  # nothing is connected yet, so there is nothing to end
        with pytest.raises(RemoteFailed, match="stopping"):
            remote.post("/x", b"{}", 60.0, 100)


def test_a_request_that_waits_for_its_answer_ends_when_it_is_closed() -> None:
    failed: list[RemoteFailed] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        remote = Remote(Address(f"http://127.0.0.1:{silent.getsockname()[1]}", "", ""))

        def ask() -> None:
            try:
                remote.post("/x", b"{}", 60.0, 100)
            except RemoteFailed as error:
                failed.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        connection, _ = silent.accept()
        with connection:
            assert connection.recv(4)
            remote.close()
            asking.join(20)
    assert len(failed) == 1
