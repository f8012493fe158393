/** The `signals` figure: how large a signal is after each of 20 layers, with and without LayerNorm. */
(function () {
  "use strict";

  const { h, fixed, power, tiny, number, axes, entry, halo, svg, range, button, controls } = Drawing;
  const { dot, forward, normal, vector, times } = NormMath;

  const [LAYERS, FEATURES] = [20, 64];
  const [LOW, HIGH] = [0.4, 2]; // factors on the weights
  const ONES = Array(FEATURES).fill(1);
  const ZEROS = Array(FEATURES).fill(0);
  const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [400, 270, 40, 384, 26, 226];
  const REACH = 8; // powers of ten, up and down
  const WAYS = [
    ["none", "no norm", "var(--ln-no-norm)"],
    ["norm", "LayerNorm", "var(--ln-layer-norm)"],
  ];

  function start(options) {
    return { id: "signals", alt: "", factor: 1.8, seed: 1, ...options };
  }

  /** A row, and weights with the standard deviation sqrt(2 / features). */
  const drawn = new Map();
  function network(seed) {
    if (!drawn.has(seed)) {
      const next = normal(seed);
      const row = vector(FEATURES, next);
      const line = () => vector(FEATURES, next).map((value) => value * Math.sqrt(2 / FEATURES));
      drawn.set(seed, { row, layers: Array.from({ length: LAYERS }, () => Array.from({ length: FEATURES }, line)) });
    }
    return drawn.get(seed);
  }

  const size = (row) => Math.sqrt(dot(row, row) / row.length);

  /** The root mean square of the row, and of what each layer makes of it. */
  function sizes({ seed, factor }, normalizes) {
    const { row, layers } = network(seed);
    const found = [size(row)];
    let signal = row;
    for (const weights of layers) {
      const summed = times(weights, signal).map((value) => factor * value);
      const inputs = normalizes ? forward(summed, ONES, ZEROS, 0).y : summed;
      signal = inputs.map((value) => Math.max(0, value));
      found.push(size(signal));
    }
    return found;
  }

  const computed = (state) => ({ none: sizes(state, false), norm: sizes(state, true) });

  const across = (layer) => LEFT + (layer / LAYERS) * (RIGHT - LEFT);
  const down = (value) => (TOP + BOTTOM) / 2 - (Math.log10(value) / REACH) * ((BOTTOM - TOP) / 2);

  const grid = axes(
    [LEFT, RIGHT, BOTTOM],
    [-6, -3, 0, 3, 6].map((exponent) => [down(10 ** exponent), exponent ? power(exponent) : "1"]),
    [0, 5, 10, 15, 20].map((layer) => [across(layer), String(layer)]),
    "layers passed",
    ["size of the signal", "its root mean square"]
  );

  function line(values, label, tint) {
    const points = values.map((value, layer) => `${across(layer).toFixed(1)},${down(value).toFixed(1)}`);
    const middle = LAYERS / 2;
    // A rising line has room for its name above, a falling one below.
    const rises = values[LAYERS] >= values[middle];
    return [
      h("polyline", { points: points.join(" "), fill: "none", stroke: tint, "stroke-width": "2.5", "stroke-linejoin": "round" }),
      values.map((value, layer) => h("circle", { cx: across(layer), cy: down(value), r: 3, fill: tint })),
      { label: h("text", { x: across(middle), y: down(values[middle]) + (rises ? -14 : 24), "text-anchor": rises ? "end" : "start", "font-weight": "650", fill: tint, ...halo }, label) },
    ];
  }

  /** The two lines and, over both, their names. */
  function lines(found) {
    const apart = Math.abs(down(found.none[LAYERS / 2]) - down(found.norm[LAYERS / 2]));
    const [none, norm] = WAYS.map(([name, label, tint]) => line(found[name], label, tint));
    const below = h("text", { x: RIGHT, y: down(found.norm[LAYERS]) + (found.none[LAYERS] > found.norm[LAYERS] ? 20 : -10), "text-anchor": "end", "font-weight": "650", fill: WAYS[1][2], ...halo }, WAYS[1][1]);
    return [none.slice(0, 2), norm.slice(0, 2), apart > 14 && none[2].label, below];
  }

  function view(state, live) {
    const found = computed(state);
    const last = ([name, label, tint]) => entry(`${label}: after layer ${LAYERS}`, number(name, found[name][LAYERS], short(found[name][LAYERS])), tint);
    return [
      svg(WIDTH, HEIGHT, state.alt, live, grid, lines(found)),
      h(
        "div",
        { class: "ln-play-side" },
        controls(
          live,
          range("factor", ["s"], "factor on the weights", state.factor, [LOW, HIGH, 0.1], fixed(state.factor, 1)),
          h("div", { class: "ln-play-buttons" }, button("usual", 0.5, "s = 0.5"), button("usual", 1, "s = 1"), button("usual", 2, "s = 2"), button("seed", 1, "Draw other weights"))
        ),
        h("dl", { class: "ln-play-readout" }, WAYS.map(last), live && h("data", { hidden: true, "data-name": "all", value: JSON.stringify({ seed: state.seed, factor: state.factor, ...found }) }))
      ),
    ];
  }

  /** A size with two digits. */
  function short(value) {
    if (value >= 1e4) return `${fixed(value / 10 ** Math.floor(Math.log10(value)), 1)} · ${power(Math.floor(Math.log10(value)))}`;
    return value >= 1 ? fixed(value, value >= 10 ? 0 : 1) : value >= 0.01 ? fixed(value) : tiny(value);
  }

  function update(state, act, value) {
    if (act === "seed") return { ...state, seed: state.seed + 1 };
    return { ...state, factor: Number(value) };
  }

  function status(state) {
    const { none, norm } = computed(state);
    return `Weights times ${fixed(state.factor, 1)}: after ${LAYERS} layers, the signal has size ${short(none[LAYERS])} without a norm and ${short(norm[LAYERS])} with LayerNorm.`;
  }

  Playground.signals = { start, view, update, status, turns: ["factor"] };
})();
