// Prints the initial state of an interactive figure: node playground_view.js '{"scripts": [...],
// "kind": "norm", "start": {...}}' writes JSON with `page`, all of the HTML, and `drawing`, the SVG.
"use strict";

const { readFileSync } = require("node:fs");
const { runInThisContext } = require("node:vm");

const { scripts, kind, start } = JSON.parse(process.argv[2]);
for (const script of scripts) runInThisContext(readFileSync(script, "utf8"), { filename: script });
const { Drawing, Playground } = globalThis;
const figure = Playground[kind];
const state = figure.start(start);
const tree = figure.view(state, false);
const drawing = figure.picture ? figure.picture(state) : tree.find((part) => part.tag === "svg");
process.stdout.write(
  JSON.stringify({ page: tree.map(Drawing.markup).join(""), drawing: Drawing.markup(drawing) })
);
