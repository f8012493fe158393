/**
 * Asks the questions of a `.ln-guide` one at a time: a yes leads to its advice, a no to the next
 * question. The questions already answered stay visible and lead back.
 */
(function () {
  "use strict";

  const make = (tag, className, ...children) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    element.append(...children);
    return element;
  };

  /** @param {HTMLElement} guide holds a list of questions with their advice */
  function start(guide) {
    const items = [...guide.querySelectorAll(":scope > ol > li")];
    const questions = items.slice(0, -1);
    const path = make("ol", "ln-guide-path");
    const count = make("p", "ln-guide-count");
    const button = (text, name, act) => {
      const one = make("button", name, text);
      one.type = "button";
      one.addEventListener("click", act);
      return one;
    };
    let at = 0;
    let answered = false;

    const yes = button("Yes", "ln-guide-yes", () => go(at, true));
    const no = button("No", "ln-guide-no", () => (at + 1 < questions.length ? go(at + 1, false) : go(questions.length, true)));
    const again = button("Start over", "ln-guide-again", () => go(0, false));
    const buttons = make("div", "ln-guide-buttons", yes, no, again);
    guide.prepend(path, count);
    guide.append(buttons);
    guide.setAttribute("role", "group");
    guide.setAttribute("aria-label", "Find a norm, one question at a time");

    /** Show a question, or its advice. The last item is the advice when every answer was no. */
    function go(index, isAnswer, first = false) {
      at = index;
      answered = isAnswer;
      items.forEach((item, i) => {
        item.hidden = i !== at;
        item.classList.toggle("ln-answered", i === at && answered);
      });
      const isEnd = at === questions.length;
      path.replaceChildren(
        ...questions.slice(0, at + (answered && !isEnd ? 1 : 0)).map((item, i) => {
          const question = item.querySelector("p").textContent;
          const back = button(question, "ln-guide-back", () => go(i, false));
          return make("li", "", back, make("span", "", i === at ? "yes" : "no"));
        })
      );
      count.textContent = answered ? "Try this first" : `Question ${at + 1} of ${questions.length}`;
      yes.hidden = no.hidden = answered;
      again.hidden = !answered && at === 0;
      if (first) return;
      items[at].tabIndex = -1;
      items[at].focus({ preventScroll: true }); // so that screen readers read it
    }

    go(0, false, true);
    guide.dataset.live = "";
  }

  for (const guide of document.querySelectorAll(".ln-guide")) start(guide);
})();
