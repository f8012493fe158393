"""Many style sheets are merged into one: what pages use stays, in order; the rest is dropped."""

import pytest

from bookbuild.site import stylesheet, used_names

PAGE = """<!doctype html><html data-theme="auto"><body><p id="here" class="used also" style="color:
var(--from-page)">x<a href="#here">y</a><span class="katex-html">yx<span>z</span>
<span class="mord mathbf">1</span></span></p>
<script>box.classList.add("by-script")</script></body></html>"""


@pytest.fixture
def page() -> used_names.Vocabulary:
    return used_names.of([PAGE], ["element.className = 'from-file'"])


def test_vocabulary(page: used_names.Vocabulary) -> None:
    assert {"used", "also", "by-script", "from-file"} <= page.classes
    assert "here" in page.ids
    assert {"p", "a", "html"} <= page.tags
    assert {"href", "data-theme"} <= page.attributes
    assert "--from-page" in page.variables
    assert page.formula_letters - set("\n") == set("xyz1")
    assert page.bold_letters == set("1")


@pytest.mark.parametrize(
    ("css", "expected"),
    [
        (".used{color:red}", ".used{color:red}"),
        (".unused{color:red}", ""),
        (".used .unused{color:red}", ""),
        (".used,.unused , .also{color:red}", ".used,.also{color:red}"),
        ("p > .used , table .used{color:red}", "p>.used{color:red}"),
        ("#here{color:red}#there{color:red}", "#here{color:red}"),
        (".by-script{color:red}.from-file{margin:0}", ".by-script{color:red}.from-file{margin:0}"),
        (".used:not(.unused){color:red}", ".used:not(.unused){color:red}"),
        (":is(.used,.unused){color:red}", ":is(.used,.unused){color:red}"),
        (":is(.unused,table) p{color:red}", ""),
        ("p:has(> .unused){color:red}", ""),
        ("p::before{content:'.unused'}", 'p::before{content:".unused"}'),
        ("a[href]{color:red}a[download]{color:red}", "a[href]{color:red}"),
        ("*{margin : 0 ; padding:0 !important}", "*{margin:0;padding:0!important}"),
        ("/* a comment */ p /* b */ {color:red /* c */}", "p{color:red}"),
        ("@media print{p{color:red}.unused{margin:0}}", "@media print{p{color:red}}"),
        ("@media print{.unused{margin:0}}", ""),
        (
            "@media print{p{margin:0}}@media print{a{margin:0}}",
            "@media print{p{margin:0}a{margin:0}}",
        ),
        (
            "@page one{margin:0;@bottom-left{content:none}@bottom-right{content:none}}",
            "@page one{margin:0;@bottom-left{content:none};@bottom-right{content:none}}",
        ),
        ("@charset 'utf-8';p{color:red}", "p{color:red}"),
        ("@keyframes turn{to{rotate:1turn}}p{color:red}", "p{color:red}"),
        (
            "@keyframes turn{to{rotate:1turn}}p{animation:turn 1s}",
            "@keyframes turn{to{rotate:1turn}}p{animation:turn 1s}",
        ),
        ("@font-face{font-family:A;src:url(a.woff2)}p{color:red}", "p{color:red}"),
        ("@font-face{font-family:Bad;src:url(a.woff2)}p{font:1em Bad}", "p{font:1em Bad}"),
        ("p{--a:1;--b:var(--c);--c:2;margin:var(--b)}", "p{--b:var(--c);--c:2;margin:var(--b)}"),
        ("p{--from-page:red}", "p{--from-page:red}"),
        ("p{color:red", "p{color:red}"),
    ],
)
def test_one_sheet(page: used_names.Vocabulary, css: str, expected: str) -> None:
    assert stylesheet.combine([("a.css", css)], page, ["bad"]) == expected


def test_order_is_kept(page: used_names.Vocabulary) -> None:
    sheets = [("a.css", "p{color:red}@media print{p{margin:0}}"), ("b.css", "p{padding:0}")]
    assert stylesheet.combine(sheets, page) == "p{color:red}@media print{p{margin:0}}p{padding:0}"


@pytest.mark.parametrize(
    ("css", "expected"),
    [
        ("p{top:0;left:0}a{top:1px}p{top:2px}", "p{left:0}a{top:1px}p{top:2px}"),
        ("p,a{top:0}p{top:2px}", "p,a{top:0}p{top:2px}"),
        ("p,a{top:0}p{top:1px}a{top:2px}", "p{top:1px}a{top:2px}"),
        ("p{top:0!important}p{top:1px}", "p{top:0!important}p{top:1px}"),
        ("p{top:0}p{top:1px!important}", "p{top:1px!important}"),
        ("p{top:0}@media print{p{top:1px}}", "p{top:0}@media print{p{top:1px}}"),
        ("p{top:0}p,a::-moz-selection{top:1px}", "p{top:0}p,a::-moz-selection{top:1px}"),
        ("p{top:0;top:1px}", "p{top:0;top:1px}"),
    ],
)
def test_what_is_said_again_later_goes(
    page: used_names.Vocabulary, css: str, expected: str
) -> None:
    assert stylesheet.combine([("a.css", css)], page) == expected


def test_addresses_are_seen_from_the_result(page: used_names.Vocabulary) -> None:
    css = "@font-face{font-family:A;src:url('../f/a.woff2')}p{font-family:A;background:url(data:x)}"
    text = stylesheet.combine([("styles/a.css", css)], page)
    assert "url(f/a.woff2)" in text
    assert "url(data:x)" in text


def test_without_javascript_the_system_chooses_the_mode(page: used_names.Vocabulary) -> None:
    css = 'html[data-theme="dark"] p,a{color:white}'
    assert stylesheet.combine([("a.css", css)], page) == (
        "html[data-theme=dark] p,a{color:white}"
        "@media (prefers-color-scheme:dark){html[data-theme=auto] p{color:white}}"
    )


def test_paper_is_always_light(page: used_names.Vocabulary) -> None:
    css = 'html[data-theme="light"] p{color:black}html[data-theme="dark"] p{color:white}'
    text = stylesheet.combine([("a.css", css)], page)
    assert text.endswith("@media print{html[data-theme] p{color:black}}")


def test_an_import_is_an_error(page: used_names.Vocabulary) -> None:
    with pytest.raises(ValueError, match="imports"):
        stylesheet.combine([("a.css", "@import 'b.css';")], page)
