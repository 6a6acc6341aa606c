"""The timer of background jobs: it asks the daemon to run each job that is due. It imports only the client."""
