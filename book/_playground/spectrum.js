/** The `spectrum` figure: the eigenvalues of LayerNorm's Jacobian against the row's spread, for any ε. */
(function () {
  "use strict";

  const { h, power, tiny, number, color, small, axes, entry, halo, svg, range, button, controls } = Drawing;
  const { eigenvalues } = NormMath;

  const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [400, 270, 44, 384, 26, 226];
  const [LOW_SIGMA, HIGH_SIGMA, LOW_VALUE, HIGH_VALUE] = [-5, 1, -9, 5]; // powers of ten
  const POINTS = 80;
  const FEATURES = 5;

  /** The initial state. @param {{sigma?: number, eps?: number}} options powers of ten */
  function start(options) {
    return { id: "spectrum", alt: "", sigma: 0, eps: -5, ...options };
  }

  const across = (logSigma) => LEFT + ((logSigma - LOW_SIGMA) / (HIGH_SIGMA - LOW_SIGMA)) * (RIGHT - LEFT);
  const down = (value) => BOTTOM - ((Math.max(LOW_VALUE, Math.log10(value)) - LOW_VALUE) / (HIGH_VALUE - LOW_VALUE)) * (BOTTOM - TOP);

  const at = (logSigma, logEps) => eigenvalues(10 ** (2 * logSigma), 10 ** logEps);

  function curve(state, name, tint) {
    const points = Array.from({ length: POINTS + 1 }, (_, i) => {
      const logSigma = LOW_SIGMA + (i / POINTS) * (HIGH_SIGMA - LOW_SIGMA);
      return `${across(logSigma).toFixed(1)},${down(at(logSigma, state.eps)[name]).toFixed(1)}`;
    });
    return h("polyline", { points: points.join(" "), fill: "none", stroke: tint, "stroke-width": "2.5", "stroke-linejoin": "round" });
  }

  const grid = axes(
    [LEFT, RIGHT, BOTTOM],
    [-8, -4, 0, 4].map((exponent) => [down(10 ** exponent), power(exponent)]),
    [-5, -3, -1, 1].map((exponent) => [across(exponent), power(exponent)]),
    "standard deviation σ of the row",
    ["eigenvalue", "what a gradient is multiplied by"]
  );

  function mark(x, y, tint, shown) {
    const left = x > (LEFT + RIGHT) / 2;
    return [
      h("circle", { cx: x, cy: y, r: 6, fill: tint, stroke: color.paper, "stroke-width": "2" }),
      h("text", { x: left ? x - 11 : x + 11, y: y - 8, "text-anchor": left ? "end" : "start", "font-weight": "650", fill: tint, ...halo }, shown),
    ];
  }

  function drawing(state, live) {
    const values = at(state.sigma, state.eps);
    const corner = Math.min(HIGH_SIGMA, Math.max(LOW_SIGMA, state.eps / 2));
    const x = across(state.sigma);
    return svg(
      WIDTH,
      HEIGHT,
      state.alt,
      live,
      h("rect", { x: LEFT, y: TOP, width: across(corner) - LEFT, height: BOTTOM - TOP, fill: color.region, "fill-opacity": "0.16" }),
      grid,
      h("text", { x: LEFT + 5, y: BOTTOM - 6, ...small }, corner > -4 ? "σ < √ε" : ""),
      curve(state, "rest", color.first),
      curve(state, "along", color.second),
      h("line", { x1: x, y1: TOP, x2: x, y2: BOTTOM, stroke: color.ink, "stroke-dasharray": "4 4" }),
      mark(x, down(values.rest), color.first, tiny(values.rest)),
      mark(x, down(values.along), color.second, tiny(values.along)),
      h("rect", { x: LEFT, y: TOP, width: RIGHT - LEFT, height: BOTTOM - TOP, fill: "transparent", class: "ln-play-turn", "data-drag": live ? "" : null, "data-act": live ? "drag" : null })
    );
  }

  function view(state, live) {
    const values = at(state.sigma, state.eps);
    const row = (tint, term, name, shown) => entry(term, number(name, values[name], shown), tint);
    return [
      drawing(state, live),
      h(
        "div",
        { class: "ln-play-side" },
        controls(
          live,
          range("sigma", ["σ"], "standard deviation of the row", state.sigma, [LOW_SIGMA, HIGH_SIGMA, 0.1], tiny(10 ** state.sigma)),
          range("eps", ["ε"], "epsilon", state.eps, [-12, 0, 1], power(state.eps)),
          h("div", { class: "ln-play-buttons" }, button("usual", 0, "σ = 1"), button("usual", 1, "σ = √ε"), button("usual", 2, "nearly constant"))
        ),
        h(
          "dl",
          { class: "ln-play-readout" },
          row(color.first, `${FEATURES - 2} of ${FEATURES} directions`, "rest", tiny(values.rest)),
          row(color.second, "along x̂", "along", tiny(values.along)),
          row(null, "along (1, …, 1)", "ones", "0"),
          h("data", { hidden: true, "data-name": "all", value: JSON.stringify({ sigma: 10 ** state.sigma, eps: 10 ** state.eps, ...values }) })
        )
      ),
    ];
  }

  function clipped(value) {
    return Math.min(HIGH_SIGMA, Math.max(LOW_SIGMA, value));
  }

  function update(state, act, value) {
    if (act === "drag") return { ...state, sigma: clipped(state.sigma + (value.x / (RIGHT - LEFT)) * (HIGH_SIGMA - LOW_SIGMA)) };
    if (act === "usual") return { ...state, sigma: clipped([0, state.eps / 2, LOW_SIGMA][Number(value)]) };
    return { ...state, [act]: value };
  }

  function status(state) {
    const { rest, along } = at(state.sigma, state.eps);
    return `Standard deviation ${tiny(10 ** state.sigma)}, epsilon ${power(state.eps)}: most eigenvalues ${tiny(rest)}, along x̂ ${tiny(along)}.`;
  }

  Playground.spectrum = { start, view, update, status, turns: ["sigma"] };
})();
