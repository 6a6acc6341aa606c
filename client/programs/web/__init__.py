"""web: a page on 127.0.0.1 in which a person sees what agents remember, and takes things back.

It is a client like any other, on the server of `client/programs/loopback`. `guard` hands the page its token and
refuses what does not come from it, `relay` passes the allowed calls on as JSON and streams what happens, `findings` are
doctor's, `serving` brings them together. `static/` is the page: ES modules that need no build step and compose all that
is shown. Starlette and uvicorn are an extra, imported when the command runs.
"""
