"""Runs MiniStack. With `--with-parent`, it ends when the process that started it does.

The second argument is a mark by which `npm run local:stop` knows this process from another one that may have got
its number since.

MiniStack answers any `Host` and any `Origin`, and lets every page read the answer. Whoever can reach it can run code as the
developer: by a function. So it is wrapped, and what a web page could send is refused.
"""

import os
import re
import shutil
import signal
import sys
import threading


def end_with_parent() -> None:
    # Standard input is a pipe from the parent. It ends when the parent does, even when that was killed.
    while os.read(0, 4096):
        pass
    shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)
    if os.getpgrp() == os.getpid():
        # The whole group: MiniStack and the Node processes that it runs the functions in.
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(0)


if "--with-parent" in sys.argv:
    threading.Thread(target=end_with_parent, daemon=True).start()
sys.argv = sys.argv[:1]

import ministack.app as ministack  # noqa: E402

# The names of this machine; S3 and other services put labels in front of them. LocalStack's name resolves to 127.0.0.1. A
# function URL is found by its AWS name, which is nobody's to point here: https://docs.aws.amazon.com/lambda (function URLs).
LOOPBACK_HOST = re.compile(
    rb"(?:\[::1\]|(?:[a-z0-9_-]+\.)*(?:127\.0\.0\.1|localhost|localhost\.localstack\.cloud)"
    rb"|[a-z0-9]+\.lambda-url\.[a-z0-9-]+\.on\.aws)(?::\d{1,5})?",
    re.IGNORECASE,
)

# What a browser says of a request that no page of another site caused: one that was typed, or one of the engine's own pages.
OWN_FETCHES = {b"none", b"same-origin"}


def refusal(scope: dict) -> "str | None":
    """Why a request is not served: it comes from a web page, or by a name that is not this machine's (DNS rebinding)."""
    headers = [(name.lower(), value) for name, value in scope["headers"]]
    if any(name == b"origin" for name, _ in headers):
        return "The local AWS does not serve web pages: this request has an Origin header."
    if any(name == b"sec-fetch-site" and value not in OWN_FETCHES for name, value in headers):
        return "The local AWS does not serve web pages: a page of another site caused this request."
    hosts = [value for name, value in headers if name == b"host"]
    if len(hosts) != 1 or not LOOPBACK_HOST.fullmatch(hosts[0]):
        return "The local AWS serves this machine only: the Host header must name it, e.g. 127.0.0.1 or localhost."
    return None


engine = ministack.app


async def guarded(scope, receive, send):
    """MiniStack, behind the refusals."""
    why = None if scope["type"] == "lifespan" else refusal(scope)
    if why is None:
        await engine(scope, receive, send)
    elif scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})  # before it is accepted: answered with 403
    else:
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 403, "headers": headers})
        await send({"type": "http.response.body", "body": f"{why}\n".encode()})


ministack.app = guarded
ministack.main()
