// Runs queries on the site's own index and search. `node search_first.js site-folder query...`
// prints JSON: for each query, the places that it finds, best first.
"use strict";

const fs = require("fs");
const path = require("path");

const [folder, ...queries] = process.argv.slice(2);
const MiniSearch = require(path.join(folder, "_static", "minisearch", "minisearch.js"));
const { Engine } = require(path.join(folder, "_static", "search-engine.js"));
eval(fs.readFileSync(path.join(folder, "searchindex.js"), "utf8"));
const engine = new Engine(MiniSearch, globalThis.lnSearchIndex);
engine.add();
const place = ({ id }) => {
  const [, page, anchor] = engine.data.rows[id];
  return engine.data.pages[page][0] + (anchor ? `#${anchor}` : "");
};
console.log(JSON.stringify(queries.map((query) => engine.search(query).slice(0, 5).map(place))));
