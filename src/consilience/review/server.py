"""The page over HTTP: on this machine only, behind a token in the address, and with nothing from elsewhere."""

from __future__ import annotations

import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from consilience.exceptions import ConsilienceError, UnsupportedError, needed
from consilience.report.evidence import PICTURES
from consilience.review.session import Session

HOST = "127.0.0.1"
#: What the browser may load and run: files of this page, and nothing written into it.
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'"
HEADERS = {
    "content-security-policy": f"{POLICY}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
#: Bytes of a request; an answer with its comment is far smaller.
MOST_BYTES = 1 << 20


def new_token() -> str:
    """Return a secret for the address."""
    return secrets.token_urlsafe(24)


def listen(port: int = 0) -> socket.socket:
    """Return a socket on this machine; port 0 takes any that is free."""
    place = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        place.bind((HOST, port))
        place.listen(128)
    except OSError:
        place.close()
        raise UnsupportedError(
            f"Port {port} is in use. Choose another one with --port, or leave it out to use any free port."
        ) from None
    return place


def make_app(session: Session, folder: Path, token: str, port: int) -> Any:
    """Return the web application of a session, whose results go to a folder."""
    applications, concurrency, responses, routing = (
        needed(f"starlette.{part}", "The page to label on", "review")
        for part in ("applications", "concurrency", "responses", "routing")
    )
    hosts = {f"{HOST}:{port}", f"localhost:{port}"}

    def reply(content: Any, status: int = 200) -> Any:
        return responses.JSONResponse(content, status, headers=HEADERS)

    def allowed(request: Any) -> bool:
        """Return whether a request comes from our page: it knows the token, and was sent to us and by us."""
        if request.headers.get("host") not in hosts:
            return False
        if not secrets.compare_digest(request.path_params["token"].encode(), token.encode()):
            return False
        origin = request.headers.get("origin")
        own = {f"http://{host}" for host in hosts}
        return origin in own if request.method == "POST" else origin is None or origin in own

    def guarded(handle: Callable[[Any, dict[str, Any]], Any]) -> Callable[[Any], Any]:
        async def endpoint(request: Any) -> Any:
            if not allowed(request):
                return responses.PlainTextResponse("Forbidden. Open the address that the program printed.", 403)
            sent: dict[str, Any] = {}
            if request.method == "POST":
                is_json = request.headers.get("content-type", "").startswith("application/json")
                if not is_json or int(request.headers.get("content-length") or MOST_BYTES + 1) > MOST_BYTES:
                    return reply({"error": "The answer was not sent by this page. Reload it."}, 400)
                try:
                    sent = await request.json()
                except ValueError:
                    sent = {}
            try:
                return await concurrency.run_in_threadpool(handle, request, sent if isinstance(sent, dict) else {})
            except ConsilienceError as error:
                return reply({"error": str(error)}, 400)
            except OSError as error:
                return reply({"error": f"The answer could not be written: {error.strerror}. Free some space."}, 500)

        return endpoint

    def static(name: str, kind: str, *packages: str) -> Callable[[Any, dict[str, Any]], Any]:
        def send(request: Any, sent: dict[str, Any]) -> Any:
            parts = [files(f"consilience.{package}") / "templates" / name for package in packages]
            text = "".join(part.read_text(encoding="utf-8") for part in parts)
            return responses.Response(text, media_type=kind, headers=HEADERS)

        return send

    def image(request: Any, sent: dict[str, Any]) -> Any:
        number = request.path_params["number"]
        path = session.images[number] if number < len(session.images) else None
        if path is None or not path.is_file():
            return reply({"error": "There is no such picture."}, 404)
        return responses.Response(
            path.read_bytes(), media_type=f"image/{PICTURES[path.suffix.lower()]}", headers=HEADERS
        )

    def next_item(sent: dict[str, Any]) -> dict[str, Any]:
        return {"item": session.next_item(str(sent.get("tab", ""))), "state": session.state()}

    def item(sent: dict[str, Any]) -> dict[str, Any]:
        return {"item": session.describe(str(sent.get("item", ""))), "state": session.state()}

    def answer(sent: dict[str, Any]) -> dict[str, Any]:
        item, comment = str(sent.get("item", "")), str(sent.get("comment", ""))
        session.answer(item, str(sent.get("status", "")), sent.get("answer"), comment)
        return {"votes": session.votes_on(item), "state": session.state()}

    def route(path: str, handle: Callable[[Any, dict[str, Any]], Any], method: str = "GET") -> Any:
        return routing.Route(f"/{{token}}/{path}", guarded(handle), methods=[method])

    return applications.Starlette(
        routes=[
            route("", static("page.html", "text/html", "review")),
            route("style.css", static("style.css", "text/css", "report", "review")),
            route("script.js", static("script.js", "text/javascript", "review")),
            route("image/{number:int}", image),
            route("state", lambda request, sent: reply(session.state())),
            route("next", lambda request, sent: reply(next_item(sent)), "POST"),
            route("item", lambda request, sent: reply(item(sent)), "POST"),
            route("answer", lambda request, sent: reply(answer(sent)), "POST"),
            route("finish", lambda request, sent: reply(session.finish(folder)), "POST"),
        ]
    )


def serve(session: Session, folder: Path, place: socket.socket, token: str, *, open_browser: bool) -> None:
    """Answer the page until the program is interrupted."""
    uvicorn = needed("uvicorn", "The page to label on", "review")
    port = place.getsockname()[1]
    app = make_app(session, folder, token, port)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False, server_header=False))
    if open_browser:
        address = f"http://{HOST}:{port}/{token}/"
        threading.Timer(0.5, lambda: webbrowser.open(address)).start()
    try:
        server.run(sockets=[place])
    finally:
        session.close()
