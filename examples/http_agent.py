"""An agent over HTTP with nothing but the standard library: python http_agent.py [PORT].

AGENT=http://127.0.0.1:9000/ AGENT_SECRET=change-me answerback chat
"""

import hashlib
import hmac
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = b"change-me"
ANSWERS: dict[str, dict[str, object]] = {}  # A real one keeps them where a restart does not


def is_genuine(header: str, body: bytes) -> bool:
    fields = dict(field.partition("=")[::2] for field in header.split(","))
    at = fields.get("t", "")
    if not at.isdecimal() or abs(time.time() - int(at)) > 300:
        return False
    expected = hmac.new(SECRET, at.encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), fields.get("v1", "").encode())


def think(question: dict[str, object]) -> dict[str, object]:
    texts = [message["text"] for message in question["messages"]]  # type: ignore[attr-defined]
    spoken = "\n".join(texts).strip()
    return {"text": f"You said: {spoken}"} if spoken else {"silent": True}


class Door(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if not is_genuine(self.headers.get("answerback-signature", ""), body):
            self.send_error(401)
            return
        question = json.loads(body)
        key = question["idempotency_key"]
        if key not in ANSWERS:
            ANSWERS[key] = think(question)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(ANSWERS[key]).encode())


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int((sys.argv[1:] or ["9000"])[0])), Door)
    print(f"listening on http://127.0.0.1:{server.server_port}/", flush=True)
    server.serve_forever()
