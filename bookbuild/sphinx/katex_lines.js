// Reads one request a line, {latex, katex_options}, and answers each with one line, {html} or {error}.
const katex = require(process.argv[2]);

require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { latex, katex_options } = JSON.parse(line);
  let answer;
  try {
    answer = { html: katex.renderToString(latex, katex_options) };
  } catch (error) {
    answer = { error: error.message };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
});
