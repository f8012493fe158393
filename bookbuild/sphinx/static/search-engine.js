/*
 * What the search finds, and in what order. It splits texts and queries into words in the same
 * way: "warm-up" is "warmup" and also "warm up", LayerNorm is "layernorm" and also "layer norm", σ
 * and \sigma are "sigma". MiniSearch keeps the index; the tests run this file in Node.
 */
"use strict";

(function (root, make) {
  if (typeof module === "object") module.exports = make();
  else root.LNSearchEngine = make();
})(typeof self === "undefined" ? this : self, function () {
  const GREEK = {
    α: "alpha", β: "beta", γ: "gamma", δ: "delta", ε: "epsilon", ϵ: "epsilon", η: "eta", θ: "theta", κ: "kappa",
    λ: "lambda", μ: "mu", µ: "mu", ν: "nu", ξ: "xi", π: "pi", ρ: "rho", σ: "sigma", τ: "tau", φ: "phi", ϕ: "phi",
    χ: "chi", ψ: "psi", ω: "omega", Γ: "gamma", Δ: "delta", Θ: "theta", Λ: "lambda", Σ: "sigma", Φ: "phi",
    Ψ: "psi", Ω: "omega", "∂": "partial", "∇": "nabla", "√": "square root", "ℒ": "loss", "∞": "infinity",
  }; // prettier-ignore
  const GREEK_NAMES = new Set(Object.values(GREEK).flatMap((name) => name.split(" ")));
  // LaTeX commands that say how a formula looks, not what it's about.
  const LOOKS = new Set(
    ("frac dfrac tfrac left right big Big bigl bigr Bigl Bigr begin end quad qquad cdot cdots ldots dots text mathrm mathbf " +
      "mathcal mathbb operatorname bm boldsymbol top le ge leq geq ne neq approx in to odot times displaystyle")
      .split(" "),
  );
  const ACCENTS = { "\u0302": "hat", "\u0304": "bar", "\u0305": "bar", "\u0303": "tilde" };
  // Words that don't tell sections apart. A query with no other words is searched as it is.
  const COMMON = new Set(
    ("a across an and are as at be by can do does for from has have how i if in is it its of on or should so that the their " +
      "them there these they this to use using was what when where which who why will with you your my me we vs versus")
      .split(" "),
  );
  const TOKEN = /\d+(?:\.\d+)?e[+-]?\d+|\d+\.\d+|[a-z0-9]+(?:[-_'’‑–][a-z0-9]+)*/gi;
  const KIND_WEIGHT = { page: 1.25, section: 1, symbol: 1, term: 0.9, exercise: 0.5, work: 0.15, api: 0.3 };
  const SYMBOL_IN_WORDS = 0.6; // someone who types "sigma" may not be looking for the symbol
  const REFERENCE_PAGE = 0.7; // pages that aren't chapters repeat what chapters explain
  const WHOLE_TITLE = 3; // a title that's exactly what was asked for, compared with one that isn't
  const EXACT_TITLE = 1.4;
  const REPEATED_TITLE = 0.6; // "What to remember", in every chapter
  const MANY = 5;
  const LONGEST = 60; // words in a query

  /** A text without LaTeX, Greek letters and accents: these become words. */
  function spelled(text) {
    return text
      .replace(/\\(hat|bar|tilde|overline)\s*\{?\s*\\?([A-Za-z]+)\s*\}?/g, (_, accent, letter) => ` ${letter}${accent === "overline" ? "bar" : accent} `)
      .replace(/\\var(epsilon|phi|theta|sigma)/g, "\\$1")
      .replace(/\\sqrt/g, " square root ")
      .replace(/\\([A-Za-z]+)/g, (_, name) => (LOOKS.has(name) ? " " : ` ${name} `))
      .normalize("NFC")
      .replace(/[\u0370-\u03ffµ∂∇√ℒ∞]/g, (letter) => (GREEK[letter] ? ` ${GREEK[letter]} ` : letter))
      .normalize("NFKD")
      .replace(/([A-Za-z])\s?([\u0302\u0303\u0304\u0305])/g, (_, letter, accent) => ` ${letter}${ACCENTS[accent]} `)
      .replace(/[\u0300-\u036f]/g, "");
  }

  /** A word's singular form. */
  function singular(word) {
    if (word.length < 4 || !word.endsWith("s") || /(ss|us|is|as)$/.test(word)) return word;
    if (/ies$/.test(word) && word.length > 4) return `${word.slice(0, -3)}y`;
    if (/(ch|sh|ss|x|zz)es$/.test(word)) return word.slice(0, -2);
    return word.slice(0, -1);
  }

  /** The beginning that a word shares with its other forms, such as "normaliz" of "normalizing". */
  function stem(word) {
    const cut = word
      .replace(/([a-z]{3})[iy][sz](?:ations?|ed?|es|ing|ers?)$/, (_, before) => `${before}iz`)
      .replace(/(?<=[a-z]{4})(?:ings?|ed|ions?|ive|ally|ly)$/, "")
      .replace(/(?<=[a-z]{3})e$/, "")
      .replace(/([bdgklmnprt])\1$/, "$1");
    return cut.length >= 4 ? cut : word;
  }

  /**
   * The words of a text. Each is [whole, parts, raw]: the word with all its parts joined, the parts
   * if there are several, and the word as it's written.
   */
  function words(text) {
    return (spelled(text).match(TOKEN) || []).map(read).filter(([whole]) => whole);
  }

  const seen = new Map(); // most words in a book occur many times

  function read(raw) {
    if (seen.has(raw)) return seen.get(raw);
    const plain = raw.replace(/['’](s|t|re|ll|ve|d|m)$/i, "").replace(/isation/i, "ization");
    const parts = (/^[\d.]+e/i.test(plain) ? [plain] : plain.split(/[-_'’‑–]/))
      .flatMap((part) => part.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/([A-Z]{2,})([A-Z][a-z])/g, "$1 $2").split(" "))
      .map((part) => singular(part.toLowerCase()))
      .filter(Boolean);
    const word = [singular(parts.join("")), parts.length > 1 ? parts : [], raw];
    seen.set(raw, word);
    return word;
  }

  /** Ways to write the same thing, as a table from the words of each way to a common name. */
  function phrases(groups) {
    const table = new Map();
    table.begins = new Set(); // the first words
    for (const group of groups) {
      for (const way of group) {
        const own = words(way).flatMap(([whole, parts]) => (parts.length ? parts : [whole]));
        for (const key of [own.join(" "), own.join("")]) {
          if (!table.has(key)) table.set(key, `=${group[0]}`);
          table.begins.add(key.split(" ")[0]);
        }
      }
    }
    return table;
  }

  /** The phrases in a list of words, as [first, length, name], the longest at each position. */
  function* named(list, table) {
    const flat = list.flatMap(([whole, parts], place) =>
      table.has(whole) || !parts.length ? [[whole, place]] : parts.map((part) => [part, place]),
    );
    for (let first = 0; first < flat.length; first += 1) {
      if (!table.begins.has(flat[first][0])) continue;
      for (let length = Math.min(5, flat.length - first); length > 0; length -= 1) {
        const name = table.get(flat.slice(first, first + length).map(([word]) => word).join(" "));
        if (!name) continue;
        const last = flat[first + length - 1][1];
        yield [flat[first][1], last - flat[first][1] + 1, name];
        first += length - 1;
        break;
      }
    }
  }

  /** All the words and phrases by which a text can be found. */
  function terms(text, table) {
    const list = words(text);
    const found = [];
    for (const [whole, parts] of list) {
      if (whole.length > 1 && !COMMON.has(whole)) found.push(whole);
      for (const part of parts) if (part.length > 1 && !COMMON.has(part)) found.push(part);
      for (let i = 0; parts.length > 2 && i + 1 < parts.length; i += 1) found.push(parts[i] + parts[i + 1]);
    }
    for (const [, , name] of named(list, table)) found.push(name);
    return found;
  }

  class Engine {
    /**
     * @param MiniSearch the library's class.
     * @param data {pages: [path, number, title, part][], rows: [kind, page, anchor, title, text, more][], same: string[][]}
     */
    constructor(MiniSearch, data) {
      this.data = data;
      this.table = phrases(data.same);
      this.known = new Set();
      this.index = new MiniSearch({
        fields: ["title", "text", "more", "around"],
        extractField: (id, field) => this.field(id, field),
        tokenize: (text) => this.remembered(terms(text, this.table)),
        processTerm: (term) => term,
        searchOptions: { tokenize: (text) => [text], processTerm: (term) => term },
      });
      this.added = 0;
      this.titles = new Map(); // the words and phrases by which each title can be found
      this.repeated = new Map();
      for (const [, , , title] of data.rows) this.repeated.set(title, (this.repeated.get(title) || 0) + 1);
    }

    /** MiniSearch expects objects; here, each is just {id}, and its fields come from the rows. */
    field(document, name) {
      const [, page, , title, text, more] = this.data.rows[document.id];
      return { id: document.id, title, text, more, around: this.data.pages[page][2] }[name];
    }

    remembered(list) {
      for (const term of list) this.known.add(term);
      return list;
    }

    /** Add more rows to the index; returns whether all of them are in it now. */
    add(count = Infinity) {
      const end = Math.min(this.data.rows.length, this.added + count);
      const some = [];
      for (; this.added < end; this.added += 1) some.push({ id: this.added });
      this.index.addAll(some);
      return this.added === this.data.rows.length;
    }

    /** The words and phrases by which a title can be found, and its number of words; a named phrase counts as one. */
    title(id) {
      if (!this.titles.has(id)) {
        const list = words(this.data.rows[id][3]);
        const telling = new Set(list.keys());
        for (const [place, [whole]] of list.entries()) if (COMMON.has(whole)) telling.delete(place);
        for (const [first, length] of named(list, this.table)) {
          for (let place = first + 1; place < first + length; place += 1) telling.delete(place);
        }
        this.titles.set(id, [terms(this.data.rows[id][3], this.table), telling.size || 1]);
      }
      return this.titles.get(id);
    }

    /** One word of a query and the other ways to find it. */
    word([whole, parts, raw], isLast) {
      const ways = [{ queries: [whole], boost: { title: 4, text: 1, more: 0.35, around: 0.4 } }];
      const begins = stem(whole);
      const short = begins.length < 3 && !isLast;
      if (!short && !/^\d/.test(whole)) {
        ways.push({ queries: [begins], prefix: true, boost: { title: 2, text: 0.5, more: 0.1, around: 0.2 } });
      }
      if (parts.length > 1) {
        const boost = { title: 2.4, text: 0.6, more: 0.2, around: 0.2 };
        ways.push({ combineWith: "AND", queries: parts.map((part) => ({ queries: [part], boost })) });
      } else {
        ways.push(...this.split(whole));
      }
      const misspelled = !this.isKnown(whole, begins) && raw.length > 3 && !/\d/.test(whole);
      if (misspelled) {
        const boost = { title: 2, text: 0.4, more: 0.1, around: 0.1 };
        ways.push({ queries: [whole], fuzzy: whole.length > 5 ? 2 : 1, maxFuzzy: 2, boost });
      }
      return { combineWith: "OR", queries: ways, begins, misspelled };
    }

    /** Whether a word, or a longer one that begins with it, occurs in the book. */
    isKnown(whole, begins) {
      if (this.known.has(whole)) return true;
      for (const word of this.known) if (word.startsWith(begins)) return true;
      return false;
    }

    /** "layernorm" as "layer norm", if both are words in the book. */
    split(whole) {
      if (this.known.has(whole) || whole.length < 6) return [];
      const boost = { title: 2.4, text: 0.6, more: 0.2, around: 0.2 };
      const ways = [];
      for (let at = 3; at <= whole.length - 2; at += 1) {
        const [left, right] = [whole.slice(0, at), whole.slice(at)];
        if (!this.known.has(left) || !this.known.has(right)) continue;
        ways.push({ combineWith: "AND", queries: [{ queries: [left], boost }, { queries: [right], boost }] });
      }
      return ways;
    }

    /** A query as a list of units, each a word or a phrase, with all the ways to find it. */
    units(list) {
      const spans = new Map([...named(list, this.table)].map(([first, length, name]) => [first, [length, name]]));
      const units = [];
      for (let place = 0; place < list.length; ) {
        const [length, name] = spans.get(place) || [1, ""];
        const inside = list.slice(place, place + length);
        const own = inside.map((word, i) => this.word(word, place + i === list.length - 1));
        const together = own.length === 1 ? own[0] : { combineWith: "AND", queries: own };
        const ways = [together];
        const wholes = [inside.map(([whole]) => whole).join("")];
        if (name) {
          // Every way to write it counts the same. The reader may still be typing the last word.
          const begun = length === 1 && place + 1 === list.length && own[0].begins.length > 1;
          const longer = { queries: [own[0].begins], prefix: true, boost: { title: 0.4, text: 0.1, more: 0.05, around: 0.05 } };
          const literal = {
            combineWith: "AND",
            queries: inside.map(([whole]) => ({ queries: [whole], boost: { title: 1.5, text: 0.4, more: 0.1, around: 0.1 } })),
          };
          ways.splice(0, 1, literal, { queries: [name], boost: { title: 6, text: 1.5, more: 0.4, around: 0.5 } }, ...(begun ? [longer] : []));
          wholes.push(name);
        } else if (place + 1 < list.length && !spans.has(place + 1)) {
          // Two words that the book also writes as one: "warm up".
          const joined = singular(inside[0][0] + list[place + 1][0]);
          if (this.known.has(joined)) {
            const next = this.word(list[place + 1], place + 2 === list.length);
            ways.splice(0, 1, { combineWith: "AND", queries: [together, next] });
            ways.push({ queries: [joined], boost: { title: 4, text: 1, more: 0.35, around: 0.4 } });
            wholes.splice(0, 1, joined);
            units.push({ combineWith: "OR", queries: ways, wholes, begins: [own[0].begins, next.begins] });
            place += 2;
            continue;
          }
        }
        const misspelled = own.some((word) => word.misspelled);
        units.push({ combineWith: "OR", queries: ways, wholes, begins: own.map((word) => word.begins), misspelled });
        place += length;
      }
      return units;
    }

    /**
     * The best results for a query: [{id, score, terms}], where `terms` are the matched words.
     */
    search(query) {
      const all = words(query).slice(0, LONGEST);
      const telling = all.filter(([whole]) => !COMMON.has(whole));
      const list = telling.length ? telling : all;
      if (list.length === 0) return [];
      const units = this.units(list);
      const asSymbol = /[\\\u0080-\uffff]/.test(query);
      let found = this.index.search({ combineWith: "AND", queries: units });
      // If only a reference or a glossary term contains all the words, readers would miss the
      // chapters.
      const inChapter = ({ id }) => ["page", "section"].includes(this.data.rows[id][0]);
      if (!found.some(inChapter) && units.length > 1) found = this.withSome(units);
      return found
        .map(({ id, score, terms: matched }) => ({ id, score: score * this.weight(id, units, matched, asSymbol), terms: matched }))
        .sort((a, b) => b.score - a.score || a.id - b.id);
    }

    /** Results with most of the words, if none has all of them. */
    withSome(units) {
      const best = new Map();
      for (const unit of units) {
        for (const { id, score, terms: matched } of this.index.search(unit)) {
          const now = best.get(id) || { id, score: 0, count: 0, terms: [] };
          best.set(id, { id, score: now.score + score, count: now.count + 1, terms: [...now.terms, ...matched] });
        }
      }
      return [...best.values()].map((one) => ({ ...one, score: one.score * (one.count / units.length) ** 2 }));
    }

    /** How much a result counts: chapters come before references, and titles with the whole query come first. */
    weight(id, units, matched, asSymbol) {
      const [kind, page, , title] = this.data.rows[id];
      const isReference = this.data.pages[page][1] === "" && (kind === "page" || kind === "section");
      const [own, length] = this.title(id);
      const says = ({ wholes, begins, misspelled }) =>
        wholes.some((whole) => own.includes(whole)) ||
        begins.every((begin) => own.some((term) => term.startsWith(begin))) ||
        (misspelled && own.some((term) => matched.includes(term)));
      const share = kind !== "work" && units.every(says) ? 0.5 + 0.5 * Math.min(1, units.length / length) : 0;
      const exact = share === 1 && length === units.length ? EXACT_TITLE : 1;
      const repeated = this.repeated.get(title) > MANY ? REPEATED_TITLE : 1;
      const inWords = kind === "symbol" && !asSymbol ? SYMBOL_IN_WORDS : 1;
      return KIND_WEIGHT[kind] * inWords * (isReference ? REFERENCE_PAGE : 1) * repeated * (1 + (WHOLE_TITLE - 1) * share) * exact;
    }

    /** Whether a word in a text is one of the matched words. */
    isFound(word, matched) {
      return terms(word, this.table).some((term) => matched.has(term));
    }
  }

  return { Engine, words, terms, phrases, spelled, stem, singular };
});
