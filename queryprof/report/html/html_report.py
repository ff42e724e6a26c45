"""The report as a single HTML file that contains its data, scripts and styles.

The page loads nothing from the network. Its Content-Security-Policy (https://www.w3.org/TR/CSP3/)
allows only the scripts and styles whose hashes were known when the page was written, so text of the
recorded program cannot become code.

Data larger than LARGE_BYTES is deflated (RFC 1950) and base64-encoded. The browser decodes it with
DecompressionStream.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

SCRIPTS = (
    "dom",
    "format",
    "data",
    "charts",
    "waterfall",
    "overview",
    "advice",
    "table",
    "icicle",
    "statement",
    "start",
)
"""Files in page/, in load order."""

STYLES = ("base", "charts", "tables", "media")
"""Style sheets in page/, in load order."""

LARGE_BYTES = 200_000

MARK = "<!-- queryprof report -->"
"""A comment in the first 200 bytes of every page. queryprof may overwrite a file that has this
comment.
"""

_ESCAPES = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}
_UNSAFE = str.maketrans(_ESCAPES)

PAGE = """<!doctype html>
{mark}
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div id="app"><noscript><p>This report needs JavaScript, which is off. It loads nothing from the
network: everything is in this file.</p></noscript></div>
<script id="data" type="application/json"{encoding}>{data}</script>
<script>{script}</script>
</body>
</html>
"""


def html_page(data: dict[str, Any], title: str) -> str:
    """Return the HTML page of a report.

    Args:
        data: see page_data.
        title: title of the browser window.
    """
    style, script = _styles_and_scripts()
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_csp_hash(script)}'",
            f"style-src '{_csp_hash(style)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
        )
    )
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    is_large = len(text) > LARGE_BYTES
    packed = zlib.compress(text.encode("utf-8"), 9) if is_large else b""
    return PAGE.format(
        mark=MARK,
        policy=escape(policy),
        title=escape(title),
        style=style,
        encoding=' data-encoding="deflate"' if is_large else "",
        data=base64.b64encode(packed).decode() if is_large else text.translate(_UNSAFE),
        script=script,
    )


@cache
def _styles_and_scripts() -> tuple[str, str]:
    """Return the styles, and the scripts wrapped in a function so that they define no globals."""
    page = files("queryprof.report.html").joinpath("page")
    styles = [page.joinpath(f"{name}.css").read_text("utf-8") for name in STYLES]
    scripts = [page.joinpath(f"{name}.js").read_text("utf-8") for name in SCRIPTS]
    return "".join(styles), '"use strict";\n(() => {\n' + "\n".join(scripts) + "})();\n"


def _csp_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
