/**
 * Marks which chapters the reader has read. The marks stay in this browser: nothing is sent.
 *
 * A chapter has checkboxes with `data-chapter`; the page with `data-reading-progress` counts them.
 * If the browser stores nothing (private windows, blocked storage), marks last as long as the page
 * is open.
 */
(function () {
  "use strict";

  const KEY = "lnbook.read";
  const root = new URL(document.documentElement.dataset.content_root || "./", location.href);
  let remembered = [];

  /** @returns {Set<string>} the names of the chapters that are marked as read */
  function read() {
    try {
      const stored = JSON.parse(localStorage.getItem(KEY) || "[]");
      return new Set(Array.isArray(stored) ? stored : []);
    } catch {
      return new Set(remembered);
    }
  }

  /** Store the marks and show them. @param {Iterable<string>} names */
  function keep(names) {
    remembered = [...names];
    try {
      localStorage.setItem(KEY, JSON.stringify(remembered));
    } catch {
      // Nothing can be stored here, so the marks last as long as the page is open.
    }
    show();
  }

  /** The book's name for the page that a link leads to. */
  function nameOf(link) {
    const target = new URL(link.getAttribute("href"), location.href);
    if (!target.pathname.startsWith(root.pathname)) return "";
    return decodeURIComponent(target.pathname.slice(root.pathname.length)).replace(/\.html$/, "");
  }

  /** Add a mark after a link, or remove it. */
  function mark(link, isRead) {
    const old = link.querySelector(".ln-mark");
    if (isRead && !old) {
      const sign = document.createElement("span");
      const words = document.createElement("span");
      sign.className = "ln-mark";
      words.className = "ln-spoken";
      words.textContent = " (read)";
      sign.append(words);
      link.append(sign);
    } else if (!isRead && old) {
      old.remove();
    }
  }

  function show() {
    const marks = read();
    for (const box of document.querySelectorAll("input[data-chapter]")) {
      box.checked = marks.has(box.dataset.chapter);
    }
    const progress = document.querySelector("[data-reading-progress]");
    for (const link of document.querySelectorAll("nav.bd-links a[href], .ln-map-title a")) {
      mark(link, marks.has(nameOf(link)));
    }
    if (progress) count(progress, marks);
  }

  /** Say how many chapters have been read, and which one comes next. */
  function count(progress, marks) {
    const chapters = [...progress.querySelectorAll("li a")];
    const unread = chapters.filter((link) => !marks.has(nameOf(link)));
    const done = chapters.length - unread.length;
    // Marks are in the order in which they were made. Readers continue from the last one, even if
    // they've skipped something before it.
    const last = chapters.map(nameOf).indexOf([...marks].pop());
    progress.querySelector("progress").value = done;
    progress.querySelector("[data-count]").textContent =
      `${done} of ${chapters.length} chapters read`;
    const next = progress.querySelector("[data-next]");
    next.replaceChildren();
    if (done > 0 && unread.length > 0) {
      const [target] = [...unread.filter((link) => chapters.indexOf(link) > last), ...unread];
      const link = document.createElement("a");
      link.href = target.getAttribute("href");
      link.textContent = target.textContent;
      next.append("Continue with ", link, ".");
    }
    progress.querySelector("[data-clear]").hidden = done === 0;
  }

  /** Remove all marks; the same button restores them. */
  function connectClear(button) {
    const label = button.textContent;
    let undo = null;
    button.addEventListener("click", () => {
      const before = undo || [...read()];
      keep(undo || []);
      undo = undo ? null : before;
      button.textContent = undo ? "Bring the marks back" : label;
      button.hidden = false;
    });
  }

  for (const box of document.querySelectorAll("input[data-chapter]")) {
    box.addEventListener("change", () => {
      const marks = read();
      if (box.checked) marks.add(box.dataset.chapter);
      else marks.delete(box.dataset.chapter);
      keep(marks);
    });
  }
  for (const button of document.querySelectorAll("[data-clear]")) connectClear(button);
  // The marks may have changed in another tab, or before the back button restored this page.
  window.addEventListener("storage", (event) => event.key === KEY && show());
  window.addEventListener("pageshow", (event) => event.persisted && show());
  document.documentElement.classList.add("ln-scripted");
  show();
})();
