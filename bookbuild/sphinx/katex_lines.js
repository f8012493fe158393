// Reads one request per line, {latex, katex_options}, and answers each with one line, {html} or
// {error}.
const katex = require(process.argv[2]);
const { broken } = require("./formula_lines.js");

const VISIBLE = '<span class="katex-html" aria-hidden="true">';

/** The markup of a formula; a displayed one can break on narrow pages. */
function rendered(latex, options) {
  const whole = katex.renderToString(latex, options);
  if (!options.displayMode) return whole;
  const [wrapper, end] = [`<span class="katex">${VISIBLE}`, "</span></span>"];
  const part = (latex) =>
    katex.renderToString(latex, { ...options, displayMode: false, output: "html" }).slice(wrapper.length, -end.length);
  const lines = broken(latex, part);
  if (lines === null) return whole;
  return `${whole.slice(0, whole.indexOf(VISIBLE))}${VISIBLE}${lines}</span></span></span>`;
}

require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { latex, katex_options } = JSON.parse(line);
  let answer;
  try {
    answer = { html: rendered(latex, katex_options) };
  } catch (error) {
    answer = { error: error.message };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
});
