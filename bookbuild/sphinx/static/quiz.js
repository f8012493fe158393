/**
 * Counts how many questions of a `.ln-quiz` were answered correctly on the first try. Every option
 * is a <details>, which opens its verdict without this script.
 */
(function () {
  "use strict";

  /** @param {HTMLElement} quiz the list of questions */
  function start(quiz) {
    const questions = [...quiz.querySelectorAll(":scope > .ln-question")];
    const score = document.createElement("p");
    score.className = "ln-score";
    score.setAttribute("role", "status");
    const again = document.createElement("button");
    again.type = "button";
    again.textContent = "Start over";
    const bar = document.createElement("div");
    bar.className = "ln-quiz-bar";
    bar.append(score, again);
    quiz.after(bar);

    function show() {
      const answered = questions.filter((question) => question.dataset.first);
      const right = answered.filter((question) => question.dataset.first === "right");
      score.textContent = answered.length
        ? `${right.length} of ${answered.length} right on the first try, ${questions.length - answered.length} to go`
        : `${questions.length} questions. Choose an option to see whether it's right, and why.`;
      again.hidden = !answered.length;
    }

    for (const question of questions) {
      for (const option of question.querySelectorAll(".ln-option")) {
        // Not the `toggle` event, since printing opens all options, too.
        option.querySelector("summary").addEventListener("click", () => {
          question.dataset.first ||= option.classList.contains("ln-right") ? "right" : "wrong";
          show();
        });
      }
    }
    again.addEventListener("click", () => {
      for (const question of questions) {
        delete question.dataset.first;
        for (const fold of question.querySelectorAll("details")) fold.open = false;
      }
      show();
      questions[0].scrollIntoView();
    });
    show();
  }

  for (const quiz of document.querySelectorAll(".ln-quiz")) start(quiz);
})();
