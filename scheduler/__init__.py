"""The timer of background jobs: asks the daemon to run what is due. It imports only the client."""
