/** The `batch` figure: one example in forty batches, normalized by BatchNorm and by LayerNorm. */
(function () {
  "use strict";

  const { h, fixed, number, color, small, entry, svg, choice, button, controls } = Drawing;
  const { forward, statistics, normal, vector } = NormMath;

  const EPS = 1e-5;
  const [WIDTH, LEFT, RIGHT, HEIGHT] = [400, 34, 390, 128];
  const BATCHES = 40;
  const SIZES = [2, 4, 8, 16, 32, 64];
  const REACH = 3;
  /** The example: a row of five features. BatchNorm is shown for the first one. */
  const ROW = [0.4, -0.5, 0.2, 1.6, -1.1];
  const FEATURE = 0;

  function start(options) {
    return { id: "batch", alt: "", size: 4, seed: 1, ...options };
  }

  /** For each batch, the first feature of its examples, starting with the example that the figure tracks. */
  function batches({ size, seed }) {
    const others = vector(BATCHES * SIZES[SIZES.length - 1], normal(seed));
    return Array.from({ length: BATCHES }, (_, i) => [ROW[FEATURE], ...others.slice(i * 64, i * 64 + size - 1)]);
  }

  function computed(state) {
    const given = batches(state);
    const bn = given.map((values) => {
      const found = statistics(values, EPS);
      return (values[0] - found.mean) * found.rstd;
    });
    const ones = ROW.map(() => 1);
    const ln = forward(ROW, ones, ROW.map(() => 0), EPS).xhat[FEATURE];
    return { given, bn, ln, spread: Math.sqrt(statistics(bn, 0).variance) };
  }

  function strip(top, title, text, tint, values) {
    const [high, low] = [top + 24, top + HEIGHT - 16];
    const y = (value) => low - ((Math.max(-REACH, Math.min(REACH, value)) + REACH) / (2 * REACH)) * (low - high);
    return [
      h("rect", { x: 0, y: top + 0.5, width: 10, height: 10, rx: 2, fill: tint }),
      h("text", { x: 16, y: top + 10 }, h("tspan", { "font-weight": "650" }, title), h("tspan", { fill: color.muted }, `  ${text}`)),
      [-2, 0, 2].map((value) => [
        h("line", { x1: LEFT, y1: y(value), x2: RIGHT, y2: y(value), stroke: color.rule }),
        h("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end", ...small }, fixed(value, 0)),
      ]),
      values.map((value, i) => h("circle", { cx: LEFT + ((i + 0.5) / BATCHES) * (RIGHT - LEFT), cy: y(value), r: 4, fill: tint, "fill-opacity": "0.75" })),
    ];
  }

  function view(state, live) {
    const result = computed(state);
    const drawing = svg(
      WIDTH,
      2 * HEIGHT + 36,
      state.alt,
      live,
      strip(4, "BatchNorm", `its output in batches of ${state.size}`, "var(--ln-batch-norm)", result.bn),
      strip(HEIGHT + 12, "LayerNorm", "its output in the same batches", "var(--ln-layer-norm)", result.bn.map(() => result.ln)),
      h("text", { x: (LEFT + RIGHT) / 2, y: 2 * HEIGHT + 26, "text-anchor": "middle", fill: color.muted }, `${BATCHES} batches with the same example in each`)
    );
    return [
      drawing,
      h(
        "div",
        { class: "ln-play-side" },
        controls(live, choice(state.id, "size", "examples per batch", SIZES.map((size) => [size, String(size)]), state.size), h("div", { class: "ln-play-buttons" }, button("seed", 1, "Draw other batches"))),
        h(
          "dl",
          { class: "ln-play-readout" },
          entry("BatchNorm: spread", number("spread", result.spread, fixed(result.spread))),
          entry("LayerNorm: spread", number("ln-spread", 0, fixed(0))),
          h("data", { hidden: true, "data-name": "all", value: JSON.stringify({ row: ROW, feature: FEATURE, eps: EPS, size: state.size, given: result.given, bn: result.bn, ln: result.ln }) })
        )
      ),
    ];
  }

  function update(state, act, value) {
    if (act === "seed") return { ...state, seed: state.seed + 1 };
    return { ...state, size: Number(value) };
  }

  function status(state) {
    return `Batches of ${state.size}: the output of BatchNorm varies by ${fixed(computed(state).spread)}, that of LayerNorm not at all.`;
  }

  Playground.batch = { start, view, update, status };
})();
