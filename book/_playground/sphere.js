/** The `sphere` figure: a row of three features as an arrow, projected and scaled. */
(function () {
  "use strict";

  const { h, fixed, number, color, entry, halo, svg, range, button, controls } = Drawing;
  const { forward, project, mean, dot } = NormMath;

  const [WIDTH, HEIGHT, UNIT, RIM, POLE] = [380, 336, 47, 2.95, 3.3];
  const [MIDDLE, CENTER] = [WIDTH / 2, HEIGHT / 2 + 4];
  const EPS = 1e-5;
  const LARGEST = 1.6; // for mean and deviation, so that the row fits in the drawing
  const DEGREE = Math.PI / 180;

  /** Two directions in the plane of mean 0, and the one perpendicular to it; each of length 1. */
  const E1 = [1, -1, 0].map((value) => value / Math.sqrt(2));
  const E2 = [1, 1, -2].map((value) => value / Math.sqrt(6));
  const E3 = [1, 1, 1].map((value) => value / Math.sqrt(3));

  /** The initial state. @param {{x?: number[], turn?: number, tilt?: number}} options */
  function start(options) {
    const state = { id: "sphere", alt: "", x: [-0.8, 2.6, 1.5], turn: 155, tilt: 22, direction: 0, ...options };
    return placed(state, state.x);
  }

  /** Mean, deviation and direction in the plane (in degrees) of a row. */
  function parts(x) {
    const centered = project(x);
    const [a, b] = [dot(centered, E1), dot(centered, E2)];
    return { mean: mean(x), sigma: Math.hypot(a, b) / Math.sqrt(3), direction: Math.atan2(b, a) / DEGREE };
  }

  function clipped(value, least, most) {
    return Math.min(most, Math.max(least, value));
  }

  /** The row with this mean, deviation and direction. */
  function row(mu, sigma, direction) {
    const [a, b] = [Math.cos(direction * DEGREE), Math.sin(direction * DEGREE)];
    return E1.map((value, i) => mu + Math.sqrt(3) * sigma * (a * value + b * E2[i]));
  }

  /** The state with a different row, limited to what fits in the drawing. */
  function placed(state, x) {
    const { mean: mu, sigma, direction } = parts(x);
    const kept = sigma < 1e-9 ? state.direction : direction; // a constant row points nowhere
    if (Math.abs(mu) <= LARGEST && sigma <= LARGEST) return { ...state, x, direction: kept };
    return { ...state, x: row(clipped(mu, -LARGEST, LARGEST), Math.min(sigma, LARGEST), kept), direction: kept };
  }

  // Drawing ---------------------------------------------------------------------------------------

  /** The two directions in space that point right and up in the drawing. */
  function camera(state) {
    const [turn, tilt] = [state.turn * DEGREE, state.tilt * DEGREE];
    const right = E1.map((value, i) => Math.cos(turn) * value + Math.sin(turn) * E2[i]);
    const away = E1.map((value, i) => -Math.sin(turn) * value + Math.cos(turn) * E2[i]);
    const up = E3.map((value, i) => Math.cos(tilt) * value + Math.sin(tilt) * away[i]);
    return { right, up };
  }

  function drawing(state, result, live) {
    const { right, up } = camera(state);
    const at = (p) => [MIDDLE + UNIT * dot(p, right), CENTER - UNIT * dot(p, up)];
    const scaled = (p, factor) => p.map((value) => value * factor);
    const plus = (p, q) => p.map((value, i) => value + q[i]);
    const d = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
    const circle = (radius) =>
      d(Array.from({ length: 72 }, (_, k) => at(row(0, radius / Math.sqrt(3), k * 5)))) + "Z";
    const segment = (p, q, stroke, more) => {
      const [[x1, y1], [x2, y2]] = [at(p), at(q)];
      return h("line", { x1, y1, x2, y2, stroke, "stroke-linecap": "round", ...more });
    };
    const label = (p, text, tint, dx, dy, more) => {
      const [x, y] = at(p);
      return h("text", { x: x + dx, y: y + dy, fill: tint, ...halo, ...more }, text);
    };
    const arrow = (from, to, tint, width) => {
      const [[x1, y1], [x2, y2]] = [at(from), at(to)];
      const length = Math.hypot(x2 - x1, y2 - y1);
      const size = Math.min(9, length * 0.6);
      const angle = Math.atan2(y2 - y1, x2 - x1) / DEGREE;
      return [
        h("line", { x1, y1, x2: x2 - (size * 0.8 * (x2 - x1)) / (length || 1), y2: y2 - (size * 0.8 * (y2 - y1)) / (length || 1), stroke: tint, "stroke-width": width }),
        h("path", {
          d: `M0 0L${-size} ${(-size * 0.45).toFixed(2)}L${-size} ${(size * 0.45).toFixed(2)}Z`,
          fill: tint,
          transform: `translate(${x2.toFixed(2)} ${y2.toFixed(2)}) rotate(${angle.toFixed(2)})`,
        }),
      ];
    };

    const origin = [0, 0, 0];
    const { x } = state;
    const shadow = project(x);
    const star = result.xhat;
    const outward = row(0, RIM / Math.sqrt(3), state.direction);
    const [high, low] = [scaled(E3, POLE), scaled(E3, -POLE)];
    const rim = row(0, RIM / Math.sqrt(3), state.turn - 115);
    const [tipX, tipY] = at(x);
    const [starX, starY] = at(star);
    const side = dot(x, right) < 0 ? -1 : 1;
    const out = Math.hypot(starX - MIDDLE, starY - CENTER) || 1;
    const [outX, outY] = [(starX - MIDDLE) / out, (starY - CENTER) / out];
    const bold = { "font-weight": "650" };

    return svg(
      WIDTH,
      HEIGHT,
      state.alt,
      live,
      h("rect", { width: WIDTH, height: HEIGHT, fill: "transparent", class: "ln-play-turn", "data-drag": live ? "" : null, "data-act": live ? "view" : null }),
      h("g", { "pointer-events": "none" }, [
        h("path", { d: circle(RIM), fill: color.region, "fill-opacity": "0.13", stroke: color.rule }),
        h("path", { d: d([high, plus(high, outward), plus(low, outward), low].map(at)) + "Z", fill: color.fourth, "fill-opacity": "0.10" }),
        segment(low, high, color.muted, { "stroke-dasharray": "2 5" }),
        [[2.4, 0, 0], [0, 2.4, 0], [0, 0, 2.4]].map((p, i) => [
          segment(origin, p, color.rule, { "stroke-width": "1.5" }),
          label(scaled(p, 1.1), ["x₁", "x₂", "x₃"][i], color.muted, 0, 4, { "text-anchor": "middle" }),
        ]),
        h("path", { d: circle(Math.sqrt(3)), fill: "none", stroke: color.third, "stroke-width": "2.5" }),
        label(rim, "mean 0", color.muted, 0, 18, { "text-anchor": "end" }),
        label(high, "(1, 1, 1)", color.muted, 8, 10),
        segment(x, shadow, color.ink, { "stroke-dasharray": "4 4", "stroke-width": "1.5" }),
        arrow(origin, shadow, color.fifth, 3),
        arrow(origin, x, color.first, 3),
        h("circle", { cx: starX, cy: starY, r: 7, fill: color.third, stroke: color.paper, "stroke-width": "2" }),
        label(star, "x̂", color.third, 13 * outX - 15 * side * outY, 5 + 13 * outY + 15 * side * outX, { ...bold, "text-anchor": "middle" }),
      ]),
      h(
        "g",
        { class: "ln-play-handle", "aria-hidden": "true", "data-drag": live ? "" : null, "data-act": live ? "tip" : null },
        h("circle", { cx: tipX, cy: tipY, r: 22, fill: "transparent", class: "ln-play-reach" }),
        h("circle", { cx: tipX, cy: tipY, r: 8, fill: color.first, stroke: color.paper, "stroke-width": "2" }),
        h("text", { x: tipX + side * 15, y: tipY + 2, "text-anchor": "middle", fill: color.first, ...halo, ...bold }, "x")
      )
    );
  }

  // Words and controls ----------------------------------------------------------------------------

  function triple(name, values) {
    return ["(", values.map((value, i) => [i ? ", " : "", number(`${name}-${i + 1}`, value, fixed(value))]), ")"];
  }

  function readout(state, result) {
    const length = Math.sqrt(dot(result.xhat, result.xhat));
    return h(
      "dl",
      { class: "ln-play-readout" },
      entry("x", triple("x", state.x), color.first),
      entry("x − μ", triple("centered", project(state.x)), color.fifth),
      entry("x̂", triple("xhat", result.xhat), color.third),
      entry("length of x̂", number("length", length, fixed(length, 4)))
    );
  }

  function group(legend, ...members) {
    return h("fieldset", { class: "ln-play-group" }, h("legend", {}, legend), members);
  }

  function panelOfControls(state, live) {
    const found = parts(state.x);
    return controls(
      live,
      group(
        "the three features",
        state.x.map((value, i) => range("x", ["x", "₁₂₃"[i]], `x ${i + 1}`, Number(value.toFixed(2)), [-4, 4, 0.05], fixed(value), i))
      ),
      group(
        "the same row as mean, deviation, and angle",
        range("mean", ["μ"], "mean", Number(found.mean.toFixed(2)), [-LARGEST, LARGEST, 0.05], fixed(found.mean)),
        range("sigma", ["σ"], "standard deviation", Number(found.sigma.toFixed(2)), [0, LARGEST, 0.05], fixed(found.sigma)),
        range("direction", "angle", "angle in the plane", Math.round(state.direction), [-180, 180, 1], `${fixed(state.direction, 0)}°`)
      ),
      group(
        "your viewpoint",
        range("turn", "turn", "turn the view", Math.round(state.turn), [-180, 180, 1], `${fixed(state.turn, 0)}°`),
        range("tilt", "tilt", "tilt the view", Math.round(state.tilt), [0, 90, 1], `${fixed(state.tilt, 0)}°`),
        h(
          "div",
          { class: "ln-play-buttons" },
          button("look", "side", "from the side"),
          button("look", "down", "along (1, 1, 1)")
        )
      )
    );
  }

  function view(state, live) {
    const ones = [1, 1, 1];
    const result = forward(state.x, ones, [0, 0, 0], EPS);
    return [drawing(state, result, live), h("div", { class: "ln-play-side" }, panelOfControls(state, live), readout(state, result))];
  }

  // Changes ---------------------------------------------------------------------------------------

  function turned(degrees) {
    return ((((degrees + 180) % 360) + 360) % 360) - 180;
  }

  function update(state, act, value, index) {
    const found = parts(state.x);
    switch (act) {
      case "x":
        return placed(state, state.x.map((old, i) => (i === index ? value : old)));
      case "mean":
        return { ...state, x: row(value, found.sigma, state.direction) };
      case "sigma":
        return { ...state, x: row(found.mean, value, state.direction) };
      case "direction":
        return { ...state, direction: value, x: row(found.mean, found.sigma, value) };
      case "view":
        return { ...state, turn: turned(state.turn - value.x * 0.6), tilt: clipped(state.tilt + value.y * 0.5, 0, 90) };
      case "tip": {
        const { right, up } = camera(state);
        return placed(state, state.x.map((old, i) => old + (value.x * right[i] - value.y * up[i]) / UNIT));
      }
      case "look":
        return { ...state, tilt: value === "down" ? 90 : 12 };
      default: // turn, tilt
        return { ...state, [act]: value };
    }
  }

  function status(state) {
    const { mean: mu, sigma } = parts(state.x);
    const { xhat } = forward(state.x, [1, 1, 1], [0, 0, 0], EPS);
    return `Mean ${fixed(mu)}, standard deviation ${fixed(sigma)}. Normalized ${xhat.map((v) => fixed(v)).join(", ")}.`;
  }

  Playground.sphere = { start, view, update, status, turns: ["turn", "tilt"] };
})();
