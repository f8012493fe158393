"""States the license of the figures, on the page and in the files."""

from __future__ import annotations

NAME = "CC BY 4.0"
ADDRESS = "https://creativecommons.org/licenses/by/4.0/"
CREATOR = "The contributors to the Layer Normalization course"

IN_CAPTION = (
    f'<p class="ln-figure-license"><a rel="license noopener" href="{ADDRESS}">{NAME}</a></p>'
)
# Someone who opens only the file can still see whose it is:
# https://wiki.creativecommons.org/wiki/XMP
IN_FILE = (
    '<metadata><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
    'xmlns:cc="http://creativecommons.org/ns#" xmlns:dc="http://purl.org/dc/elements/1.1/">'
    f'<cc:Work rdf:about=""><dc:creator>{CREATOR}</dc:creator>'
    f'<cc:license rdf:resource="{ADDRESS}"/></cc:Work></rdf:RDF></metadata>'
)


def in_caption(body: str) -> str:
    """A page's HTML, with the license at the end of each figure's caption."""
    return body.replace("</figcaption>", f"{IN_CAPTION}</figcaption>")


def in_file(svg: str) -> str:
    """A figure's SVG, with the license in its metadata."""
    start = svg.index("<svg")
    end = svg.index(">", start) + 1
    return svg if svg[end - 2] == "/" else svg[:end] + IN_FILE + svg[end:]
