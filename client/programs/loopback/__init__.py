"""HTTP on 127.0.0.1 for one user, used by `memctl web` and `memctl mcp --http`.

The daemon itself never listens on TCP. Other programs, users and web pages in the browser can reach a port of
127.0.0.1: `guard` refuses their requests before an application sees them, and `serving` prevents that their
connections block the server. Starlette and uvicorn come with the extras `web` and `mcp`; both modules import them.
"""
