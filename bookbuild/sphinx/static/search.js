/*
 * The search field: shows results by section as the reader types, and opens one with the keyboard
 * or a click. What it searches is loaded when the reader goes to the field. The pattern is WAI-ARIA's
 * combobox with a listbox: the focus stays in the field, and the arrows choose a result.
 */
"use strict";

(function () {
  const AT_ONCE = 12; // results in the dialog
  const ON_PAGE = 60; // and on the search page
  const CHUNK = 60; // texts to index between two frames
  const BEFORE = 50; // characters of an excerpt before the first matched word
  const EXCERPT = 170;
  const KINDS = { term: "Glossary", symbol: "Symbol", exercise: "Exercise", work: "Bibliography", api: "Reference" };
  const WITH_PAGE = new Set(["section", "exercise", "api"]); // these show their page
  const WORD = /[\p{L}\p{M}\p{N}]+(?:[-_'’‑][\p{L}\p{M}\p{N}]+)*/gu;

  let loading = null;

  /** Load the index and the scripts that read it, one after another; resolves to the engine. */
  function load(form) {
    loading ??= form.dataset.files
      .split(" ")
      .reduce((before, file) => before.then(() => loadScript(file)), Promise.resolve())
      .then(read);
    return loading;
  }

  function loadScript(address) {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = address;
      script.onload = resolve;
      script.onerror = () => reject(new Error(`${address} can't be loaded`));
      document.head.append(script);
    });
  }

  /** Read the texts in small steps, so that typing stays smooth. */
  function read() {
    const engine = new LNSearchEngine.Engine(MiniSearch, lnSearchIndex);
    return new Promise((resolve) => {
      const step = () => (engine.add(CHUNK) ? resolve(engine) : setTimeout(step));
      step();
    });
  }

  function element(tag, name, content) {
    const made = document.createElement(tag);
    if (name) made.className = name;
    if (content !== undefined) made.append(...[content].flat());
    return made;
  }

  /** The text, with the matched words marked. */
  function marked(text, engine, found) {
    const parts = [];
    let end = 0;
    for (const match of text.matchAll(WORD)) {
      if (!engine.isFound(match[0], found)) continue;
      parts.push(text.slice(end, match.index), element("mark", "", match[0]));
      end = match.index + match[0].length;
    }
    return [...parts, text.slice(end)].filter((part) => part !== "");
  }

  /** The part of a text around the first matched word. */
  function excerpt(text, engine, found) {
    let first = 0;
    for (const match of text.matchAll(WORD)) {
      if (!engine.isFound(match[0], found)) continue;
      first = match.index;
      break;
    }
    let start = 0;
    if (first > BEFORE) start = text.indexOf(" ", first - BEFORE) + 1;
    let shown = text.slice(start, start + EXCERPT);
    if (start + EXCERPT < text.length) shown = `${shown.slice(0, shown.lastIndexOf(" ")).replace(/[\s,;:.…]+$/, "")} …`;
    return (start > 0 ? "… " : "") + shown;
  }

  class SearchBox {
    constructor(form, place) {
      this.form = form;
      this.field = form.querySelector("input");
      this.list = form.querySelector("[role=listbox]");
      this.said = form.querySelector("[role=status]");
      this.onPage = Boolean(form.closest("article"));
      this.list.id = `ln-search-found-${place}`;
      this.chosen = -1;
      for (const [name, value] of [
        ["role", "combobox"],
        ["aria-autocomplete", "list"],
        ["aria-expanded", "false"],
        ["aria-controls", this.list.id],
      ])
        this.field.setAttribute(name, value);
      this.field.addEventListener("focus", () => this.prepare(), { once: true });
      this.field.addEventListener("input", () => this.update());
      this.field.addEventListener("keydown", (event) => this.onKey(event));
      this.form.addEventListener("submit", (event) => this.onSubmit(event));
      this.list.addEventListener("pointermove", (event) => {
        const option = event.target.closest("[role=option]");
        if (option) this.choose(this.options.indexOf(option), false);
      });
    }

    get options() {
      return [...this.list.querySelectorAll("[role=option]")];
    }

    async prepare() {
      try {
        this.engine = await load(this.form);
        this.update();
      } catch (error) {
        loading = null;
        this.say("The search can’t be loaded. The index and the contents work without it.");
      }
    }

    say(text) {
      this.said.textContent = text;
    }

    update() {
      const query = this.field.value.trim();
      if (!query) {
        this.show([]);
        this.say("");
      } else if (!this.engine) {
        this.say("Loading …");
      } else {
        const results = this.engine.search(query);
        this.show(results);
        const count = `${results.length === 1 ? "1 result" : `${results.length} results`}`;
        this.say(results.length ? count : `Nothing found for “${query}”. Try fewer or other words.`);
      }
      if (this.onPage) this.keepQuery(query);
    }

    /** Keep the query in the URL, so that going back from a result shows the results again. */
    keepQuery(query) {
      try {
        history.replaceState(null, "", query ? `?q=${encodeURIComponent(query)}` : location.pathname);
      } catch (error) {
        /* Some browsers don't allow this for local files. */
      }
    }

    show(results) {
      const limit = this.onPage ? ON_PAGE : AT_ONCE;
      const options = results.slice(0, limit).map((result, i) => this.option(result, i));
      if (!this.onPage && results.length > limit) {
        const all = element("a", "ln-search-all", `All ${results.length} results`);
        all.href = `${this.form.action}?q=${encodeURIComponent(this.field.value.trim())}`;
        options.push(this.asOption(all, options.length));
      }
      this.list.replaceChildren(...options);
      this.list.scrollTop = 0;
      this.list.hidden = options.length === 0;
      this.field.setAttribute("aria-expanded", String(options.length > 0));
      this.choose(options.length > 0 ? 0 : -1, false);
    }

    asOption(link, i) {
      link.id = `${this.list.id}-${i}`;
      link.tabIndex = -1; // the arrow keys go there
      link.setAttribute("role", "option");
      link.setAttribute("aria-selected", "false");
      return link;
    }

    option({ id, terms }, i) {
      const [kind, page, anchor, title, text] = this.engine.data.rows[id];
      const [path, number, pageTitle, part] = this.engine.data.pages[page];
      const found = new Set(terms);
      const link = element("a", "ln-search-result");
      link.href = `${this.form.dataset.root}${path}.html${anchor ? `#${anchor}` : ""}`;
      const chapter = `${number ? `${number}. ` : ""}${pageTitle}`;
      const where = kind === "page" ? part || "Page" : WITH_PAGE.has(kind) ? chapter : "";
      link.append(
        element("span", "ln-search-title", marked(title, this.engine, found)),
        element("span", "ln-search-where", KINDS[kind] ? [element("span", "ln-search-kind", KINDS[kind]), ` ${where}`] : where),
        element("span", "ln-search-text", marked(excerpt(text, this.engine, found), this.engine, found)),
      );
      return this.asOption(link, i);
    }

    choose(place, scroll = true) {
      const options = this.options;
      options[this.chosen]?.setAttribute("aria-selected", "false");
      this.chosen = place;
      const option = options[place];
      if (!option) {
        this.field.removeAttribute("aria-activedescendant");
        return;
      }
      option.setAttribute("aria-selected", "true");
      this.field.setAttribute("aria-activedescendant", option.id);
      if (scroll) option.scrollIntoView({ block: "nearest" });
    }

    onKey(event) {
      const count = this.options.length;
      if (event.isComposing || count === 0) return;
      const to = { ArrowDown: (this.chosen + 1) % count, ArrowUp: (this.chosen - 1 + count) % count }[event.key];
      if (to !== undefined) {
        event.preventDefault();
        this.choose(to);
      } else if (event.key === "Escape" && this.onPage) {
        this.field.value = "";
        this.update();
      }
    }

    /** Enter goes to the chosen result; before there are results, it waits for them. */
    async onSubmit(event) {
      if (!this.field.value.trim()) {
        event.preventDefault();
        return;
      }
      const byButton = event.submitter && document.activeElement === event.submitter;
      if (byButton && !this.onPage) return; // to the page with all results
      event.preventDefault();
      if (!this.engine) await this.prepare();
      if (!byButton) this.options[this.chosen]?.click();
    }
  }

  const boxes = [...document.querySelectorAll("form[data-search]")].map((form, i) => new SearchBox(form, i));
  const dialog = document.getElementById("pst-search-dialog");
  const onPage = boxes.find((box) => box.onPage);
  const inDialog = boxes.find((box) => !box.onPage);

  function open() {
    if (!onPage && !dialog.open) dialog.showModal();
    const { field } = onPage || inDialog;
    field.focus();
    field.select();
  }

  // A click on the backdrop has the dialog itself as its target. A link on the same page closes it, too.
  dialog?.addEventListener("click", (event) => {
    if (event.target === dialog || event.target.closest("a[href]")) dialog.close();
  });
  for (const button of document.querySelectorAll(".search-button__button")) {
    button.addEventListener("click", (event) => {
      event.preventDefault();
      button.closest("dialog")?.close();
      open();
    });
  }
  document.addEventListener("keydown", (event) => {
    const isShortcut = (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "k";
    const isSlash = event.key === "/" && !event.ctrlKey && !event.metaKey && !event.target.closest?.("input, textarea, select, [contenteditable]");
    if (!isShortcut && !isSlash) return;
    event.preventDefault();
    open();
  });
  if (onPage) {
    const query = new URLSearchParams(location.search).get("q");
    if (query) {
      onPage.field.value = query;
      open();
    }
  }
})();
