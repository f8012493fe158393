/**
 * Judges what a reader enters under an exercise, following the rules of the exercise's checker
 * in lnbook (bookbuild/site/answer_rules.py). `judgeAnswers` says what the checker would say.
 */
(function () {
  "use strict";

  /** @returns {number} the value of "0.27", "-2e-5", "10,000", "0,27" or "3/16"; NaN for anything else */
  function parseNumber(text) {
    let plain = text.trim().replace(/[\u2212\u2013]/g, "-").replace(/[\s\u202f]/g, "");
    if (/^[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?$/.test(plain)) plain = plain.replaceAll(",", "");
    else plain = plain.replace(",", ".");
    const parts = plain.split("/");
    if (parts.length > 2 || parts.some((part) => !/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(part))) return NaN;
    return parts.length === 2 ? Number(parts[0]) / Number(parts[1]) : Number(parts[0]);
  }

  /**
   * @param {object} rules with steps and praise
   * @param {Object<string, string[]>} texts the contents of the fields, keyed by name
   * @returns {{correct: boolean, message: string}}
   */
  function judgeAnswers(rules, texts) {
    const numbers = {};
    for (const step of rules.steps) {
      let problem;
      if (step.read) problem = read(step, texts[step.read], numbers);
      else if (step.choose) problem = judgeChoice(step, texts[step.choose][0]);
      else if (step.letters) problem = judgeLetters(step, texts[step.letters]);
      else problem = judge(step, numbers);
      if (problem) return { correct: false, message: problem };
    }
    return { correct: true, message: rules.praise };
  }

  /** Read one field; returns what's wrong with it, or nothing. */
  function read(step, texts, numbers) {
    const empty = texts.filter((text) => !text.trim()).length;
    if (empty === texts.length) return `${step.what} is still missing.`;
    if (empty) return `${step.what} still has a blank in it.`;
    const values = texts.map(parseNumber);
    const wrong = values.findIndex((value) => !Number.isFinite(value));
    const wanted = step.whole ? "one whole number" : step.shape.length ? "numbers" : "one number";
    if (wrong >= 0) return `${step.what} should be ${wanted}, but has "${texts[wrong].trim()}" in it.`;
    if (step.whole && !Number.isInteger(values[0])) return `${step.what} should be one whole number, but is ${values[0]}.`;
    numbers[step.read] = values;
  }

  /** Compare with the right answer, then with the answers that common mistakes give. */
  function judge(step, numbers) {
    const given = step.judge.flatMap((name) => numbers[name]);
    const near = (value, i) => {
      if (given[i] === value) return true;
      const difference = step.relative ? Math.log(given[i] / value) : given[i] - value;
      return Math.abs(difference) <= step.tolerance;
    };
    if (step.expected.every((value, i) => near(value, i))) return;
    const known = step.mistakes.find(([, values]) => values.every((value, i) => near(value, i)));
    return known ? known[0] : step.otherwise;
  }

  function judgeChoice(step, chosen) {
    if (!chosen) return `${step.name} is still missing.`;
    const reply = step.replies[chosen];
    if (reply !== null) return `${step.name}: ${reply}`;
  }

  /** @param {string[]} given the letters that were checked */
  function judgeLetters(step, given) {
    if (!given.length) return "Your letters are still missing.";
    const wrong = step.reasons.find(([letter, belongs]) => given.includes(letter) !== belongs);
    if (wrong) return wrong[2];
  }

  /** The contents of a field: its texts, the chosen word, or the checked letters. */
  function entered(field) {
    const inputs = [...field.querySelectorAll("input, select")];
    return inputs.filter((input) => input.type !== "checkbox" || input.checked).map((input) => input.value);
  }

  /** @param {HTMLFormElement} form */
  function start(form) {
    const rules = JSON.parse(form.dataset.rules);
    const names = rules.steps.map((step) => step.read || step.choose || step.letters).filter(Boolean);
    const fields = [...form.querySelectorAll(".ln-answers-field")];
    const verdict = form.querySelector("output");
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const texts = Object.fromEntries(fields.map((field, i) => [names[i], entered(field)]));
      const { correct, message } = judgeAnswers(rules, texts);
      form.classList.toggle("ln-right", correct);
      form.classList.toggle("ln-not-yet", !correct);
      verdict.textContent = `${correct ? "Correct." : "Not yet."} ${message}`;
    });
    form.addEventListener("input", () => {
      form.classList.remove("ln-right", "ln-not-yet");
      verdict.textContent = "";
    });
  }

  globalThis.judgeAnswers = judgeAnswers;
  globalThis.document?.querySelectorAll(".ln-answers").forEach(start);
})();
