/**
 * Makes the playground's figures live: pointer, keyboard and controls change a state, and the
 * figure is updated once per frame.
 *
 * A figure is an entry in `Playground` with `start(options)`, `view(state, live)`,
 * `update(state, act, value, index)`, `status(state)` and, where arrow keys move in a grid,
 * `key(state, key)`. It neither reads nor changes the page.
 */
(function () {
  "use strict";

  const { h, patch } = Drawing;
  const QUIET_FOR = 600; // milliseconds without a change before it's announced to screen readers
  const TURN_FOR = 450; // milliseconds that a turn takes

  /** @param {HTMLElement} root an element with data-playground */
  function start(root) {
    const figure = Playground[root.dataset.playground];
    const own = Object.fromEntries(root.getAttributeNames().map((n) => [n, root.getAttribute(n)]));
    let state = figure.start(JSON.parse(root.dataset.start));
    let said = "";
    let frame = 0;
    let timer = 0;
    let turning = 0;
    let goal = null; // the state that a turn ends in

    function show() {
      frame = 0;
      const status = h("p", { class: "ln-spoken", role: "status" }, said);
      patch(root, h("div", { ...own, "data-live": "" }, figure.view(state, true), status));
    }

    function soon() {
      if (!frame) frame = requestAnimationFrame(show);
    }

    /** Draw now: keys may come faster than frames. */
    function settle() {
      if (frame) {
        cancelAnimationFrame(frame);
        show();
      }
    }

    function change(next) {
      state = next;
      soon();
      clearTimeout(timer);
      timer = setTimeout(() => {
        said = figure.status(state);
        soon();
      }, QUIET_FOR);
    }

    function act(target, value) {
      const index = target.dataset.index;
      change(figure.update(arrived(), target.dataset.act, value, index && Number(index)));
    }

    /** End a turn: whatever comes next starts from its goal. */
    function arrived() {
      cancelAnimationFrame(turning);
      const reached = goal || state;
      goal = null;
      return reached;
    }

    /** Go to a state; what the figure names in `turns` gets there gradually. */
    function turn(next) {
      const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
      const turns = figure.turns || [];
      const moves = (name) => String(state[name]) !== String(next[name]);
      if (still || !turns.some(moves)) return change(next);
      const from = state;
      goal = next;
      const began = performance.now();
      const step = (now) => {
        const t = Math.min(1, Math.max(0, (now - began) / TURN_FOR));
        const eased = t * t * (3 - 2 * t);
        const between = { ...next };
        for (const name of turns)
          between[name] = t === 1 ? next[name] : mixed(from[name], next[name], eased);
        change(between);
        if (t < 1) turning = requestAnimationFrame(step);
        else goal = null;
      };
      turning = requestAnimationFrame(step);
      return undefined;
    }

    root.addEventListener("input", ({ target }) => {
      if (!target.dataset.act) return;
      if (target.type === "checkbox") act(target, target.checked);
      else act(target, target.type === "range" ? Number(target.value) : target.value);
    });

    root.addEventListener("click", ({ target }) => {
      const button = target.closest("button[data-act]");
      const pointed = target.closest("[data-point]");
      const cell = target.closest("[role=gridcell]");
      if (cell) {
        act(cell, Number(cell.dataset.index));
        cell.focus({ preventScroll: true });
      }
      if (!button && pointed && root.contains(pointed)) change(figure.update(state, "pin", pointed.dataset.point));
      if (!button) return;
      const value = button.dataset.value;
      turn(figure.update(arrived(), button.dataset.act, value, button.dataset.index));
    });

    // Pointing at a cell previews it; a click chooses it.
    function preview(cell) {
      state = figure.update(state, "preview", cell);
      soon();
    }

    root.addEventListener("pointerover", (event) => {
      const cell = event.target.closest("[role=gridcell]");
      if (cell && event.pointerType !== "touch") preview(Number(cell.dataset.index));
    });

    root.addEventListener("pointerout", (event) => {
      const left = event.target.closest("[role=gridcell]");
      if (left && !event.relatedTarget?.closest?.("[role=gridcell]")) preview(null);
    });

    // Anything with `data-point` is previewed while a pointer or the focus is on it.
    function point(event) {
      const on = event.target?.closest?.("[data-point]");
      const now = on && root.contains(on) ? on.dataset.point : null;
      if ((state.preview ?? null) !== now) preview(now);
    }

    if (root.querySelector("[data-point]")) {
      root.addEventListener("pointerover", (event) => event.pointerType !== "touch" && point(event));
      root.addEventListener("pointerleave", () => point({ target: document.activeElement }));
      root.addEventListener("focusin", point);
      root.addEventListener("focusout", ({ relatedTarget }) => point({ target: relatedTarget }));
    }

    root.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      const slider = event.target.closest("[role=slider][data-act]");
      const cell = event.target.closest("[role=gridcell]");
      if (slider && slider.tagName !== "INPUT") {
        settle();
        const value = byKey(slider, event.key);
        if (value === null) return;
        event.preventDefault();
        act(slider, value);
      } else if (cell && figure.key) {
        const next = figure.key(state, event.key);
        if (!next) return;
        event.preventDefault();
        change(next);
        settle(); // so that the cell that gets the focus has been updated
        root.querySelector("[role=gridcell][tabindex='0']").focus();
      }
    });

    root.addEventListener("pointerdown", (event) => {
      const target = event.target.closest("[data-drag], [role=slider][data-act]");
      if (!target || target.tagName === "INPUT" || event.button !== 0) return;
      event.preventDefault();
      settle();
      if (target.matches("[role=slider]")) target.focus({ preventScroll: true });
      target.setPointerCapture(event.pointerId);
      const drag = dragging(target, event, act);
      target.addEventListener("pointermove", drag);
      const end = () => target.removeEventListener("pointermove", drag);
      target.addEventListener("pointerup", end, { once: true });
      target.addEventListener("pointercancel", end, { once: true });
    });

    show();
  }

  /** A number, or each number in a list, partway to another; new ones come from the old mean. */
  function mixed(from, to, t) {
    if (!Array.isArray(to)) return from + (to - from) * t;
    const mean = from.reduce((sum, value) => sum + value, 0) / from.length;
    return to.map((value, i) => mixed(from[i] ?? mean, value, t));
  }

  /** Dragging moves a slider, or moves something freely. */
  function dragging(target, first, act) {
    let last = place(target, first);
    if ("drag" in target.dataset) {
      return (event) => {
        const now = place(target, event);
        act(target, { x: now.x - last.x, y: now.y - last.y });
        last = now;
      };
    }
    const [top, bottom] = [Number(target.dataset.top), Number(target.dataset.bottom)];
    const { min, max, now, step } = scaleOf(target);
    // Keep the point where it was grabbed under the pointer.
    const offset = last.y - (bottom + ((now - min) / (max - min)) * (top - bottom));
    return (event) => {
      const y = place(target, event).y - offset;
      const value = min + ((y - bottom) / (top - bottom)) * (max - min);
      act(target, within(Math.round(value / step) * step, min, max));
    };
  }

  /** A pointer's position in the drawing's units. */
  function place(target, event) {
    const point = new DOMPoint(event.clientX, event.clientY);
    return point.matrixTransform(target.ownerSVGElement.getScreenCTM().inverse());
  }

  function scaleOf(slider) {
    const read = (name) => Number(slider.getAttribute(`aria-value${name}`));
    return { min: read("min"), max: read("max"), now: read("now"), step: Number(slider.dataset.step) };
  }

  /** A slider's value after a key press; null if the slider ignores the key. */
  function byKey(slider, key) {
    const { min, max, now, step } = scaleOf(slider);
    const moves = {
      ArrowUp: now + step,
      ArrowRight: now + step,
      ArrowDown: now - step,
      ArrowLeft: now - step,
      PageUp: now + 10 * step,
      PageDown: now - 10 * step,
      Home: min,
      End: max,
    };
    return key in moves ? within(moves[key], min, max) : null;
  }

  /** A value clamped to its limits, without floating-point noise. */
  function within(value, min, max) {
    return Number(Math.min(max, Math.max(min, value)).toFixed(6));
  }

  for (const root of document.querySelectorAll("[data-playground]")) start(root);
})();
