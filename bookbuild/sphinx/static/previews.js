/*
 * Cards that show what a link leads to: terms, symbols, cited works, equations and figures. They open
 * when a reader points at the link or focuses it, and on the first tap on a touch screen; the second
 * tap follows the link. Escape closes a card, and the pointer can move onto it.
 */
"use strict";

(function () {
  const DELAY = 220; // milliseconds, so that a pointer on its way elsewhere opens nothing
  const GRACE = 200; // time to get from the link to the card
  const GAP = 8;
  const EDGE = 12;
  const LINKS = 'article a.reference.internal[href*="#"]';
  const KINDS = /#(term|symbol|equation)-/;
  const base = new URL("..", document.currentScript.src); // of the site
  const here = location.href.split(/[?#]/)[0];

  const contents = new Map(); // page: the promise of its cards
  const arrived = new Map();
  window.lnPreviews = (page, cards) => arrived.set(page, cards);

  /** The page and id that a link leads to. */
  function targetOf(link) {
    const url = new URL(link.href);
    const page = url.href.split(/[?#]/)[0].slice(base.href.length).replace(/\.html$/, "") || "index";
    return [page, decodeURIComponent(url.hash.slice(1))];
  }

  function mayHaveCard(link) {
    if (!link.href.startsWith(base.href) || link.closest(".ln-card")) return false;
    return KINDS.test(link.getAttribute("href")) || Boolean(link.closest(".bibtex-citation") || link.querySelector(".std-numref"));
  }

  /** What cards show for a page's targets: {id: [kind, html]}. */
  function load(page) {
    if (!contents.has(page)) {
      contents.set(
        page,
        new Promise((resolve) => {
          const script = document.createElement("script");
          script.src = new URL(`_static/previews/${page.replaceAll("/", "~")}.js`, base).href;
          script.onload = () => resolve(arrived.get(page) || {});
          script.onerror = () => resolve({}); // the link still works
          document.head.append(script);
        }),
      );
    }
    return contents.get(page);
  }

  let card = null;
  let shownFor = null;
  let waiting = 0;
  let leaving = 0;
  let touched = false;

  function hide() {
    clearTimeout(waiting);
    clearTimeout(leaving);
    waiting = 0;
    if (!card) return;
    shownFor.removeAttribute("aria-describedby");
    shownFor.removeAttribute("aria-expanded");
    card.remove();
    card = shownFor = null;
  }

  function hideSoon() {
    clearTimeout(waiting);
    clearTimeout(leaving);
    leaving = setTimeout(hide, GRACE);
  }

  async function show(link, byTouch) {
    const [page, id] = targetOf(link);
    const wanted = (waiting = waiting || -1);
    const found = (await load(page))[id];
    if (!found || waiting !== wanted) return;
    hide();
    if (link.title) {
      link.dataset.title = link.title; // the card says the same, and more
      if (link.matches(".ln-symbol")) link.setAttribute("aria-label", link.title); // it has no text
      link.removeAttribute("title");
    }
    const [kind, html] = found;
    card = document.createElement("div");
    card.id = "ln-card";
    card.className = "ln-card d-print-none";
    card.dataset.kind = kind;
    const content = document.createElement("div");
    content.className = "ln-card-content";
    content.innerHTML = html;
    for (const image of content.querySelectorAll("img")) image.src = new URL(image.getAttribute("src"), base).href;
    const name = document.createElement("p");
    name.className = "ln-card-kind";
    name.textContent = kind;
    card.append(name, content);
    if (byTouch) {
      const open = document.createElement("a");
      open.className = "ln-card-open";
      open.href = link.href;
      open.textContent = here === link.href.split(/[?#]/)[0] ? "Go there" : "Open the page";
      open.addEventListener("click", hide);
      card.append(open);
      card.setAttribute("role", "dialog");
      card.setAttribute("aria-label", `${kind}: ${link.textContent.trim()}`);
      link.setAttribute("aria-expanded", "true");
    } else {
      card.setAttribute("role", "tooltip");
      link.setAttribute("aria-describedby", card.id);
    }
    shownFor = link;
    (document.querySelector("main") || document.body).append(card);
    place(link);
    for (const image of card.querySelectorAll("img")) image.addEventListener("load", () => shownFor === link && place(link));
    if (byTouch) card.querySelector(".ln-card-open").focus({ preventScroll: true });
  }

  /** Below the link, or above it where there's more room; never outside the window. */
  function place(link) {
    const at = link.getClientRects()[0] || link.getBoundingClientRect();
    card.style.maxHeight = "";
    const { width, height } = card.getBoundingClientRect();
    const below = innerHeight - at.bottom - GAP - EDGE;
    const above = at.top - GAP - EDGE;
    const isBelow = height <= below || below >= above;
    const room = isBelow ? below : above;
    card.style.maxHeight = `${Math.max(120, room)}px`;
    // Make anything that scrolls reachable by keyboard.
    for (const box of [card, ...card.querySelectorAll(".math")]) {
      if (box.scrollHeight > box.clientHeight + 1 || box.scrollWidth > box.clientWidth + 1) box.tabIndex = 0;
    }
    const left = Math.min(Math.max(EDGE, at.left - 16), document.documentElement.clientWidth - width - EDGE);
    card.style.left = `${Math.max(EDGE, left)}px`;
    card.style.top = `${isBelow ? at.bottom + GAP : at.top - GAP - Math.min(height, Math.max(120, room))}px`;
  }

  function linkOf(event) {
    const link = event.target.closest?.(LINKS);
    return link && mayHaveCard(link) ? link : null;
  }

  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch") return;
    if (card?.contains(event.target)) {
      clearTimeout(leaving);
      return;
    }
    const link = linkOf(event);
    if (!link) return;
    clearTimeout(leaving);
    if (link === shownFor) return;
    load(targetOf(link)[0]);
    clearTimeout(waiting);
    waiting = setTimeout(() => show(link, false), DELAY);
  });
  document.addEventListener("pointerout", (event) => {
    if (event.pointerType === "touch") return;
    const to = event.relatedTarget;
    if (card?.contains(to) || (shownFor && shownFor.contains(to))) return;
    if (linkOf(event) || card?.contains(event.target)) hideSoon();
  });
  document.addEventListener("focusin", (event) => {
    const link = linkOf(event);
    if (!link || touched || !link.matches(":focus-visible")) return;
    clearTimeout(waiting);
    waiting = setTimeout(() => show(link, false), DELAY);
  });
  document.addEventListener("focusout", (event) => {
    if (linkOf(event) && !card?.contains(event.relatedTarget)) hideSoon();
  });
  document.addEventListener("pointerdown", (event) => {
    touched = event.pointerType === "touch";
    if (card && !card.contains(event.target) && event.target.closest?.("a") !== shownFor) hide();
  }, true); // prettier-ignore
  document.addEventListener("click", async (event) => {
    const link = linkOf(event);
    if (!link) return;
    if (!touched || link === shownFor || event.ctrlKey || event.metaKey || event.shiftKey) {
      hide();
      return;
    }
    event.preventDefault();
    const [page, id] = targetOf(link);
    const found = (await load(page))[id];
    if (found) show(link, true);
    else location.assign(link.href);
  });
  document.addEventListener("keydown", (event) => {
    touched = false;
    if (event.key !== "Escape" || !card) return;
    const link = shownFor;
    const inside = card.contains(document.activeElement);
    hide();
    if (inside) link.focus({ preventScroll: true });
  });
  addEventListener("scroll", (event) => { if (card && !card.contains(event.target)) hide(); }, { passive: true, capture: true }); // prettier-ignore
  addEventListener("resize", hide);
})();
