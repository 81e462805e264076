"""A page that shows the widget, for a try before there is a site of one's own."""

from __future__ import annotations

import base64
import hashlib
from html import escape

from starlette.requests import Request
from starlette.responses import HTMLResponse

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Answerback</title>
<link rel="icon" href="data:,">
<style>STYLE</style>
<script src="/web/answerback.js" defer></script>
</head>
<body>
<h1>Answerback</h1>
<p>The button in the corner opens the chat. Ask something, close this tab or kill the server in the
middle of the answer, come back: the answer is there.</p>
<p>One line brings it to a page of yours, whose origin stands in WEB_ORIGINS:</p>
<pre>&lt;script src="SERVER/web/answerback.js" defer&gt;&lt;/script&gt;</pre>
</body>
</html>
"""
# Where the open chat does not take the whole window, the text stands beside it: 384 pixels, 20 from
# the edge. The last line can be scrolled above the button.
_STYLE = """
body{margin:2rem;padding-bottom:4rem;max-width:40rem;overflow-wrap:anywhere}
body{font:16px/1.5 system-ui,sans-serif}
pre{white-space:pre-wrap}
@media(width>700px) and (height>400px){
body{padding-right:404px;max-width:calc(40rem + 404px)}
body:has(>answerback-chat[dir=rtl]){padding:0 0 4rem 404px}
}
"""
_STYLE_ALONE = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
        f"style-src 'sha256-{_STYLE_ALONE}'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


async def demo_page(request: Request) -> HTMLResponse:
    """The page, with the address at which the browser found this server."""
    server = escape(f"{request.url.scheme}://{request.url.netloc}")
    page = _PAGE.replace("STYLE", _STYLE).replace("SERVER", server)
    return HTMLResponse(page, headers=_HEADERS)
