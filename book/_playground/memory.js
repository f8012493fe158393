/** The `memory` figure: how much of its first state an LSTM's cell still holds, for any forget bias. */
(function () {
  "use strict";

  const { h, fixed, power, tiny, number, axes, entry, svg, range, button, controls } = Drawing;
  const { statistics, normal, vector, times } = NormMath;

  const [STEPS, EXAMPLES, INPUTS, FEATURES] = [200, 4, 8, 32];
  const EPS = 1e-5;
  const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [400, 270, 40, 384, 26, 226];
  const LEAST = -8; // the lowest power of ten in the drawing
  const CELLS = [
    ["none", "no norm", "var(--ln-no-norm)"],
    ["ba", "ba", "var(--ln-layer-norm)"],
    ["per-gate", "per-gate", "var(--ln-per-gate)", "7 5"], // dashed, since it often lies on the one before
    ["carried", "carried", "var(--ln-carried)"],
  ];

  function start(options) {
    return { id: "memory", alt: "", bias: 5, seed: 1, ...options };
  }

  function norm(row) {
    const { mean, rstd } = statistics(row, EPS);
    return row.map((value) => (value - mean) * rstd);
  }

  const quarter = (row, k) => row.slice(k * FEATURES, (k + 1) * FEATURES);
  const shown = (share) => (share < 1e-12 ? `below ${power(-12)}` : tiny(share)); // the rest is rounding
  const sigmoid = (value) => 1 / (1 + Math.exp(-value));

  /**
   * For each seed: two cell states for each example and, for each step and example, the summed
   * inputs of the gates. There's no feedback, so they don't depend on the cell.
   */
  const drawn = new Map();
  function given(seed) {
    if (!drawn.has(seed)) {
      const next = normal(seed);
      // About as large as PyTorch draws them for a linear layer
      const line = () => vector(INPUTS, next).map((value) => value / Math.sqrt(3 * INPUTS));
      const weights = Array.from({ length: 4 * FEATURES }, line);
      const states = Array.from({ length: EXAMPLES }, () => [vector(FEATURES, next), vector(FEATURES, next)]);
      const summed = Array.from({ length: STEPS }, () => Array.from({ length: EXAMPLES }, () => times(weights, vector(INPUTS, next))));
      drawn.set(seed, { states, summed });
    }
    return drawn.get(seed);
  }

  /** The gates' inputs after the norms of a cell. The carried cell has Ba's norm there. */
  function normed(name, summed) {
    if (name === "none") return summed;
    return name === "per-gate" ? [0, 1, 2, 3].flatMap((k) => norm(quarter(summed, k))) : norm(summed);
  }

  /**
   * For each cell and seed, step and example: the input of the forget gate without the bias, and
   * what the other gates write. None of it depends on the slider.
   */
  const gated = new Map();
  function gates(name, seed) {
    const key = `${name === "carried" ? "ba" : name} ${seed}`;
    if (!gated.has(key)) {
      const of = (summed) => {
        const a = normed(name, summed);
        const candidate = quarter(a, 2).map(Math.tanh);
        return { forget: quarter(a, 1), written: quarter(a, 0).map((value, j) => sigmoid(value) * candidate[j]) };
      };
      gated.set(key, given(seed).summed.map((examples) => examples.map(of)));
    }
    return gated.get(key);
  }

  /** The distance between two normalized states, squared. */
  function apart([one, other]) {
    const [a, b] = [statistics(one, EPS), statistics(other, EPS)];
    let squares = 0;
    for (let j = 0; j < FEATURES; j++) {
      squares += ((one[j] - a.mean) * a.rstd - (other[j] - b.mean) * b.rstd) ** 2;
    }
    return squares;
  }

  /** The share of the first state that a cell still holds, before the first step and after each. */
  function shares(name, { seed, bias }) {
    const { states } = given(seed);
    const steps = gates(name, seed);
    const found = Array(STEPS + 1).fill(0);
    states.forEach((pair, example) => {
      let cells = pair.map((cell) => cell.slice());
      found[0] += apart(cells);
      for (let step = 0; step < STEPS; step++) {
        const { forget, written } = steps[step][example];
        for (let j = 0; j < FEATURES; j++) {
          const f = sigmoid(forget[j] + bias);
          for (const cell of cells) cell[j] = f * cell[j] + written[j];
        }
        if (name === "carried") cells = cells.map(norm);
        found[step + 1] += apart(cells);
      }
    });
    return found.map((value) => Math.sqrt(value / found[0]));
  }

  const computed = (state) => Object.fromEntries(CELLS.map(([name]) => [name, shares(name, state)]));

  const across = (step) => LEFT + (step / STEPS) * (RIGHT - LEFT);
  const down = (value) => TOP + (Math.log10(value) / LEAST) * (BOTTOM - TOP);

  const grid = axes(
    [LEFT, RIGHT, BOTTOM],
    [0, -2, -4, -6, -8].map((exponent) => [down(10 ** exponent), exponent ? power(exponent) : "1"]),
    [0, 50, 100, 150, 200].map((step) => [across(step), String(step)]),
    "steps",
    ["share of the initial state", "that the cell still holds"]
  );

  /** A line that ends where it leaves the drawing. */
  function line(values, tint, dashes) {
    const below = values.findIndex((value) => value < 10 ** LEAST);
    const points = values.slice(0, below < 0 ? values.length : below).map((value, step) => `${across(step).toFixed(1)},${down(value).toFixed(1)}`);
    return h("polyline", { points: points.join(" "), fill: "none", stroke: tint, "stroke-width": "2.5", "stroke-dasharray": dashes, "stroke-linejoin": "round" });
  }

  function view(state, live) {
    const found = computed(state);
    const left = ([name, label, tint]) => entry(label, number(name, found[name][STEPS], shown(found[name][STEPS])), tint);
    return [
      svg(WIDTH, HEIGHT, state.alt, live, grid, CELLS.map(([name, , tint, dashes]) => line(found[name], tint, dashes))),
      h(
        "div",
        { class: "ln-play-side" },
        controls(
          live,
          range("bias", "forget bias", "forget bias", state.bias, [0, 10, 0.5], fixed(state.bias, 1)),
          h("div", { class: "ln-play-buttons" }, button("usual", 0, "0"), button("usual", 1, "1"), button("usual", 5, "5"), button("seed", 1, "Draw other weights"))
        ),
        h(
          "dl",
          { class: "ln-play-readout" },
          entry("gate at summed input 0", number("gate", sigmoid(state.bias), tiny(sigmoid(state.bias)))),
          entry(`left after ${STEPS} steps:`, ""),
          CELLS.map(left),
          live && h("data", { hidden: true, "data-name": "all", value: JSON.stringify({ seed: state.seed, bias: state.bias, ...found }) })
        )
      ),
    ];
  }

  function update(state, act, value) {
    if (act === "seed") return { ...state, seed: state.seed + 1 };
    return { ...state, bias: Number(value) };
  }

  function status(state) {
    const found = computed(state);
    return `Forget bias ${fixed(state.bias, 1)}: left after ${STEPS} steps, ${CELLS.map(([name, label]) => `${label} ${shown(found[name][STEPS])}`).join(", ")}.`;
  }

  Playground.memory = { start, view, update, status };
})();
