/** The `family` figure: which cells of an (N, C, H, W) block share their statistics. */
(function () {
  "use strict";

  const { h, fixed, number, color, entry, svg, choice, button, controls } = Drawing;
  const { sets, normalizeSets } = NormMath;

  const SHAPE = [3, 4, 3, 2];
  const [N, C, H, W] = SHAPE;
  const EPS = 1e-5;
  const [LEFT, TOP, CELL_WIDTH, CELL_HEIGHT, GAP] = [46, 24, 38.5, 31, 8];

  /** The block: channels differ in mean, the second image has low contrast, the third is bright. */
  const BLOCK = [
    [0, -1, 2, 3, 4, 2, 4, 3, 6, 8, 6, 3, 1, 6, 3, 0, 3, 1, 6, 6, 6, 8, 7, 6],
    [2, 3, 0, 2, 1, 2, 4, 5, 5, 5, 4, 5, 2, 2, 3, 2, 4, 4, 5, 7, 6, 7, 7, 5],
    [3, 3, 6, 0, 5, 1, 6, 4, 10, 8, 12, 8, 7, 7, 3, 4, 8, 3, 9, 8, 10, 7, 8, 9],
  ].flat();

  const METHODS = {
    BN: { text: "Batch", name: "Batch normalization", over: "N, H, W", count: "C", who: "this channel in all images" },
    LN: { text: "Layer", name: "Layer normalization", over: "C, H, W", count: "N", who: "all of this image" },
    LN2d: { text: "Layer, channels only", name: "Layer normalization over the channels", over: "C", count: "N · H · W", who: "this pixel in all channels of the image" },
    IN: { text: "Instance", name: "Instance normalization", over: "H, W", count: "N · C", who: "this channel of this image" },
    GN: { text: "Group", name: "Group normalization", over: "C/g, H, W", count: "N · g", who: "this group of channels in this image" },
    RMS2d: { text: "RMS", name: "RMSNorm over the channels", over: "C, without the mean", count: "N · H · W", who: "this pixel in all channels of the image" },
  };

  /** The initial state. @param {{method?: string, groups?: number, cell?: number}} options */
  function start(options) {
    return { id: "family", alt: "", method: "LN", groups: 2, cell: 31, preview: null, show: "x", x: BLOCK, ...options };
  }

  function computed(state) {
    const membership = sets(state.method, SHAPE, state.method === "GN" ? state.groups : 1);
    const centered = state.method !== "RMS2d";
    const now = normalizeSets(state.x, membership, EPS, centered);
    const before = state.x === BLOCK ? now : normalizeSets(BLOCK, membership, EPS, centered);
    return { membership, ...now, moved: now.xhat.map((value, i) => Math.abs(value - before.xhat[i]) > 1e-12) };
  }

  /** The cell to explain: the one a pointer is at, or else the chosen one. */
  function framed(state) {
    return state.preview === null ? state.cell : state.preview;
  }

  /** Image, channel, row and column of a cell, each from 0. */
  function placeOf(cell) {
    return [Math.floor(cell / (C * H * W)), Math.floor(cell / (H * W)) % C, Math.floor(cell / W) % H, cell % W];
  }

  function cellAt(n, c, row, col) {
    return ((n * C + c) * H + row) * W + col;
  }

  function spokenPlace(cell) {
    const [n, c, row, col] = placeOf(cell).map((from0) => from0 + 1);
    return `image ${n}, channel ${c}, row ${row}, column ${col}`;
  }

  // Drawing ---------------------------------------------------------------------------------------

  function cellDrawing(state, result, cell, live) {
    const [n, c, row, col] = placeOf(cell);
    const x = LEFT + c * (W * CELL_WIDTH + GAP) + col * CELL_WIDTH;
    const y = TOP + n * (H * CELL_HEIGHT + 12) + row * CELL_HEIGHT;
    const chosen = cell === state.cell;
    const inFrame = cell === framed(state);
    const shares = result.membership[cell] === result.membership[framed(state)];
    const value = state.show === "x" ? state.x[cell] : result.xhat[cell];
    const shown = state.show === "x" ? fixed(value, 0) : fixed(value, 1);
    const aria = {
      role: "gridcell",
      tabindex: chosen ? "0" : "-1",
      "data-act": "cell",
      "data-index": String(cell),
      "aria-selected": String(shares),
      "aria-label": `${spokenPlace(cell)}: ${shown}${shares ? ", shares" : ""}${result.moved[cell] ? ", moved" : ""}`,
    };
    return h(
      "g",
      { class: "ln-play-cell", ...(live ? aria : {}) },
      h("rect", {
        x: x + 1.5,
        y: y + 1.5,
        width: CELL_WIDTH - 3,
        height: CELL_HEIGHT - 3,
        rx: 4,
        fill: shares ? color.region : color.surface,
        "fill-opacity": shares ? "0.42" : "1",
        stroke: chosen || inFrame ? color.changed : shares ? color.highlight : color.rule,
        "stroke-width": chosen || inFrame ? "3" : "1",
        "stroke-dasharray": inFrame && !chosen ? "4 3" : null,
      }),
      h(
        "text",
        {
          x: x + CELL_WIDTH / 2,
          y: y + CELL_HEIGHT / 2 + (result.moved[cell] ? 2.5 : 4.5),
          "text-anchor": "middle",
          "font-weight": inFrame ? "700" : shares ? "600" : null,
          fill: shares ? color.ink : color.muted,
        },
        shown
      ),
      result.moved[cell] && h("rect", { x: x + CELL_WIDTH / 2 - 8, y: y + CELL_HEIGHT - 7, width: 16, height: 3, rx: 1.5, fill: color.fourth })
    );
  }

  function drawing(state, result, live) {
    const rows = [];
    for (let n = 0; n < N; n++)
      for (let row = 0; row < H; row++) {
        const cells = [];
        for (let c = 0; c < C; c++)
          for (let col = 0; col < W; col++) cells.push(cellDrawing(state, result, cellAt(n, c, row, col), live));
        rows.push(h("g", live ? { role: "row" } : {}, cells));
      }
    const width = LEFT + C * W * CELL_WIDTH + (C - 1) * GAP + 2;
    const label = (x, y, text, anchor) => h("text", { x, y, "text-anchor": anchor, fill: color.muted }, text);
    return svg(
      width,
      TOP + N * (H * CELL_HEIGHT + 12) - 8,
      state.alt,
      live,
      Array.from({ length: C }, (_, c) =>
        label(LEFT + c * (W * CELL_WIDTH + GAP) + CELL_WIDTH, 15, `channel ${c + 1}`, "middle")
      ),
      Array.from({ length: N }, (_, n) => {
        const y = TOP + n * (H * CELL_HEIGHT + 12) + (H * CELL_HEIGHT) / 2;
        return [label(0, y - 3, "image", "start"), label(0, y + 13, String(n + 1), "start")];
      }),
      h("g", live ? { role: "grid", "aria-label": "Cells (move with the arrow keys)" } : {}, rows)
    );
  }

  // Words and controls ----------------------------------------------------------------------------

  function line(term, name, value, shown, note) {
    return entry(term, [number(name, value, shown), note && h("small", {}, ` ${note}`)]);
  }

  function readout(state, result) {
    const method = METHODS[state.method];
    const cell = framed(state);
    const set = result.membership[cell];
    const statistics = result.found[set];
    const size = result.membership.filter((other) => other === set).length;
    const centered = state.method !== "RMS2d";
    const shared = Math.sqrt(statistics.variance);
    return [
      h(
        "p",
        { class: "ln-play-says" },
        h("strong", {}, method.name),
        ` takes its statistics over ${method.over.replace("g", state.groups)}. The framed cell shares them with `,
        h("strong", {}, method.who),
        "."
      ),
      h(
        "dl",
        { class: "ln-play-readout" },
        line("sets of statistics", "count", result.found.length, String(result.found.length), `= ${method.count}`),
        line("cells in each", "size", size, String(size)),
        line("the cell x", "x", state.x[cell], fixed(state.x[cell], 0)),
        centered && line("mean μ", "mean", statistics.mean, fixed(statistics.mean, 4)),
        line(centered ? "standard deviation σ" : "root mean square", "sigma", shared, fixed(shared, 4)),
        line("normalized x̂", "xhat", result.xhat[cell], fixed(result.xhat[cell], 4)),
        h("data", {
          hidden: true,
          "data-name": "all",
          value: JSON.stringify({ x: state.x, shape: SHAPE, method: state.method, groups: state.groups, eps: EPS, xhat: result.xhat }),
        })
      ),
    ];
  }

  function panelOfControls(state, live) {
    const methods = Object.entries(METHODS).map(([key, { text }]) => [key, text]);
    return controls(
      live,
      choice(state.id, "method", "normalization", methods, state.method),
      state.method === "GN" && choice(state.id, "groups", "groups g", [[1, "1"], [2, "2"], [4, "4"]], state.groups),
      choice(state.id, "show", "numbers", [["x", "input x"], ["xhat", "output x̂"]], state.show),
      h(
        "div",
        { class: "ln-play-buttons", role: "group", "aria-label": "Change the chosen cell" },
        button("poke", -3, "cell − 3"),
        button("poke", 3, "cell + 3"),
        button("reset", "", "reset")
      )
    );
  }

  function view(state, live) {
    const result = computed(state);
    const moved = result.moved.filter(Boolean).length;
    return [
      drawing(state, result, live),
      h(
        "div",
        { class: "ln-play-side" },
        panelOfControls(state, live),
        readout(state, result),
        h(
          "p",
          { class: "ln-play-note" },
          moved ? ["A line marks each output that changed: ", number("moved", moved, String(moved)), ` of ${N * C * H * W} outputs.`] : "Change the cell, and a line marks each output that changes."
        )
      ),
    ];
  }

  // Changes ---------------------------------------------------------------------------------------

  function update(state, act, value) {
    if (act === "reset") return { ...state, x: BLOCK };
    if (act === "poke") return { ...state, x: state.x.map((old, i) => (i === state.cell ? old + Number(value) : old)) };
    if (act === "cell") return { ...state, cell: value, preview: null };
    return { ...state, [act]: act === "groups" ? Number(value) : value };
  }

  /** The state after an arrow key in the grid; null for any other key. */
  function key(state, name) {
    const [n, c, row, col] = placeOf(state.cell);
    let down = n * H + row;
    let right = c * W + col;
    if (name === "ArrowUp") down -= 1;
    else if (name === "ArrowDown") down += 1;
    else if (name === "ArrowLeft") right -= 1;
    else if (name === "ArrowRight") right += 1;
    else if (name === "Home") right = 0;
    else if (name === "End") right = C * W - 1;
    else return null;
    down = Math.min(N * H - 1, Math.max(0, down));
    right = Math.min(C * W - 1, Math.max(0, right));
    const cell = cellAt(Math.floor(down / H), Math.floor(right / W), down % H, right % W);
    return { ...state, cell, preview: null };
  }

  function status(state) {
    const { found, membership, xhat } = computed(state);
    const statistics = found[membership[state.cell]];
    const size = membership.filter((set) => set === membership[state.cell]).length;
    const mean = state.method === "RMS2d" ? "Root mean square" : `Mean ${fixed(statistics.mean)}, standard deviation`;
    return `${size} cells share. ${mean} ${fixed(Math.sqrt(statistics.variance))}. Normalized ${fixed(xhat[state.cell])}.`;
  }

  Playground.family = { start, view, update, key, status };
})();
