/**
 * The map of the course, and the graph of what builds on what: while a pointer or the focus is on a
 * chapter, the chapters that it builds on are marked, and so are those before them, more faintly.
 * In the graph, so are the arcs that end at the chapter.
 */
(function () {
  "use strict";

  for (const map of document.querySelectorAll(".ln-map, .ln-graph")) {
    const cards = new Map([...map.querySelectorAll("li")].map((card) => [card.dataset.number, card]));
    const needs = (card) => card.dataset.needs.split(" ").filter((number) => cards.has(number));

    /** Every chapter that a chapter builds on, directly or through others. */
    function all(card, found = new Set()) {
      for (const number of needs(card)) {
        if (found.has(number)) continue;
        found.add(number);
        all(cards.get(number), found);
      }
      return found;
    }

    function show(card) {
      const direct = new Set(card ? needs(card) : []);
      const before = card ? all(card) : new Set();
      for (const [number, other] of cards) {
        other.classList.toggle("ln-needed", direct.has(number));
        other.classList.toggle("ln-before", before.has(number) && !direct.has(number));
      }
      for (const arc of map.querySelectorAll("path")) {
        arc.classList.toggle("ln-lit", Boolean(card) && arc.dataset.to === card.dataset.number);
      }
    }

    const on = ({ target }) => show(target.closest?.("li") || null);
    map.addEventListener("pointerover", on);
    map.addEventListener("focusin", on);
    map.addEventListener("pointerleave", () => show(map.contains(document.activeElement) ? document.activeElement.closest("li") : null));
    map.addEventListener("focusout", ({ relatedTarget }) => map.contains(relatedTarget) || show(null));
  }
})();
