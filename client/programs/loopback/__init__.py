"""loopback: HTTP on 127.0.0.1 for one user, as `memctl web` and `memctl mcp --http` serve it.

The daemon itself never listens on TCP. Other programs, users and pages of the browser can reach a port of 127.0.0.1:
`guard` refuses what is not the user's own before an application sees it, `serving` keeps others from occupying the
server with connections. Starlette and uvicorn come with the extras `web` and `mcp`; both modules import them.
"""
