"""Code and signatures use fewer elements, but look the same."""

from bs4 import BeautifulSoup
from sphinx.highlighting import PygmentsBridge

from bookbuild.sphinx import light_markup

CODE = """\
@decorate
def twice(x: int = 2) -> float:
    "Docstring."
    return x * 2.5  # a comment
"""
NAME = '<span class="sig-name descname"><span class="pre">f</span></span>'
SIGNATURE = f"""<p><span class="p">outside</span></p>
<dt class="sig sig-object py" id="f">
{NAME}<span class="sig-paren">(</span><em class="sig-param"><span class="n"><span
class="pre">x</span></span><span class="p"><span class="pre">:</span></span><span
class="w"> </span><span class="n"><a href="#T"><span class="pre">T</span></a><span
class="w"> </span><span class="p"><span class="pre">|</span></span><span
class="w"> </span><span class="pre">None</span></span><span class="w"> </span><span
class="o"><span class="pre">=</span></span></em><span class="sig-paren">)</span></dt>
""".replace("<span\nclass", "<span class")


def text(html: str) -> str:
    return BeautifulSoup(html, "html.parser").get_text()


def test_only_code_with_a_style_has_elements() -> None:
    bridge = PygmentsBridge("html")
    before = bridge.highlight_block(CODE, "python")
    bridge.formatter = light_markup.Formatter
    after = bridge.highlight_block(CODE, "python")
    assert text(after) == text(before)
    soup = BeautifulSoup(after, "html.parser")
    assert {
        tag["class"][0] for tag in BeautifulSoup(before, "html.parser").select("span[class]")
    } > {"n", "p", "w"}
    assert [tag.get_text() for tag in soup.select("span[class]")] == [
        *("@decorate", "def", "twice", "int", "=", "2", "->", "float"),
        *('"Docstring."', "return", "*", "2.5", "# a comment"),
    ]


def test_signatures_keep_what_the_style_sheet_needs() -> None:
    found = light_markup.signatures(SIGNATURE)
    assert text(found) == text(SIGNATURE)
    soup = BeautifulSoup(found, "html.parser")
    assert soup.select_one("p .p") is not None
    dt = soup.select_one("dt")
    assert dt is not None
    assert [tag.get_text() for tag in dt.select("em > .n:first-child")] == ["x"]
    assert [tag.get_text() for tag in dt.select("a")] == ["T"]
    assert dt.select(".pre, .p, .w") == []
    assert len(dt.select("span")) == 5  # the name, both brackets, the parameter, and "="
