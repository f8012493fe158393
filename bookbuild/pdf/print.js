/**
 * Prepares the printed book: shrinks anything too wide, and reports what can't be made to fit.
 *
 * Evaluated by bookbuild.pdf.build, not loaded by any page. Returns a list of problems, empty if
 * there are none.
 */
(async () => {
  const SMALLEST = 0.72; // of the text's size: anything smaller is hard to read
  await document.fonts.load("1em KaTeX_Main");
  await document.fonts.ready;
  await Promise.all([...document.images].map((image) => image.decode().catch(() => {})));

  /** The width available to an element: that of the block that contains it, without padding. */
  const room = (element) => {
    const style = getComputedStyle(element);
    return element.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  };

  /** Shrink an element until its content fits, but keep it readable. */
  const shrink = (element, width, available) => {
    if (width <= available + 0.5) return;
    const size = parseFloat(getComputedStyle(element).fontSize);
    const factor = Math.max(SMALLEST, (available / width) * 0.985);
    element.style.fontSize = `${size * factor}px`;
  };

  // Read all widths before changing any: alternating would lay out the whole book every time.
  const jobs = [];
  for (const display of document.querySelectorAll(".katex-display")) {
    const formula = display.querySelector(".katex");
    const html = display.querySelector(".katex-html");
    // A formula's lines can wrap, so only the widest part of each counts.
    const lines = display.querySelector(".ln-lines");
    const bases = [...display.querySelectorAll(".katex-html > .base, .katex-html > .tag")];
    const widest = lines ? Math.max(lines.scrollWidth, lines.getBoundingClientRect().width) : bases.reduce((sum, base) => sum + base.getBoundingClientRect().width, 0);
    const number = display.closest("div.math")?.querySelector(".eqno");
    const taken = number ? number.getBoundingClientRect().width + 8 : 0;
    if (html) jobs.push([formula, widest, room(display) - 2 * taken]);
  }
  for (const code of document.querySelectorAll("pre")) {
    code.style.whiteSpace = "pre";
  }
  for (const code of document.querySelectorAll("pre")) {
    jobs.push([code, code.scrollWidth - 20, code.clientWidth - 20]);
  }
  for (const table of document.querySelectorAll("table")) {
    jobs.push([table, table.scrollWidth, room(table.parentElement)]);
  }
  for (const job of jobs) shrink(...job);
  for (const code of document.querySelectorAll("pre")) code.style.whiteSpace = "";

  const problems = [];
  for (const image of document.images) {
    if (!image.naturalWidth) problems.push(`an image cannot be shown: ${image.getAttribute("src")}`);
  }
  // Anything too wide would be cut off at the page's margin, and be missing from the PDF.
  const isTooWide = (element) => element.clientWidth > 0 && element.scrollWidth > element.clientWidth + 1;
  const left = document.body.getBoundingClientRect().left - 1;
  for (const article of document.querySelectorAll("article, nav")) {
    const name = article.id || "the contents";
    if (isTooWide(article)) {
      const wide = [...article.querySelectorAll("*")]
        .filter((element) => !element.parentElement.closest(".katex") && isTooWide(element));
      const innermost = wide.filter((element) => !wide.some((other) => other !== element && element.contains(other)));
      for (const element of innermost.length ? innermost : [article]) {
        problems.push(`${name}: too wide for the page: ${element.textContent.trim().slice(0, 60)}`);
      }
    }
    for (const element of article.querySelectorAll("p, li, pre, table, img, .katex-display")) {
      if (element.getBoundingClientRect().left < left) {
        problems.push(`${name}: runs over the left margin: ${element.textContent.trim().slice(0, 60)}`);
      }
    }
  }
  return problems;
})();
