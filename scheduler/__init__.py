"""The timer of background jobs: asks the daemon for what is due. It imports only the client."""
