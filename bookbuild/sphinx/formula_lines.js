/**
 * Splits a displayed formula where a narrow page may break it, and joins the rendered parts.
 *
 * KaTeX sets a formula as one line, and an `aligned` block as one table: on a phone, neither can
 * break. Here a formula becomes lines, a line becomes cells (between the `&` of an `aligned`
 * block), a cell becomes statements (between quads) and a statement becomes pieces, each of which
 * begins with a relation, a plus or a minus. The style sheet lays them out side by side on a wide
 * page and breaks between them on a narrow one. The MathML of the formula stays in one piece.
 */
"use strict";

const RELATIONS = new Set(
  ("= < > \\le \\leq \\ge \\geq \\ne \\neq \\approx \\sim \\simeq \\equiv \\propto \\ll \\gg \\to \\gets \\mapsto " +
    "\\in \\leftarrow \\rightarrow \\Rightarrow \\Longrightarrow \\iff").split(" "),
);
const PLUS = new Set(["+", "-", "\\pm", "\\mp"]);
const QUADS = { "\\quad": 1, "\\qquad": 2 };
const SHORT = 8; // glyphs: a longer left side leaves too little room to its right on a phone
const TOKEN = /\\[a-zA-Z]+\*?|\\[^a-zA-Z]|[^\\]/gsu;
const BLOCK = /^\s*\\begin\{(aligned|gathered)\}([\s\S]*)\\end\{\1\}\s*([.,;]?)\s*$/;

/** The tokens of a formula, as [token, level] pairs; outside all groups, the level is 0. */
function leveled(latex, withBrackets = true) {
  const opens = ["{", "\\left", "\\begin", "\\{", ...(withBrackets ? ["(", "["] : [])];
  const closes = ["}", "\\right", "\\end", "\\}", ...(withBrackets ? [")", "]"] : [])];
  const found = [];
  let level = 0;
  let fence = false; // the character after \left or \right belongs to it
  for (const [token] of latex.matchAll(TOKEN)) {
    const counts = !fence || !token.trim();
    if (counts && closes.includes(token)) level -= 1;
    if (level < 0) return withBrackets ? leveled(latex, false) : null;
    // The token that closes a group counts as part of it, and so does the name after \begin or
    // \end.
    found.push([token, counts && closes.includes(token) ? level + 1 : level]);
    if (counts && opens.includes(token)) level += 1;
    if (token.trim()) fence = token === "\\left" || token === "\\right";
  }
  if (level !== 0) return withBrackets ? leveled(latex, false) : null;
  return found;
}

/** Split a formula at tokens outside groups for which `splits` is true, into parts with the token before each. */
function split(latex, splits, withBrackets = true) {
  const tokens = leveled(latex, withBrackets);
  if (tokens === null) return [{ text: latex, at: "" }];
  const parts = [{ text: "", at: "" }];
  tokens.forEach(([token, level], i) => {
    const last = parts[parts.length - 1];
    if (level === 0 && splits(token, last.text, tokens, i)) parts.push({ text: "", at: token });
    else last.text += token;
  });
  return parts;
}

/** The next token that isn't a space, from `i` on in steps of `step`. */
function neighbor(tokens, i, step) {
  do i += step;
  while (tokens[i] && !tokens[i][0].trim());
  return tokens[i] ? tokens[i][0] : "";
}

function statements(cell) {
  const near = (tokens, i) => [neighbor(tokens, i, -1), neighbor(tokens, i, 1)];
  // A quad next to an arrow is part of its spacing, and the arrow begins a piece.
  return split(
    cell,
    (token, before, tokens, i) =>
      token in QUADS && before.trim() && near(tokens, i).every((token) => token && !RELATIONS.has(token)),
  ).map(({ text, at }) => ({ text, gap: QUADS[at] || 0 }));
}

function pieces(statement) {
  const parts = split(statement, (token, before, tokens, i) => {
    const last = neighbor(tokens, i, -1);
    if (!before.replace(/\\q?quad|\{\}/g, "").trim()) return false;
    if (RELATIONS.has(token)) return !RELATIONS.has(last);
    return PLUS.has(token) && !RELATIONS.has(last) && !PLUS.has(last) && !/^[,(^_&]?$|^\\(cdot|odot|times|quad|qquad|,|;)$/.test(last);
  });
  return parts.map(({ text, at }, i) => (i === 0 ? tied(text) : tied(`{}${at}${text}`)));
}

/** Keep the sign that begins a piece with what follows it: KaTeX would let a line end with the sign. */
function tied(piece) {
  const sign = /^((?:\s|\{\})*)(\\[a-zA-Z]+|[=<>+-])/.exec(piece);
  if (!sign || !(RELATIONS.has(sign[2]) || PLUS.has(sign[2]))) return piece;
  return `${sign[0]}\\nobreak ${piece.slice(sign[0].length)}`;
}

/** The lines of a formula: each has `extra` space and `cells`. */
function lines(latex) {
  const block = BLOCK.exec(latex);
  if (!block) return { kind: "", lines: [{ extra: "", cells: [latex] }] };
  const [, kind, inside, end] = block;
  const found = split(inside, (token) => token === "\\\\", false).map(({ text }, i) => {
    const [, extra, rest] = i === 0 ? [null, "", text] : /^\s*(?:\[([^\]]*)\])?([\s\S]*)$/.exec(text);
    const cells = split(rest, (token) => token === "&", false).map((part) => part.text);
    return { extra: extra || "", cells };
  });
  if (!found[found.length - 1].cells.join("").trim()) found.pop();
  const last = found[found.length - 1].cells;
  last[last.length - 1] += end;
  return { kind, lines: found };
}

const span = (name, inside, style) => `<span class="${name}"${style ? ` style="${style}"` : ""}>${inside}</span>`;

/** How many glyphs a reader sees in some markup: a rough measure of its width. */
const glyphs = (markup) => [...markup.replace(/<[^>]*>|[\u200b\s]/g, "")].length;

/** A statement: after a short left side, further lines align with its relation; otherwise they're indented. */
function statement(parts, gap, isTop) {
  const [first, ...rest] = parts.map((part) => span("ln-piece", part));
  const name = `ln-statement${gap === 1 ? " ln-near" : ""}`;
  if (isTop && rest.length && glyphs(first) <= SHORT) return span(`${name} ln-short`, first + span("ln-rest", rest.join("")));
  return span(name, first + rest.join(""));
}

/**
 * The markup of a displayed formula, or null if it has no place to break.
 *
 * @param {string} latex
 * @param {(latex: string) => string} render sets a part of the formula
 */
function broken(latex, render) {
  // A definition or a switch would have to apply to all parts.
  if (/\\(def|newcommand|displaystyle|textstyle|tag|color|rm|bf)\b/.test(latex)) return null;
  const { kind, lines: found } = lines(latex);
  const columns = Math.max(...found.map((line) => line.cells.length));
  let count = 0;
  const set = (cell, column) => {
    if (!cell.trim()) return "";
    const made = statements(cell).map(({ text, gap }, i) => {
      const parts = pieces(column % 2 && i === 0 ? `{}${text}` : text);
      count += parts.length;
      return statement(parts.map((part) => render(`\\displaystyle ${part}`)), gap, column % 2 === 0);
    });
    return made.join("");
  };
  const table = found.map(({ extra, cells }) => ({ extra, cells: cells.map(set) }));
  if (count === 1) return null;
  const made = table.map(({ extra, cells }) => {
    const apart = extra ? `margin-top:${extra}` : "";
    return span("ln-line", cells.map((cell) => span("ln-cell", cell, apart)).join(""));
  });
  const isWide = kind === "aligned" && table.some(({ cells }) => cells[1] && glyphs(cells[0]) > SHORT);
  const name = `ln-lines${kind && ` ln-${kind}`}${isWide ? " ln-stacked" : ""}`;
  return span(name, made.join(""), columns > 2 ? `--columns:${columns}` : "");
}

module.exports = { broken, lines, statements, pieces };
