/*
 * The pages' interactive features: color mode, menus on narrow screens, the position
 * on the page, and copying code. Replaces the theme's scripts. Every page works without it.
 */
"use strict";

(function () {
  const root = document.documentElement;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  /** Store a choice in the browser; if storage is blocked, the choice lasts for this page only. */
  function keep(name, value) {
    try {
      localStorage.setItem(name, value);
    } catch (error) {
      /* The choice lasts until the reader leaves the page. */
    }
  }

  // Color mode: system, light, dark. The page's head has already applied the stored one.
  const MODE_NAMES = { auto: "system", light: "light", dark: "dark" };
  const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

  /** The next mode: first the opposite of the system's, then the one that looks like it, then the system's. */
  function nextMode(mode) {
    const [like, unlike] = systemIsDark.matches ? ["dark", "light"] : ["light", "dark"];
    return { auto: unlike, [unlike]: like, [like]: "auto" }[mode];
  }

  /** Show the page in one of the modes. */
  function showMode(mode) {
    root.dataset.mode = mode;
    root.dataset.theme = mode === "dark" || (mode === "auto" && systemIsDark.matches) ? "dark" : "light";
    for (const button of all(".theme-switch-button")) {
      button.setAttribute("aria-label", `Color mode: ${MODE_NAMES[mode]}`);
      button.title = `Color mode: ${MODE_NAMES[mode]}`;
    }
  }

  function setUpMode() {
    showMode(root.dataset.mode);
    systemIsDark.addEventListener("change", () => showMode(root.dataset.mode));
    for (const button of all(".theme-switch-button")) {
      button.addEventListener("click", () => {
        const mode = nextMode(root.dataset.mode);
        showMode(mode);
        keep("mode", mode);
      });
    }
  }

  /**
   * Make a button show a sidebar. If there's no room for the sidebar, its content moves into a dialog
   * while the dialog is open, so that there's only one copy of every link and id.
   */
  function setUpSidebar(buttons, sidebar, dialog) {
    if (!sidebar || !dialog) return;
    dialog.classList.add(...sidebar.classList);
    const move = (from, to) => to.append(...from.childNodes);
    dialog.addEventListener("close", () => move(dialog, sidebar));
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog || event.target.closest("a[href]:not(.search-button__button)")) dialog.close();
    });
    for (const button of buttons) {
      button.addEventListener("click", () => {
        if (getComputedStyle(sidebar).display !== "none") {
          sidebar.classList.toggle("pst-sidebar-hidden");
        } else {
          move(sidebar, dialog);
          dialog.showModal();
        }
      });
    }
    // When the window gets wider, the sidebar itself reappears.
    addEventListener("resize", () => dialog.open && getComputedStyle(sidebar).display !== "none" && dialog.close());
  }

  /** Scroll the table of contents (not the page) to this page's entry. */
  function showCurrentEntry() {
    const sidebar = document.getElementById("pst-primary-sidebar");
    const entry = sidebar?.querySelector("a.current");
    if (!entry || sidebar.clientHeight === 0) return;
    const top = entry.getBoundingClientRect().top - sidebar.getBoundingClientRect().top;
    if (top > sidebar.clientHeight * 0.8) sidebar.scrollTop = top - sidebar.clientHeight / 3;
  }

  /** Mark the current section in "On this page": the last one that has started. */
  function setUpPlace() {
    const links = new Map(all("#pst-page-toc-nav a").map((link) => [decodeURIComponent(link.hash.slice(1)), link]));
    const sections = all("article section[id]").filter((section) => links.has(section.id));
    if (sections.length === 0) return;
    const visible = new Set();
    let marked = null;
    const observer = new IntersectionObserver(
      (entries) => {
        for (const entry of entries) visible[entry.isIntersecting ? "add" : "delete"](entry.target);
        const now = sections.filter((section) => visible.has(section)).pop();
        const link = now && links.get(now.id);
        if (!link || link === marked) return;
        marked?.classList.remove("active");
        marked?.removeAttribute("aria-current");
        link.classList.add("active");
        link.setAttribute("aria-current", "true");
        marked = link;
      },
      { rootMargin: "-15% 0px -75% 0px" },
    );
    for (const section of sections) observer.observe(section);
  }

  /** Copy text, even where the page can't use the clipboard API. */
  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch (error) {
      const field = document.createElement("textarea");
      field.value = text;
      field.style.cssText = "position:fixed;opacity:0";
      document.body.append(field);
      field.select();
      const done = document.execCommand("copy");
      field.remove();
      return done;
    }
  }

  function setUpCopying() {
    for (const code of all("div.highlight pre")) {
      if (code.closest(".cell_output")) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copybtn";
      button.textContent = "Copy";
      button.setAttribute("aria-live", "polite");
      button.addEventListener("click", async () => {
        const done = await copy(code.textContent.replace(/\n$/, ""));
        button.textContent = done ? "Copied" : "Not copied";
        button.classList.toggle("success", done);
        setTimeout(() => {
          button.textContent = "Copy";
          button.classList.remove("success");
        }, 1600);
      });
      code.after(button);
    }
  }

  /**
   * Make everything that scrolls sideways reachable by keyboard. Each box is measured when it's laid
   * out or resized: measuring all of them at once would lay out the whole page.
   */
  function setUpScrolling() {
    const measured = new ResizeObserver((entries) => {
      for (const { target } of entries) {
        if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
        else target.removeAttribute("tabindex");
      }
    });
    const names = ["pre", ".katex-display", ".pst-scrollable-table-container", ".cell_output .text_html"];
    const boxes = all(names.map((name) => `article ${name}`).join());
    const measure = () => {
      measured.disconnect();
      for (const box of boxes) measured.observe(box);
    };
    // A guess until a box is laid out: on phones most of them scroll, and elsewhere only long lines do.
    const long = (box) => box.matches("pre") && box.textContent.split("\n").some((line) => line.length > 72);
    for (const box of boxes) if (innerWidth < 768 || long(box)) box.tabIndex = 0;
    measure();
    // A new font can make a formula wider without changing the size of its box.
    document.fonts.addEventListener("loadingdone", measure);
  }

  /**
   * Lay out the sections that the style sheet has deferred: after the reader's first action, one at a
   * time while the browser is idle, so that nothing jumps when the reader gets there.
   */
  function setUpLayout() {
    const MOVES = ["scroll", "pointermove", "keydown", "touchstart"];
    const wait = window.requestIdleCallback || ((next) => setTimeout(next, 20)); // Safari
    const waiting = all(".bd-article section > section, .bd-article section > dl.py");
    const next = () => {
      const section = waiting.shift();
      if (!section) {
        root.dataset.laidOut = "";
        return;
      }
      section.style.contentVisibility = "visible";
      section.getBoundingClientRect();
      wait(next);
    };
    const start = () => {
      for (const move of MOVES) removeEventListener(move, start);
      wait(next);
    };
    for (const move of MOVES) addEventListener(move, start, { passive: true });
  }

  function setUpMenus() {
    const menus = all("details.ln-menu");
    document.addEventListener("click", (event) => {
      for (const menu of menus) if (!menu.contains(event.target)) menu.open = false;
    });
    for (const menu of menus) {
      menu.addEventListener("keydown", (event) => {
        if (event.key !== "Escape" || !menu.open) return;
        menu.open = false;
        menu.querySelector("summary").focus();
      });
    }
    for (const button of all(".ln-print")) button.addEventListener("click", () => print());
  }

  /** Open all folds for printing, and close them again afterward. Also pass the URL to the style sheet. */
  function setUpPrinting() {
    let opened = [];
    addEventListener("beforeprint", () => {
      if (location.protocol !== "file:") root.style.setProperty("--ln-address", JSON.stringify(location.origin + location.pathname));
      opened = all("article details:not([open])");
      for (const details of opened) details.open = true;
    });
    addEventListener("afterprint", () => {
      for (const details of opened) details.open = false;
    });
  }

  /** A link to a place inside a fold opens the fold. */
  function openTarget() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let details = target && target.closest("details"); details; details = details.parentElement.closest("details")) {
      details.open = true;
    }
  }

  setUpMode();
  for (const name of ["primary", "secondary"]) {
    setUpSidebar(
      all(`.${name}-toggle`),
      document.getElementById(`pst-${name}-sidebar`),
      document.getElementById(`pst-${name}-sidebar-modal`),
    );
  }
  setUpPlace();
  setUpCopying();
  setUpScrolling();
  setUpLayout();
  setUpMenus();
  setUpPrinting();
  addEventListener("hashchange", openTarget);
  openTarget();
  requestAnimationFrame(showCurrentEntry);
})();
