/**
 * Describes a figure as a tree, turns the tree into HTML, and updates the page when it changes.
 *
 * The build writes a figure's initial state into the page. In the browser, the same functions change
 * only what differs, so an element that has the focus keeps it.
 */
(function (root) {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const VOID = new Set(["input", "br"]);

  /**
   * One element of a tree. Attributes that are null, undefined or false are left out; numbers get
   * two decimals, enough for positions in a drawing.
   *
   * @param {string} tag
   * @param {Object<string, any>} attributes
   * @param {...any} children elements, texts, or arrays of them
   */
  function h(tag, attributes, ...children) {
    const kept = {};
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (typeof value === "number") kept[name] = String(Number(value.toFixed(2)));
      else kept[name] = value === true ? "" : String(value);
    }
    const list = [];
    for (const child of children.flat(Infinity)) {
      if (child === null || child === undefined || child === false || child === "") continue;
      if (typeof child === "object") list.push(child);
      else if (typeof list[list.length - 1] === "string") list[list.length - 1] += child;
      else list.push(String(child)); // browsers join neighboring texts into one
    }
    return { tag, attributes: kept, children: list };
  }

  function escaped(text) {
    const names = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
    return text.replace(/[&<>"]/g, (letter) => names[letter]);
  }

  /** A tree as HTML. @returns {string} */
  function markup(tree) {
    if (typeof tree === "string") return escaped(tree);
    const attributes = Object.entries(tree.attributes).map(([k, v]) => ` ${k}="${escaped(v)}"`);
    const open = `<${tree.tag}${attributes.join("")}>`;
    if (VOID.has(tree.tag)) return open;
    return `${open}${tree.children.map(markup).join("")}</${tree.tag}>`;
  }

  function made(tree, parent) {
    if (typeof tree === "string") return document.createTextNode(tree);
    const inSvg = tree.tag === "svg" || parent.namespaceURI === SVG;
    const element = inSvg
      ? document.createElementNS(SVG, tree.tag)
      : document.createElement(tree.tag);
    patch(element, tree);
    return element;
  }

  /** Make an element of the page match a tree, changing only what differs. */
  function patch(element, tree) {
    for (const name of element.getAttributeNames())
      if (!(name in tree.attributes)) element.removeAttribute(name);
    for (const [name, value] of Object.entries(tree.attributes))
      if (element.getAttribute(name) !== value) element.setAttribute(name, value);
    if (element.tagName === "INPUT") {
      // Once a reader has used an input, it no longer follows its attributes.
      const { value, checked } = tree.attributes;
      if (value !== undefined && element.value !== value) element.value = value;
      element.checked = checked !== undefined;
    }
    tree.children.forEach((child, i) => {
      const there = element.childNodes[i];
      if (!there) element.appendChild(made(child, element));
      else if (typeof child === "string" && there.nodeType === 3) {
        if (there.data !== child) there.data = child;
      } else if (typeof child === "object" && there.localName === child.tag) patch(there, child);
      else element.replaceChild(made(child, element), there);
    });
    while (element.childNodes.length > tree.children.length) element.lastChild.remove();
  }

  /** A number with a fixed number of decimals, a true minus sign, and no minus zero. */
  function fixed(value, digits = 2) {
    if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "∞" : "−∞";
    const text = Math.abs(value).toFixed(digits);
    return value < 0 && Number(text) !== 0 ? `−${text}` : text;
  }

  const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

  /** Ten to a whole power, with superscript digits. */
  function power(exponent) {
    return "10" + [...String(exponent)].map((letter) => RAISED[letter]).join("");
  }

  /** A number that may be tiny: with four decimals, or in scientific notation. */
  function tiny(value) {
    if (!Number.isFinite(value) || value === 0 || Math.abs(value) >= 1e-3) return fixed(value, 4);
    const [factor, exponent] = value.toExponential(1).split("e");
    return `${factor.replace("-", "−")} · ${power(Number(exponent))}`;
  }

  /** A number as text that also carries all of its digits. */
  function number(name, value, shown) {
    return h("data", { value: String(value), "data-name": name }, shown);
  }

  /** How one feature of a row is normalized, with its numbers: "x̂₁ = (4 − 4.67) / 2.49 = −0.27". */
  function worked(x, i, { mean, rstd, xhat }) {
    const shown = fixed(x[i], x[i] % 1 ? 1 : 0);
    const mu = mean < 0 ? `(${fixed(mean)})` : fixed(mean);
    const root = 1 / rstd;
    return `x̂${"₁₂₃₄₅₆"[i]} = (${shown} − ${mu}) / ${root >= 0.01 ? fixed(root) : tiny(root)} = ${fixed(xhat[i])}`;
  }

  /** The colors in lnbook/notebook/palette.toml, keyed by what they represent. */
  const color = {
    ink: "var(--ln-ink)",
    paper: "var(--ln-paper)",
    muted: "var(--ln-muted)",
    rule: "var(--ln-rule)",
    surface: "var(--ln-surface)",
    region: "var(--ln-region)",
    highlight: "var(--ln-highlight)",
    changed: "var(--ln-changed)",
    backward: "var(--ln-backward)",
    first: "var(--ln-first)",
    second: "var(--ln-second)",
    third: "var(--ln-third)",
    fourth: "var(--ln-fourth)",
    fifth: "var(--ln-fifth)",
  };

  /** Keeps lines from running into letters. */
  const halo = { stroke: color.paper, "stroke-width": "4", "stroke-linejoin": "round", "paint-order": "stroke" };

  const small = { "font-size": "11", fill: color.muted };

  /**
   * The grid and the titles of a plot that fills [left, right] x [top, bottom].
   *
   * @param {number[]} box left, right, bottom
   * @param {[number, string][]} rows where the horizontal lines are, and what they say
   * @param {[number, string][]} columns where the labels below are, and what they say
   * @param {string} below what the columns show
   * @param {string[]} above what the rows show, and more about it
   */
  function axes([left, right, bottom], rows, columns, below, [title, more]) {
    return [
      rows.map(([y, text]) => [h("line", { x1: left, y1: y, x2: right, y2: y, stroke: color.rule }), h("text", { x: left - 6, y: y + 4, "text-anchor": "end", ...small }, text)]),
      columns.map(([x, text]) => h("text", { x, y: bottom + 16, "text-anchor": "middle", ...small }, text)),
      h("text", { x: (left + right) / 2, y: bottom + 36, "text-anchor": "middle", fill: color.muted }, below),
      h("text", { x: 0, y: 12 }, h("tspan", { "font-weight": "650" }, title), h("tspan", { fill: color.muted }, `  ${more}`)),
    ];
  }

  /** One line of a list of results: a term, a number or more, and perhaps a color. */
  function entry(term, shown, tint) {
    const swatch = tint && h("span", { class: "ln-play-swatch", style: `background: ${tint}` });
    return h("div", {}, h("dt", {}, swatch, term), h("dd", {}, shown));
  }

  /** The drawing of a figure: an image with alt text or, once it's live, a group of controls. */
  function svg(width, height, alt, live, ...children) {
    return h(
      "svg",
      {
        viewBox: `0 0 ${width} ${height}`,
        width: String(width),
        height: String(height),
        class: "ln-play-drawing",
        role: live ? "group" : "img",
        "aria-label": alt,
        "font-size": "13",
        fill: color.ink,
      },
      children
    );
  }

  /** An HTML slider with its value next to it. */
  function range(act, label, spoken, value, [min, max, step], shown, index) {
    // A letter for a formula, and what comes after it
    const name = Array.isArray(label) ? [h("span", { class: "ln-play-symbol" }, label[0]), label.slice(1)] : label;
    return h(
      "label",
      { class: "ln-play-range" },
      h("span", { class: "ln-play-name", "aria-hidden": "true" }, name),
      h("input", {
        type: "range",
        "data-act": act,
        "data-index": index === undefined ? null : String(index),
        min: String(min),
        max: String(max),
        step: String(step),
        value: String(value),
        "aria-label": spoken,
        "aria-valuetext": shown,
      }),
      h("span", { class: "ln-play-value", "aria-hidden": "true" }, shown)
    );
  }

  /** A group of radio buttons. */
  function choice(id, act, legend, options, chosen) {
    return h(
      "fieldset",
      { class: "ln-play-choice" },
      h("legend", {}, legend),
      options.map(([value, text]) =>
        h(
          "label",
          {},
          h("input", {
            type: "radio",
            name: `${id}-${act}`,
            "data-act": act,
            value: String(value),
            checked: String(value) === String(chosen),
          }),
          h("span", {}, text)
        )
      )
    );
  }

  /** A button. */
  function button(act, value, text) {
    return h("button", { type: "button", "data-act": act, "data-value": String(value) }, text);
  }

  /** All controls: hidden without JavaScript, and disabled until it has loaded. */
  function controls(live, ...children) {
    return h("fieldset", { class: "ln-play-controls", disabled: !live, "aria-label": "Controls" }, children);
  }

  root.Drawing = { h, markup, patch, fixed, power, tiny, number, worked, color, halo, small, axes, entry, svg, range, choice, button, controls };
  root.Playground = root.Playground || {};
})(globalThis);
