"""The memory itself, without sockets: server, memctl, jobs and tests all drive it through calls."""
