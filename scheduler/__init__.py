"""The scheduler: the table of background jobs and the timer that calls them. It imports only the client."""
