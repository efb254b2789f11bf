"""Set text, formulas and code as HTML that can only be read.

What comes from a student has no links, pictures or HTML of its own: they are shown as they
were written. Formulas become MathML, which browsers set by themselves.
"""

import re
from collections.abc import Sequence
from functools import cache
from html import escape

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from math_core import LatexError, LatexToMathML
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

CONVERTER = LatexToMathML(fancy_error=False, max_expansions=100)
LEXER = PythonLexer(stripnl=False, ensurenl=False)
FORMATTER = HtmlFormatter(nowrap=True)

# What the converter writes: elements and attributes that neither link nor load.
ELEMENTS = (
    "math mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow "
    "mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover"
).replace(" ", "|")
ATTRIBUTES = (
    "accent accentunder class columnspan depth display displaystyle fence form height "
    "largeop linethickness lspace mathcolor mathvariant maxsize minsize movablelimits "
    "rspace scriptlevel separator stretchy style symmetric voffset width"
).replace(" ", "|")
SAFE = re.compile(rf'</?(?:{ELEMENTS})(?: (?:{ATTRIBUTES})="[\w :;.%#+-]*")* ?/?>')
TAG = re.compile(r"<[^>]*>?")
MOST = 200  # characters of MathML for one of TeX
MIXED = re.compile(r"\\text\{([^{}]*)\}")

ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?")
# Control characters, breaks that were put in against links, turns of the direction.
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2060\u2066-\u2069]")

NO_LINKS = ["autolink", "image", "link", "reference"]


def text(source: str, links: bool = False, lower: int = 0) -> str:
    """Set Markdown.

    Args:
        source: the Markdown.
        links: whether links in it may be followed.
        lower: how many levels its headings lie below those of the page.
    """
    parser = _parser(links)
    tokens = parser.parse(clean(source))
    for token in tokens:
        if token.type.startswith("heading"):
            token.tag = f"h{min(int(token.tag[1]) + lower, 6)}"
    return _render(parser, tokens)


def line(source: str) -> str:
    """Set Markdown that stands within a line."""
    parser = _parser(links=False)
    return _render(parser, parser.parseInline(clean(source)))


def formula(tex: str, block: bool = False) -> str:
    """Set a formula; what cannot be set is shown as it was written."""
    try:
        found = CONVERTER.convert_with_local_state(_unmixed(tex), displaystyle=block)
    except LatexError:
        found = ""
    long = len(found) > MOST * (len(tex) + 10)
    if not found or long or not all(map(SAFE.fullmatch, TAG.findall(found))):
        return f'<code class="tex">{escape(tex)}</code>'
    return found


def code(source: str) -> str:
    """Set Python."""
    return f'<pre tabindex="0"><code>{highlight(clean(source), LEXER, FORMATTER)}</code></pre>'


def plain(source: str) -> str:
    """Set a text as it is."""
    return f'<pre tabindex="0">{escape(clean(source))}</pre>'


def clean(source: str) -> str:
    """Return a text without what cannot be seen."""
    lines = ESCAPES.sub("", source).replace("\r\n", "\n").replace("\r", "\n")
    return CONTROLS.sub("", lines)


@cache
def _parser(links: bool) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.disable(["image"] if links else NO_LINKS)
    parser.use(dollarmath_plugin, allow_labels=False, double_inline=True)
    parser.use(amsmath_plugin)
    for kind in ("math_inline", "math_inline_double", "math_block", "amsmath"):
        parser.add_render_rule(kind, _math)
    return parser


def _math(
    renderer: RendererHTML, tokens: Sequence[Token], place: int, *_: object
) -> str:
    """Set a formula in a text; a wide one of its own line can be moved."""
    token = tokens[place]
    if token.type == "math_inline":
        return formula(token.content)
    return f'<span class="formula">{formula(token.content, block=True)}</span>'


def _render(parser: MarkdownIt, tokens: Sequence[Token]) -> str:
    return str(parser.renderer.render(tokens, parser.options, {}))


def _unmixed(tex: str) -> str:
    """Take formulas out of the words that stand in a formula."""

    def apart(found: re.Match[str]) -> str:
        words = found[1].split("$")
        return "".join(
            part if i % 2 else rf"\text{{{part}}}"
            for i, part in enumerate(words)
            if part
        )

    return MIXED.sub(apart, tex)
