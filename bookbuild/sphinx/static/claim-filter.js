/** Adds a filter above each table of claims: by verdict, and by words in the claim. */
(function () {
  "use strict";

  const NAMES = ["false", "half", "slip", "open", "true"];
  const BADGES = NAMES.map((name) => `ln-verdict-${name}`);

  const plain = (text) => text.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").toLowerCase();

  /** @param {HTMLTableElement} table */
  function start(table) {
    const rows = [...table.tBodies[0].rows].map((row) => ({
      row,
      text: plain(row.textContent),
      verdicts: NAMES.filter((name, i) => row.querySelector(`.${BADGES[i]}`)),
    }));
    let chosen = "all";
    const bar = document.createElement("div");
    bar.className = "ln-filter";
    bar.setAttribute("role", "group");
    bar.setAttribute("aria-label", "Filter the claims");
    const field = document.createElement("input");
    field.type = "search";
    field.placeholder = "Words in a claim";
    field.setAttribute("aria-label", "Words in a claim");
    const said = document.createElement("p");
    said.setAttribute("role", "status");

    const found = NAMES.filter((name) => rows.some(({ verdicts }) => verdicts.includes(name)));
    const buttons = ["all", ...found].map((name) => {
      const one = document.createElement("button");
      one.type = "button";
      const count = name === "all" ? rows.length : rows.filter(({ verdicts }) => verdicts.includes(name)).length;
      one.textContent = `${name} ${count}`;
      one.dataset.verdict = name;
      one.addEventListener("click", () => {
        chosen = name;
        show();
      });
      return one;
    });

    function show() {
      const words = plain(field.value).split(/\s+/).filter(Boolean);
      let count = 0;
      for (const { row, text, verdicts } of rows) {
        const matches = (chosen === "all" || verdicts.includes(chosen)) && words.every((word) => text.includes(word));
        row.hidden = !matches;
        count += Number(matches);
      }
      for (const one of buttons) one.setAttribute("aria-pressed", String(one.dataset.verdict === chosen));
      said.textContent = count ? `${count} of ${rows.length} claims` : "No claim matches. Try another word, or “all”.";
    }

    field.addEventListener("input", show);
    bar.append(...buttons, field, said);
    const box = table.closest(".pst-scrollable-table-container") || table;
    box.before(bar);
    show();
  }

  for (const table of document.querySelectorAll("table.ln-claims")) start(table);
})();
