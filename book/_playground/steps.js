/**
 * The `steps` figure: LayerNorm's formula, one step at a time. The formula, its numbers, the
 * calculation and the bars light up together, and each symbol is linked to what it stands for.
 */
(function () {
  "use strict";

  const { h, fixed, color, small, halo, button, controls, worked } = Drawing;
  const { forward } = NormMath;

  const EPS = 1e-5;
  const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [220, 190, 26, 216, 40, 168];
  const ROW_RIGHT = 180;
  const [LOW, HIGH, REACH] = [-5, 10, 2.5];
  const SUBSCRIPTS = "₁₂₃₄₅₆";
  const FIRST = { x: [4, 2, 8], gamma: [1.5, 1, 0.5], beta: [0.5, 0, -0.5] };

  /** What each symbol stands for; the fraction is the normalized value. */
  const PARTS = {
    x: { name: "x", what: "the row, one number per feature" },
    mu: { name: "μ", what: "the mean of the row" },
    variance: { name: "σ²", what: "the variance: the mean of the squared distances from μ" },
    eps: { name: "ε", what: "a tiny number, so that you never divide by 0" },
    root: { name: "√(σ² + ε)", what: "the spread that everything is divided by" },
    xhat: { name: "x̂", what: "the normalized row: mean 0, and a standard deviation of almost exactly 1" },
    gamma: { name: "γ", what: "a learned scale, one per feature" },
    beta: { name: "β", what: "a learned shift, one per feature" },
    y: { name: "y", what: "the output, which the next layer gets" },
  };

  const STEPS = [
    { name: "Mean", lit: ["x", "mu"], text: "Add up the row, and divide by how many numbers it has." },
    { name: "Variance", lit: ["x", "mu", "variance"], text: "Square each number's distance from the mean, and average the squares." },
    { name: "Add ε", lit: ["variance", "eps", "root"], text: "Add ε, so that you never divide by 0. The root turns squares back into a distance." },
    { name: "Normalize", lit: ["x", "mu", "root", "xhat"], text: "Subtract the mean and divide by the root. Every row comes out on the same scale." },
    { name: "Scale and shift", lit: ["xhat", "gamma", "beta", "y"], text: "Give each feature a scale γ and a shift β of its own. Training finds them." },
  ];

  /** The initial state. @param {{x?: number[], step?: number}} options */
  function start(options) {
    return { id: "steps", alt: "", step: 0, part: null, feature: 0, preview: null, ...FIRST, ...options };
  }

  /** The symbols that are lit, the feature that's being calculated, and whose bar is pointed at. */
  function focus(state) {
    const [kind, which, pointed] = (state.preview || "").split(":");
    const feature = kind === "feature" ? Number(which) : state.feature;
    const part = kind === "part" ? which : state.part;
    const lit = part ? [part] : state.step ? STEPS[state.step - 1].lit : Object.keys(PARTS);
    return { feature, part, lit: new Set(lit), all: !part && !state.step, pointed };
  }

  /** The class of a highlighted symbol: if no step is chosen, only the one whose bar you point at. */
  const standsOut = (found, part) => (found.pointed === part || (found.lit.has(part) && !found.all) ? " ln-lit" : "");

  // The formula -----------------------------------------------------------------------------------

  /** One symbol, or the number in its place. */
  function symbol(state, found, part, live, shown) {
    const dims = !found.lit.has(part) && found.pointed !== part;
    const classes = `ln-step-symbol ln-step-${part}${standsOut(found, part)}${dims ? " ln-dim" : ""}`;
    if (typeof shown === "string") return h("span", { class: classes, "data-point": `part:${part}` }, shown);
    const [letter, index] = [PARTS[part].name, shown];
    const content = [h("i", {}, letter.replace("²", "").replace("ε", "ϵ")), letter.endsWith("²") && h("sup", {}, "2"), index !== null && h("sub", {}, String(index + 1))];
    if (!live) return h("span", { class: classes }, content);
    return h(
      "button",
      {
        type: "button",
        class: classes,
        "data-act": "part",
        "data-value": part,
        "data-point": `part:${part}`,
        "aria-pressed": String(state.part === part),
        title: PARTS[part].what,
      },
      content
    );
  }

  /** The root sign, as tall as what's under it. */
  function hook() {
    const stroke = { fill: "none", stroke: "currentColor", "stroke-width": "1.5", "vector-effect": "non-scaling-stroke" };
    return h("svg", { class: "ln-step-hook", viewBox: "0 0 12 24", preserveAspectRatio: "none", "aria-hidden": "true" }, h("path", { d: "M0.5 14.5 2.8 13l4 10.4L12 0.7", ...stroke }));
  }

  /** The formula with symbols or with numbers; `piece` makes each part. */
  function equation(found, piece, times) {
    const group = (part, children) => h("span", { class: `ln-step-group ln-step-${part}${standsOut(found, part)}`, "data-point": `part:${part}` }, children);
    const root = h("span", { class: "ln-step-root" }, hook(), h("span", { class: "ln-step-under" }, piece("variance"), " + ", piece("eps")));
    const over = h("span", { class: "ln-step-over" }, piece("x"), " − ", piece("mu"));
    const fraction = h("span", { class: "ln-step-fraction" }, over, h("span", { class: "ln-step-bar" }), group("root", [root]));
    return [piece("y"), h("span", { class: "ln-step-sign" }, "="), piece("gamma"), times, group("xhat", [fraction]), h("span", { class: "ln-step-sign" }, "+"), piece("beta")];
  }

  function formula(state, result, found, live) {
    const i = found.feature;
    const own = ["x", "gamma", "beta", "y"]; // these have one value per feature
    const values = { x: state.x[i], mu: result.mean, variance: result.variance, gamma: state.gamma[i], beta: state.beta[i], y: result.y[i] };
    const digits = { x: state.x[i] % 1 ? 1 : 0, gamma: 1, beta: 1 };
    const value = (part) => {
      if (part === "eps") return "0.00001";
      const text = fixed(values[part], part in digits ? digits[part] : 2);
      return text.startsWith("−") && part !== "y" ? `(${text})` : text;
    };
    const letters = (part) => symbol(state, found, part, live, own.includes(part) ? i : null);
    const numbers = (part) => symbol(state, found, part, live, value(part));
    return h(
      "div",
      { class: "ln-step-formula", role: "group", "aria-label": "The formula: choose a symbol to see what it stands for" },
      h("div", { class: "ln-step-line" }, equation(found, letters, null)),
      h("div", { class: "ln-step-line ln-step-numbers", "aria-hidden": "true" }, equation(found, numbers, h("span", { class: "ln-step-sign" }, "·")))
    );
  }

  // The bars --------------------------------------------------------------------------------------

  /** Where each feature is, and how wide; beside the row, there is room for its mean. */
  const columns = (state, isRow) => ((isRow ? ROW_RIGHT : RIGHT) - LEFT) / state.x.length;
  const middle = (state, i, isRow = false) => LEFT + (i + 0.5) * columns(state, isRow);
  const scaled = (low, high) => (value) => BOTTOM - ((Math.min(high, Math.max(low, value)) - low) / (high - low)) * (BOTTOM - TOP);

  function line(x1, y1, x2, y2, stroke, more) {
    return h("line", { x1, y1, x2, y2, stroke, ...more });
  }

  function panel(title, tint, isLit, live, children) {
    return h(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: String(WIDTH), height: String(HEIGHT), class: `ln-step-panel${isLit ? "" : " ln-dim"}`, "aria-hidden": live ? null : "true", "font-size": "13", fill: color.ink },
      h("rect", { x: 0, y: 5.5, width: 10, height: 10, rx: 2, fill: tint }),
      h("text", { x: 16, y: 15 }, h("tspan", { "font-weight": "650" }, title[0]), h("tspan", { fill: color.muted }, `  ${title[1]}`)),
      children
    );
  }

  /** The feature that's being calculated, across all panels. */
  function strip(state, found, isRow) {
    const width = columns(state, isRow);
    return h("rect", { x: middle(state, found.feature, isRow) - width / 2 + 4, y: TOP - 16, width: width - 8, height: HEIGHT - TOP + 14, rx: 6, fill: color.surface });
  }

  function numbersBelow(state, found, isRow) {
    return state.x.map((_, i) =>
      h("text", { x: middle(state, i, isRow), y: HEIGHT - 6, "text-anchor": "middle", ...small, "font-weight": i === found.feature ? "700" : null }, String(i + 1))
    );
  }

  /** The areas where a pointer chooses a feature. */
  function targets(state, part) {
    const isRow = part === "x";
    const width = columns(state, isRow);
    return state.x.map((_, i) =>
      h("rect", { x: middle(state, i, isRow) - width / 2, y: TOP - 16, width, height: HEIGHT - TOP + 14, fill: "transparent", "data-point": `feature:${i}:${part}` })
    );
  }

  function handle(state, i, mean, scale, live) {
    const [x, y, zero, value] = [middle(state, i, true), scale(state.x[i]), scale(mean), state.x[i]];
    const above = y <= zero;
    const slider = {
      role: "slider",
      tabindex: "0",
      "data-act": "x",
      "data-index": String(i),
      "data-point": `feature:${i}:x`,
      "data-top": String(TOP),
      "data-bottom": String(BOTTOM),
      "data-step": "0.1",
      "aria-label": `x ${i + 1}`,
      "aria-orientation": "vertical",
      "aria-valuemin": String(LOW),
      "aria-valuemax": String(HIGH),
      "aria-valuenow": String(value),
      "aria-valuetext": `x${i + 1}, ${value}`,
    };
    return h(
      "g",
      { class: "ln-play-handle", ...(live ? slider : {}) },
      h("rect", { x: x - 22, y: above ? y - 30 : y - 24, width: 44, height: 54, rx: 8, fill: "transparent", class: "ln-play-reach" }),
      h("rect", { x: x - 9, y: Math.min(y, zero), width: 18, height: Math.abs(y - zero), fill: color.first, "fill-opacity": "0.3" }),
      h("circle", { cx: x, cy: y, r: 8.5, fill: color.first, stroke: color.paper, "stroke-width": "2" }),
      h("text", { x, y: above ? y - 13 : y + 23, "text-anchor": "middle", "font-weight": "650", ...halo }, fixed(value, value % 1 ? 1 : 0))
    );
  }

  function rowPanel(state, result, found, live) {
    const scale = scaled(LOW, HIGH);
    const [mean, spread] = [scale(result.mean), 1 / result.rstd];
    const [up, down] = [scale(result.mean + spread), scale(result.mean - spread)];
    const lit = (part) => found.lit.has(part) && !found.all;
    const squares = lit("variance") && state.x.map((value, i) => {
      const size = Math.abs(scale(value) - mean);
      return h("rect", { x: middle(state, i, true), y: Math.min(scale(value), mean), width: size, height: size, fill: color.fourth, "fill-opacity": "0.22", stroke: color.fourth });
    });
    const showsSpread = found.all || lit("root") || lit("variance") || lit("xhat");
    return panel(["x", "drag a bar"], color.first, ["x", "mu", "variance", "root"].some((part) => found.lit.has(part)), live, [
      strip(state, found, true),
      line(LEFT, TOP, LEFT, BOTTOM, color.rule),
      [LOW, 0, HIGH].map((value) => h("text", { x: LEFT - 5, y: scale(value) + 4, "text-anchor": "end", ...small }, fixed(value, 0))),
      line(LEFT, scale(0), ROW_RIGHT, scale(0), color.rule),
      h("rect", { x: LEFT, y: up, width: ROW_RIGHT - LEFT, height: Math.max(0, down - up), fill: color.region, "fill-opacity": lit("root") ? "0.4" : showsSpread ? "0.16" : "0.05", "data-point": "part:root" }),
      targets(state, "x"),
      squares,
      h("g", { "data-point": "part:mu" }, [
        line(LEFT, mean, ROW_RIGHT, mean, "transparent", { "stroke-width": "14" }),
        line(LEFT, mean, ROW_RIGHT, mean, lit("mu") ? color.second : color.ink, { "stroke-dasharray": lit("mu") ? null : "5 4", "stroke-width": lit("mu") ? "3" : "1.3" }),
      ]),
      state.x.map((_, i) => handle(state, i, result.mean, scale, live)),
      h("text", { x: ROW_RIGHT + 4, y: mean + 4, "font-size": "12", "font-weight": lit("mu") ? "700" : null, fill: color.ink, "data-point": "part:mu" }, `μ ${fixed(result.mean)}`),
      numbersBelow(state, found, true),
    ]);
  }

  function barsPanel(state, found, part, title, values, ghosts, tint, live) {
    const scale = scaled(-REACH, REACH);
    const zero = scale(0);
    const bars = values.map((value, i) => {
      const [x, y] = [middle(state, i), scale(value)];
      const above = y <= zero;
      return [
        ghosts && h("rect", { x: x - 11, y: Math.min(scale(ghosts[i]), zero), width: 22, height: Math.abs(scale(ghosts[i]) - zero), fill: "none", stroke: color.third, "stroke-dasharray": "3 3" }),
        h("rect", { x: x - 9, y: Math.min(y, zero), width: 18, height: Math.abs(y - zero), rx: 2, fill: tint, "fill-opacity": "0.3" }),
        line(x - 9, y, x + 9, y, tint, { "stroke-width": "3", "stroke-linecap": "round" }),
        h("text", { x, y: above ? y - 7 : y + 17, "text-anchor": "middle", "font-size": "12", ...halo }, fixed(value)),
      ];
    });
    const shown = found.lit.has(part) || (part === "y" && (found.lit.has("gamma") || found.lit.has("beta")));
    return panel(title, tint, shown, live, [
      strip(state, found),
      line(LEFT, TOP, LEFT, BOTTOM, color.rule),
      [-2, 0, 2].map((value) => h("text", { x: LEFT - 5, y: scale(value) + 4, "text-anchor": "end", ...small }, fixed(value, 0))),
      line(LEFT, zero, RIGHT, zero, color.rule),
      bars,
      numbersBelow(state, found),
      targets(state, part),
    ]);
  }

  function panels(state, result, found, live) {
    const showsBoth = !found.all && found.lit.has("y");
    return [
      rowPanel(state, result, found, live),
      barsPanel(state, found, "xhat", ["x̂", "normalized"], result.xhat, null, color.third, live),
      barsPanel(state, found, "y", ["y", "the output"], result.y, showsBoth && result.xhat, color.fifth, live),
    ];
  }

  // Words and controls ----------------------------------------------------------------------------

  /** The calculation of a step with the row's numbers, and what it does. */
  function explained(state, result, found) {
    const { x } = state;
    const [i, n] = [found.feature, x.length];
    const index = SUBSCRIPTS[i];
    const short = (value) => fixed(value, value % 1 ? 1 : 0);
    const signed = (value, digits = 2) => (fixed(value, digits).startsWith("−") ? `(${fixed(value, digits)})` : fixed(value, digits));
    const plus = (value) => `${value < 0 ? "−" : "+"} ${fixed(Math.abs(value), 1)}`;
    const root = fixed(1 / result.rstd);
    const lines = [
      `μ = (${x.map((v) => (v < 0 ? `(${short(v)})` : short(v))).join(" + ")}) / ${n} = ${fixed(result.mean)}`,
      `σ² = (${x.map((v) => `${signed(v - result.mean)}²`).join(" + ")}) / ${n} = ${fixed(result.variance)}`,
      `√(σ² + ε) = √(${fixed(result.variance)} + 0.00001) = ${root}`,
      worked(x, i, result),
      `y${index} = ${fixed(state.gamma[i], 1)} · ${signed(result.xhat[i])} ${plus(state.beta[i])} = ${fixed(result.y[i])}`,
    ];
    const whichStep = { mu: 0, variance: 1, eps: 2, root: 2, xhat: 3, gamma: 4, beta: 4, y: 4 };
    if (found.part === "x") return [`x = [${x.map(short).join(", ")}]`, PARTS.x.what];
    if (found.part) return [lines[whichStep[found.part]], `${PARTS[found.part].name} is ${PARTS[found.part].what}.`];
    if (state.step) return [lines[state.step - 1], STEPS[state.step - 1].text];
    return [lines[3], "Drag a bar: all of the numbers follow. Then go through the formula in five steps."];
  }

  function stepper(state, live) {
    const option = (value, text) =>
      h(
        "label",
        { class: "ln-step-stop" },
        h("input", { type: "radio", name: `${state.id}-step`, "data-act": "step", value: String(value), checked: state.step === value && !state.part }),
        h("span", { class: "ln-step-number", "aria-hidden": "true" }, String(value)),
        h("span", { class: "ln-step-name" }, text)
      );
    return controls(
      live,
      h(
        "fieldset",
        { class: "ln-step-stops" },
        h("legend", { class: "ln-spoken" }, "Steps of the formula"),
        STEPS.map(({ name }, i) => option(i + 1, name))
      )
    );
  }

  function view(state, live) {
    const result = forward(state.x, state.gamma, state.beta, EPS);
    const found = focus(state);
    const [calculation, text] = explained(state, result, found);
    const next = state.step === STEPS.length ? ["Show everything", 0] : [state.step ? "Next step" : "Step through it", state.step + 1];
    return [
      formula(state, result, found, live),
      h("div", { class: "ln-step-panels", role: live ? "group" : "img", "aria-label": state.alt }, panels(state, result, found, live)),
      stepper(state, live),
      h(
        "div",
        { class: "ln-step-said" },
        h("p", { class: "ln-step-worked" }, calculation),
        h("p", { class: "ln-step-text" }, text),
        controls(live, h("div", { class: "ln-play-buttons" }, button("step", next[1], next[0]), button("reset", 0, "Reset the row")))
      ),
      h("data", {
        hidden: true,
        "data-name": "all",
        value: JSON.stringify({ x: state.x, gamma: state.gamma, beta: state.beta, eps: EPS, mean: result.mean, variance: result.variance, rstd: result.rstd, xhat: result.xhat, y: result.y }),
      }),
    ];
  }

  /** The bars alone, for notebooks: the panels side by side in one drawing. */
  function picture(state) {
    const result = forward(state.x, state.gamma, state.beta, EPS);
    const drawn = panels(state, result, focus(state), false);
    const placed = drawn.map((one, i) => ({ ...one, attributes: { ...one.attributes, x: String(i * (WIDTH + 16)) } }));
    const width = 3 * WIDTH + 32;
    return h("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width: String(width), height: String(HEIGHT), role: "img", "aria-label": state.alt, "font-size": "13", fill: color.ink }, placed);
  }

  // Changes ---------------------------------------------------------------------------------------

  function update(state, act, value, index) {
    switch (act) {
      case "x":
        return { ...state, feature: index, preview: null, x: state.x.map((old, i) => (i === index ? value : old)) };
      case "step":
        return { ...state, step: Number(value), part: null, preview: null };
      case "part":
        return { ...state, part: state.part === value ? null : value, preview: null };
      case "pin": {
        const [kind, which] = value.split(":");
        if (kind === "part") return update(state, "part", which);
        return { ...state, feature: Number(which), preview: null };
      }
      case "reset":
        return { ...state, x: FIRST.x.slice() };
      default: // preview
        return { ...state, [act]: value };
    }
  }

  function status(state) {
    const result = forward(state.x, state.gamma, state.beta, EPS);
    return explained(state, result, focus(state)).join(". ");
  }

  Playground.steps = { start, view, picture, update, status, turns: ["x"] };
})();
