/** The `depth` figure: the gradient in each block of a new stack, with Post-LN and with Pre-LN. */
(function () {
  "use strict";

  const { h, fixed, number, color, small, entry, svg, choice, button, controls } = Drawing;
  const { forward, backward, dot, normal, vector } = NormMath;

  const EPS = 1e-5;
  const FEATURES = 16;
  const STACKS = 12;
  const [BLOCKS, SCALES] = [[6, 12, 24], [0.5, 1, 2]];
  const [WIDTH, LEFT, RIGHT, HEIGHT] = [400, 40, 392, 150];
  const REACH = 2; // powers of ten, up and down; anything beyond is drawn at the edge
  const DOTS = { "stroke-width": "4", "stroke-linecap": "round", "stroke-opacity": "0.3" }; // lines of length 0
  const ONES = Array(FEATURES).fill(1);
  const ZEROS = Array(FEATURES).fill(0);

  function start(options) {
    return { id: "depth", alt: "", blocks: 24, scale: 1, path: "both", seed: 1, ...options };
  }

  /** The stacks with weights of variance 1 / width: a row, an upstream gradient and two matrices per block. */
  const drawn = new Map();
  function stacks(seed) {
    if (!drawn.has(seed)) {
      const next = normal(seed);
      const row = () => vector(FEATURES, next);
      const matrix = () => Array.from({ length: FEATURES }, () => row().map((value) => value / Math.sqrt(FEATURES)));
      const one = () => ({ row: row(), upstream: row(), weights: Array.from({ length: Math.max(...BLOCKS) }, () => [matrix(), matrix()]) });
      drawn.set(seed, Array.from({ length: STACKS }, one));
    }
    return drawn.get(seed);
  }

  const times = (matrix, row, scale) => matrix.map((line) => scale * dot(line, row));
  const transposed = (matrix, row, scale) => row.map((_, j) => scale * matrix.reduce((total, line, i) => total + line[j] * row[i], 0));
  const plus = (a, b) => a.map((value, i) => value + b[i]);
  const norm = (x) => forward(x, ONES, ZEROS, EPS).y;
  const normBackward = (dy, x) => backward(dy, x, ONES, EPS).dx;
  const length = (a) => Math.sqrt(dot(a, a));

  /** The norm of the gradient of each block's second matrix, from the first block to the last. */
  function gradients({ row, upstream, weights }, isPost, { blocks, scale, path }) {
    let x = row;
    const passed = weights.slice(0, blocks).map(([first, second]) => {
      const read = isPost ? x : norm(x);
      const before = times(first, read, scale);
      const hidden = before.map((value) => Math.max(0, value));
      const sum = plus(x, times(second, hidden, scale));
      const kept = { first, second, before, hidden, input: x, sum };
      x = isPost ? norm(sum) : sum;
      return kept;
    });
    let g = isPost ? upstream : normBackward(upstream, x);
    const found = [];
    for (const { first, second, before, hidden, input, sum } of passed.reverse()) {
      if (isPost) g = normBackward(g, sum);
      found.unshift(length(g) * length(hidden));
      if (path === "stream") continue;
      const inner = transposed(second, g, scale).map((value, i) => (before[i] > 0 ? value : 0));
      const branch = transposed(first, inner, scale);
      g = plus(g, isPost ? branch : normBackward(branch, input));
    }
    return found;
  }

  /** For each stack, the gradients relative to that of the last block. */
  function computed(state) {
    const all = (isPost) => stacks(state.seed).map((stack) => gradients(stack, isPost, state).map((value, i, found) => value / found[found.length - 1]));
    const typical = (runs) => Math.exp(runs.reduce((total, run) => total + Math.log(run[0]), 0) / runs.length);
    const [post, pre] = [all(true), all(false)];
    return { post, pre, postFirst: typical(post), preFirst: typical(pre) };
  }

  function panel(top, title, tint, runs) {
    const [high, low] = [top + 22, top + HEIGHT - 14];
    const y = (value) => (high + low) / 2 - (Math.max(-REACH, Math.min(REACH, Math.log10(value))) / REACH) * ((low - high) / 2);
    const count = runs[0].length;
    const x = (block) => LEFT + ((block + 0.5) / count) * (RIGHT - LEFT);
    const middle = (block) => Math.exp(runs.reduce((total, run) => total + Math.log(run[block]), 0) / runs.length);
    const at = (value, block) => `${x(block).toFixed(1)} ${y(value).toFixed(1)}`;
    const ticks = [[100, "100"], [10, "10"], [1, "1"], [0.1, "1/10"], [0.01, "1/100"]];
    return [
      h("rect", { x: 0, y: top + 0.5, width: 10, height: 10, rx: 2, fill: tint }),
      h("text", { x: 16, y: top + 10, "font-weight": "650" }, title),
      ticks.map(([value, text]) => [
        h("line", { x1: LEFT, y1: y(value), x2: RIGHT, y2: y(value), stroke: color.rule }),
        h("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end", ...small }, text),
      ]),
      runs.map((run) => h("path", { d: run.map((value, block) => `M${x(block).toFixed(1)} ${y(value).toFixed(0)}h0`).join(""), ...DOTS, stroke: tint })),
      h("polyline", { points: runs[0].map((_, block) => at(middle(block), block)).join(" "), fill: "none", stroke: tint, "stroke-width": "2.5", "stroke-linejoin": "round" }),
    ];
  }

  function view(state, live) {
    const result = computed(state);
    const drawing = svg(
      WIDTH,
      2 * HEIGHT + 36,
      state.alt,
      live,
      panel(4, "Post-LN", "var(--ln-post-ln)", result.post),
      panel(HEIGHT + 12, "Pre-LN", "var(--ln-pre-ln)", result.pre),
      h("text", { x: LEFT, y: 2 * HEIGHT + 26, fill: color.muted }, "first block"),
      h("text", { x: RIGHT, y: 2 * HEIGHT + 26, "text-anchor": "end", fill: color.muted }, "last block")
    );
    const first = (term, name, value) => entry(term, number(name, value, ratio(value)));
    return [
      drawing,
      h(
        "div",
        { class: "ln-play-side" },
        controls(
          live,
          choice(state.id, "blocks", "blocks", BLOCKS.map((count) => [count, String(count)]), state.blocks),
          choice(state.id, "scale", "size of the weights", SCALES.map((size) => [size, `× ${size}`]), state.scale),
          choice(state.id, "path", "gradients pass through", [["both", "stream and branches"], ["stream", "the stream only"]], state.path),
          h("div", { class: "ln-play-buttons" }, button("seed", 1, "Draw other weights"))
        ),
        h(
          "dl",
          { class: "ln-play-readout" },
          first("Post-LN: first block / last", "post", result.postFirst),
          first("Pre-LN: first block / last", "pre", result.preFirst),
          live && h("data", { hidden: true, "data-name": "all", value: JSON.stringify({ seed: state.seed, blocks: state.blocks, scale: state.scale, path: state.path, post: result.post, pre: result.pre }) })
        )
      ),
    ];
  }

  /** A ratio with two digits. */
  function ratio(value) {
    if (value >= 10) return fixed(value, 0);
    return value >= 0.1 ? fixed(value, 1) : `1/${fixed(1 / value, 0)}`;
  }

  function update(state, act, value) {
    if (act === "seed") return { ...state, seed: state.seed + 1 };
    return { ...state, [act]: act === "path" ? value : Number(value) };
  }

  function status(state) {
    const { postFirst, preFirst } = computed(state);
    return `${state.blocks} blocks: from the last block to the first, the gradient changes by a factor of ${ratio(postFirst)} with Post-LN and ${ratio(preFirst)} with Pre-LN.`;
  }

  Playground.depth = { start, view, update, status };
})();
