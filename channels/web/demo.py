"""A page that shows the widget, for a try before there is a site of one's own."""

from __future__ import annotations

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
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
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
    return HTMLResponse(_PAGE.replace("SERVER", server), headers=_HEADERS)
