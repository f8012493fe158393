/** The `norm` figure: one row passes through LayerNorm, and a gradient comes back. */
(function () {
  "use strict";

  const { h, fixed, power, tiny, number, worked, color, small, halo, svg, range, choice, button, controls } = Drawing;
  const { forward, backward, sum, dot } = NormMath;

  const WIDTH = 380;
  const [LEFT, RIGHT] = [34, 316]; // the features are between these, and the labels outside
  const SUBSCRIPTS = "₁₂₃₄₅₆";
  const MOST = 6;
  const NO_EPS = -9; // the slider's position for an epsilon of 0
  // The scales of what is computed never change, so that bars can be compared before and after.
  const OUTPUT_REACH = 2.5;
  const GRADIENT_REACH = 1;

  const PRESETS = {
    chapter: {
      text: "[4, 2, 8]",
      x: [4, 2, 8],
      gamma: [1.5, 1, 0.5],
      beta: [0.5, 0, -0.5],
      dy: [1, 0, 0],
    },
    thousand: {
      text: "the same, mean 1000 higher",
      x: [1004, 1002, 1008],
      gamma: [1.5, 1, 0.5],
      beta: [0.5, 0, -0.5],
      dy: [1, 0, 0],
      low: 995,
    },
    constant: { text: "a constant row", x: [3, 3, 3, 3], dy: [1, -0.5, 0, 0] },
    outlier: { text: "one outlier", x: [1, 0.5, 0, 1.5, 0.5, 9], dy: [0, 0, 0, 0, 0, 1] },
  };

  /**
   * The guided tour: a question, guesses, and what to try. `before` sets up the question and `after`
   * shows the answer; both are parts of a state.
   */
  const TOUR = [
    {
      ask: "You drag x₃ up, from 8 to 10. What do x̂₁ and x̂₂ do?",
      guesses: ["They stay", "They move closer together", "They move apart"],
      right: 1,
      act: "Drag x₃ to 10",
      before: () => preset("chapter"),
      after: () => ({ x: [4, 2, 10], feature: 2 }),
      why: "You didn't touch x₁ or x₂. But x₃ pulls the mean up and inflates the standard deviation, and all features share both. If you could drag x₃ up forever, x̂₁ and x̂₂ would meet at −1/√2 ≈ −0.71.",
    },
    {
      ask: "Every number in the row grows by 1000. What happens to x̂?",
      guesses: ["It grows by 1000", "It shrinks toward 0", "Nothing"],
      right: 2,
      act: "Add 1000",
      before: () => preset("chapter"),
      after: () => preset("thousand"),
      why: "Only μ changes. The distances from the mean are the same as before, and x̂ depends only on them. (In float32, a large mean costs you digits.)",
    },
    {
      ask: "Six features, and one is far above the others. How large can its x̂ get?",
      guesses: ["As large as you like", "At most √5 ≈ 2.24", "At most 1"],
      right: 1,
      act: "Make x₆ an outlier",
      before: () => ({ ...preset("outlier"), x: [1, 0.5, 0, 1.5, 0.5, 2] }),
      after: () => ({ ...preset("outlier"), feature: 5 }),
      why: "An outlier inflates the standard deviation that it's divided by. In a row of H numbers, no entry of x̂ can exceed √(H − 1). Drag x₆ and watch.",
    },
    {
      ask: "Each output is yᵢ = γᵢ x̂ᵢ + βᵢ. You set γ₁ to 0. Which outputs change?",
      guesses: ["All of them", "Only y₁", "None"],
      right: 1,
      act: "Set γ₁ to 0",
      before: () => ({ ...preset("chapter"), output: true }),
      after: () => ({ gamma: [0, 1, 0.5], chosen: "0" }),
      why: "γ and β come after the normalization, and each acts on one feature only. Now y₁ equals β₁ = 0.5, whatever the row is.",
    },
    {
      ask: "In the backward pass, the loss pushes on y₁ only. Which features of x feel it?",
      guesses: ["Only x₁", "All of them", "None"],
      right: 1,
      act: "Send the gradient back",
      before: () => ({ ...preset("chapter"), output: true, dy: [0, 0, 0] }),
      after: () => ({ gradient: true, dy: [1, 0, 0] }),
      why: "Every number in the row moves the mean and the standard deviation, and y₁ depends on both. The entries of ∂L/∂x sum to 0, because shifting the whole row never changes the output.",
    },
    {
      ask: "All four numbers are equal, and ε is 10⁻⁵. By what factor is the gradient multiplied on its way back?",
      guesses: ["0", "1", "About 316"],
      right: 2,
      act: "Make the row constant",
      before: () => ({ ...preset("constant"), x: [3, 2, 5, 4], output: true, gradient: true }),
      after: () => preset("constant"),
      why: "x̂ and the variance are 0, so LayerNorm subtracts the mean of the gradient and multiplies what's left by 1/√ε ≈ 316. With ε = 0 you'd divide by 0: explore freely, and move the slider of ε to its left end.",
    },
  ];

  function preset(name) {
    const { x, gamma, beta, dy, low } = PRESETS[name];
    return {
      preset: name,
      x: x.slice(),
      gamma: gamma ? gamma.slice() : x.map(() => 1),
      beta: beta ? beta.slice() : x.map(() => 0),
      dy: dy.slice(),
      low: low || -5,
      chosen: gamma ? "0" : "all",
    };
  }

  /** The initial state. @param {{preset?: string, gradient?: boolean, epsPower?: number}} options */
  function start(options) {
    return {
      id: options.id || "norm",
      alt: options.alt || "",
      output: true,
      gradient: true,
      epsPower: -5,
      feature: 0,
      tour: null,
      guess: null,
      tried: false,
      ...preset(options.preset || "chapter"),
      ...options,
    };
  }

  /** A question in the tour, before any guess. */
  function question(state, index) {
    return { ...state, output: false, gradient: false, epsPower: -5, feature: 0, tour: index, guess: null, tried: false, ...TOUR[index].before() };
  }

  function epsilon(state) {
    return state.epsPower === NO_EPS ? 0 : 10 ** state.epsPower;
  }

  function epsilonText(state) {
    return state.epsPower === NO_EPS ? "0" : power(state.epsPower);
  }

  function computed(state) {
    const eps = epsilon(state);
    return {
      eps,
      ...forward(state.x, state.gamma, state.beta, eps),
      ...backward(state.dy, state.x, state.gamma, eps),
    };
  }

  // Drawing ---------------------------------------------------------------------------------------

  /** The area for the bars of all features: from `top` down, with a scale from `low` to `high`. */
  function panel(top, height, low, high) {
    const scale = (value) => top + height - ((value - low) / (high - low)) * height;
    const within = (value) => scale(Math.min(high, Math.max(low, value)));
    return { top, height, low, high, scale: within };
  }

  function column(state, i) {
    const width = (RIGHT - LEFT) / state.x.length;
    return LEFT + (i + 0.5) * width;
  }

  function heading(place, symbol, text, tint) {
    const y = place.top - (place.headroom || 19);
    return [
      h("rect", { x: 0, y: y - 9.5, width: 10, height: 10, rx: 2, fill: tint }),
      h("text", { x: 16, y }, h("tspan", { "font-weight": "650" }, symbol), h("tspan", { fill: color.muted }, `  ${text}`)),
    ];
  }

  function line(x1, y1, x2, y2, stroke, more) {
    return h("line", { x1, y1, x2, y2, stroke, ...more });
  }

  function tick(place, value, digits = 0) {
    return h(
      "text",
      { x: LEFT - 8, y: place.scale(value) + 4, "text-anchor": "end", ...small },
      fixed(value, digits)
    );
  }

  function frame(place, digits) {
    const middle = place.low < 0 && place.high > 0 ? 0 : null;
    return [
      line(LEFT, place.scale(place.low), LEFT, place.scale(place.high), color.rule),
      tick(place, place.low, digits),
      tick(place, place.high, digits),
      middle !== null && tick(place, 0),
      middle !== null && line(LEFT, place.scale(0), RIGHT, place.scale(0), color.rule),
    ];
  }

  /** One value as a bar from 0, with its number at its end; an arrow if it goes off the scale. */
  function bar(state, place, i, value, tint) {
    const x = column(state, i);
    const known = Number.isFinite(value);
    const y = known ? place.scale(value) : place.scale(0);
    const zero = place.scale(0);
    const above = y <= zero;
    const leaves = known && Math.abs(value) > place.high;
    const neck = y + (above ? 9 : -9); // where the head of the arrow begins
    const end = leaves ? neck : y;
    return [
      h("rect", {
        x: x - 9,
        y: Math.min(end, zero),
        width: 18,
        height: known ? Math.abs(end - zero) : 0,
        rx: 2,
        fill: tint,
        "fill-opacity": "0.28",
      }),
      leaves && h("path", { d: `M${x - 12} ${neck}H${x + 12}L${x} ${y}Z`, fill: tint, class: "ln-play-leaves" }),
      known && !leaves && line(x - 9, y, x + 9, y, tint, { "stroke-width": "3", "stroke-linecap": "round" }),
      h(
        "text",
        { x, y: above ? y - 7 : y + 17, "text-anchor": "middle", "font-size": "12", ...halo },
        shortened(value)
      ),
    ];
  }

  /** A number with as many decimals as there is room for. */
  function shortened(value) {
    return fixed(value, Math.abs(value) < 100 ? 2 : Math.abs(value) < 1000 ? 1 : 0);
  }

  /** A bar that can be moved: a slider for the pointer, the keyboard and screen readers. */
  function handle(state, place, act, i, value, from, tint, name, step, live) {
    const x = column(state, i);
    const y = place.scale(value);
    const above = y <= place.scale(from);
    const slider = {
      role: "slider",
      tabindex: "0",
      "data-act": act,
      "data-index": String(i),
      "data-top": String(place.scale(place.high)),
      "data-bottom": String(place.scale(place.low)),
      "data-step": String(step),
      "aria-label": `${name} ${i + 1}`,
      "aria-orientation": "vertical",
      "aria-valuemin": String(place.low),
      "aria-valuemax": String(place.high),
      "aria-valuenow": String(value),
      "aria-valuetext": `${name}${i + 1}, ${value}`,
    };
    return h(
      "g",
      { class: "ln-play-handle", ...(live ? slider : {}) },
      h("rect", { x: x - 20, y: above ? y - 30 : y - 22, width: 40, height: 52, rx: 8, fill: "transparent", class: "ln-play-reach" }),
      h("rect", {
        x: x - 9,
        y: Math.min(y, place.scale(from)),
        width: 18,
        height: Math.abs(y - place.scale(from)),
        fill: tint,
        "fill-opacity": "0.28",
      }),
      h("circle", { cx: x, cy: y, r: 8, fill: tint, stroke: color.paper, "stroke-width": "2" }),
      h("text", { x, y: above ? y - 13 : y + 23, "text-anchor": "middle", "font-weight": "650", ...halo }, fixed(value, value % 1 ? 1 : 0))
    );
  }

  function aside(y, symbol, shown, tint) {
    return h(
      "text",
      { x: RIGHT + 6, y: y + 4, fill: tint },
      h("tspan", { class: "ln-play-symbol" }, symbol),
      h("tspan", { dx: 5 }, shown)
    );
  }

  function rowPanel(state, result, live) {
    const place = { ...panel(42, 132, state.low, state.low + 15), headroom: 28 };
    const sigma = Math.sqrt(result.variance);
    const [up, middle, down] = [sigma, 0, -sigma].map((d) => place.scale(result.mean + d));
    const apart = Math.abs(middle - up) < 18 ? middle - 18 : up;
    return [
      heading(place, "x", "the row (drag it)", color.first),
      frame(place),
      h("rect", { x: LEFT, y: up, width: RIGHT - LEFT, height: Math.max(0, down - up), fill: color.region, "fill-opacity": "0.16" }),
      line(LEFT, middle, RIGHT, middle, color.ink, { "stroke-dasharray": "5 4", "stroke-width": "1.3" }),
      aside(middle, "μ", fixed(result.mean), color.ink),
      aside(apart, "σ", fixed(sigma), color.muted),
      state.x.map((value, i) => handle(state, place, "x", i, value, result.mean, color.first, "x", 0.1, live)),
    ];
  }

  function plainPanel(state, top, symbol, text, values, tint, reach, headroom) {
    const place = { ...panel(top, 72, -reach, reach), headroom };
    return [
      heading(place, symbol, text, tint),
      frame(place, reach % 1 ? 1 : 0),
      values.map((value, i) => bar(state, place, i, value, tint)),
    ];
  }

  /** What every gradient is multiplied by on its way back: 1/√(σ² + ε), beside its panel. */
  function factor(place, { rstd }) {
    const shown = Number.isFinite(rstd) ? fixed(rstd, rstd < 10 ? 2 : 0) : "∞";
    const texts = [
      h("text", { x: RIGHT + 8, y: place - 3, "font-size": "15", "font-weight": "650", fill: color.backward }, `× ${shown}`),
      h("text", { x: RIGHT + 8, y: place + 13, ...small }, "1/√(σ²+ε)"),
    ];
    return h("g", { class: "ln-play-factor" }, texts);
  }

  function upstreamPanel(state, top, live) {
    const place = panel(top, 72, -2, 2);
    place.headroom = 22;
    return [
      heading(place, "∂L/∂y", "the upstream gradient (drag it)", color.fourth),
      frame(place),
      state.dy.map((value, i) => handle(state, place, "dy", i, value, 0, color.fourth, "dL/dy ", 0.1, live)),
    ];
  }

  function parameters(state, top) {
    const written = (x, y, text) =>
      h("text", { x, y, "text-anchor": "middle", ...small }, text);
    return state.x.map((_, i) => [
      written(column(state, i), top, `γ ${fixed(state.gamma[i], 1)}`),
      written(column(state, i), top + 14, `β ${fixed(state.beta[i], 1)}`),
    ]);
  }

  function drawing(state, result, live) {
    return svg(
      WIDTH,
      state.gradient ? 704 : state.output ? 444 : 304,
      state.alt,
      live,
      rowPanel(state, result, live),
      plainPanel(state, 218, "x̂", "normalized", result.xhat, color.third, OUTPUT_REACH),
      state.output && [plainPanel(state, 334, "y = γ x̂ + β", "the output", result.y, color.fifth, OUTPUT_REACH), parameters(state, 423)],
      state.gradient && [
        upstreamPanel(state, 488, live),
        plainPanel(state, 608, "∂L/∂x", "the gradient that reaches the row", result.dx, color.backward, GRADIENT_REACH, 25),
        factor(644, result),
      ]
    );
  }

  // Words and controls ----------------------------------------------------------------------------

  function entry(term, name, value, shown, note) {
    return h("div", {}, h("dt", {}, term), h("dd", {}, number(name, value, shown)), note && h("dd", { class: "ln-play-below" }, note));
  }

  function readout(state, result) {
    const total = sum(result.dx);
    const along = dot(result.dx, result.xhat);
    return h(
      "dl",
      { class: "ln-play-readout" },
      entry("mean μ", "mean", result.mean, fixed(result.mean, 4)),
      entry("standard deviation σ", "sigma", Math.sqrt(result.variance), fixed(Math.sqrt(result.variance), 4)),
      entry("√(σ² + ε)", "root", 1 / result.rstd, tiny(1 / result.rstd)),
      state.gradient && [
        entry("sum of ∂L/∂x", "sum-dx", total, tiny(total), Math.abs(total) < 1e-9 && "0, up to rounding"),
        entry("sum of ∂L/∂x · x̂", "sum-dx-xhat", along, tiny(along), Math.abs(along) < 1e-3 && (result.eps ? "0, up to ε" : "0, up to rounding")),
      ],
      // All digits of the numbers drawn, for programs that read the page.
      h("data", {
        hidden: true,
        "data-name": "all",
        value: JSON.stringify({ x: state.x, gamma: state.gamma, beta: state.beta, dy: state.dy, eps: result.eps, xhat: result.xhat, y: result.y, dx: result.dx }),
      })
    );
  }

  /** The tour: a question with guesses, then something to try, then what happened and why. */
  function guide(state, live) {
    const { ask, guesses, right, act, why } = TOUR[state.tour];
    const last = state.tour === TOUR.length - 1;
    const guessed = state.guess !== null;
    return controls(
      live,
      h(
        "div",
        { class: "ln-tour" },
        h("p", { class: "ln-tour-count" }, `Question ${state.tour + 1} of ${TOUR.length}`),
        choice(state.id, "guess", ask, guesses.map((text, i) => [i, text]), state.guess),
        state.tried
          ? h("p", { class: "ln-tour-why" }, h("strong", {}, verdict(state)), ` ${why}`)
          : h("p", { class: "ln-tour-why" }, guessed ? "Now try it, and watch the bars." : "Guess first. A wrong guess teaches you more than an answer that you only read."),
        h(
          "div",
          { class: "ln-play-buttons" },
          guessed && !state.tried && h("button", { type: "button", class: "ln-tour-go", "data-act": "try", "data-value": "1" }, act),
          state.tried && h("button", { type: "button", class: "ln-tour-go", "data-act": "tour", "data-value": String(last ? 0 : state.tour + 1) }, last ? "Start over" : "Next question"),
          state.tour > 0 && button("tour", state.tour - 1, "Back"),
          button("free", 1, "Explore freely")
        )
      )
    );
  }

  function verdict(state) {
    return state.guess === TOUR[state.tour].right ? "You guessed right." : `It's “${TOUR[state.tour].guesses[TOUR[state.tour].right]}”.`;
  }

  function panelOfControls(state, live) {
    if (state.tour !== null) return guide(state, live);
    const i = state.chosen === "all" ? 0 : Number(state.chosen);
    const index = state.chosen === "all" ? "" : SUBSCRIPTS[i];
    const spoken = state.chosen === "all" ? "of all features" : `of feature ${i + 1}`;
    const features = [["all", "all"], ...state.x.map((_, k) => [k, String(k + 1)])];
    return controls(
      live,
      state.guided && h("div", { class: "ln-play-buttons" }, button("tour", 0, "Take the guided tour")),
      h(
        "div",
        { class: "ln-play-buttons", role: "group", "aria-label": "Example rows" },
        Object.entries(PRESETS).map(([key, { text }]) => button("preset", key, text))
      ),
      h(
        "div",
        { class: "ln-play-buttons", role: "group", "aria-label": "Number of features" },
        button("features", -1, "− feature"),
        button("features", 1, "+ feature")
      ),
      h(
        "label",
        { class: "ln-play-check" },
        h("input", { type: "checkbox", "data-act": "gradient", checked: state.gradient }),
        h("span", {}, "show the gradient")
      ),
      range("eps", ["ε"], "epsilon", state.epsPower, [NO_EPS, 1, 1], epsilonText(state)),
      choice(state.id, "chosen", "γ and β of feature", features, state.chosen),
      range("gamma", ["γ", index], `gamma ${spoken}`, state.gamma[i], [-2, 2, 0.1], fixed(state.gamma[i], 1)),
      range("beta", ["β", index], `beta ${spoken}`, state.beta[i], [-2, 2, 0.1], fixed(state.beta[i], 1))
    );
  }

  function view(state, live) {
    const result = computed(state);
    const line = worked(state.x, state.feature, result);
    return [panelOfControls(state, live), drawing(state, result, live), h("p", { class: "ln-play-worked" }, line), readout(state, result)];
  }

  // Changes ---------------------------------------------------------------------------------------

  function replaced(list, i, value) {
    return list.map((old, k) => (k === i ? value : old));
  }

  function parameter(state, name, value) {
    const all = state.chosen === "all";
    return { ...state, [name]: state[name].map((old, k) => (all || k === Number(state.chosen) ? value : old)) };
  }

  function resized(state, count) {
    const size = Math.min(MOST, Math.max(2, state.x.length + count));
    const grown = (list, filler) => [...list, ...Array(MOST).fill(filler)].slice(0, size);
    return {
      ...state,
      chosen: Number(state.chosen) >= size ? "all" : state.chosen,
      feature: Math.min(state.feature, size - 1),
      x: grown(state.x, state.low + 6),
      gamma: grown(state.gamma, 1),
      beta: grown(state.beta, 0),
      dy: grown(state.dy, 0),
    };
  }

  function update(state, act, value, index) {
    switch (act) {
      case "x":
        return { ...state, feature: index, x: replaced(state.x, index, value) };
      case "dy":
        return { ...state, dy: replaced(state.dy, index, value) };
      case "eps":
        return { ...state, epsPower: value };
      case "gamma":
      case "beta":
        return parameter(state, act, value);
      case "features":
        return resized(state, Number(value));
      case "preset":
        return { ...state, feature: 0, ...preset(value) };
      case "guess":
        return { ...state, guess: Number(value) };
      case "try":
        return { ...state, tried: true, ...TOUR[state.tour].after() };
      case "tour":
        return question(state, Number(value));
      case "free":
        return { ...state, tour: null, guided: true, output: true, gradient: true };
      default: // chosen, gradient
        return { ...state, [act]: value };
    }
  }

  function status(state) {
    const { mean, variance, y } = computed(state);
    if (state.tried && state.tour !== null) return `${verdict(state)} ${TOUR[state.tour].why}`;
    return `Mean ${fixed(mean)}, standard deviation ${fixed(Math.sqrt(variance))}. Output ${y.map((v) => fixed(v)).join(", ")}.`;
  }

  Playground.norm = { start, view, update, status, turns: ["x", "gamma", "beta", "dy", "low"] };
})();
