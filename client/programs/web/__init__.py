"""`memctl web`: a page on 127.0.0.1 on which a person sees what agents remember, and corrects it.

It is a client of the daemon like any other and uses the server of `client/programs/loopback`. `guard` gives the page
its token and refuses requests that are not from the page. `relay` passes the allowed calls on as JSON and streams
events. `serving` combines these. `static/` is the page: ES modules without a build step,
which create everything on it. Starlette and uvicorn are an extra, imported when the command runs.
"""
