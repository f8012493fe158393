/**
 * The arithmetic of the playground: plain functions on arrays of numbers, independent of any page.
 *
 * It computes the same values as `lnbook.reference`; tests run it in a browser and compare the two.
 */
(function (root) {
  "use strict";

  /** @param {number[]} values @returns {number} their sum */
  function sum(values) {
    let total = 0;
    for (const value of values) total += value;
    return total;
  }

  /** @param {number[]} values @returns {number} their mean */
  function mean(values) {
    return sum(values) / values.length;
  }

  /** @param {number[]} a @param {number[]} b @returns {number} the sum of the products */
  function dot(a, b) {
    let total = 0;
    for (let i = 0; i < a.length; i++) total += a[i] * b[i];
    return total;
  }

  /**
   * Mean, biased variance and 1 / sqrt(variance + eps) of values that are normalized together.
   *
   * @param {number[]} values
   * @param {number} eps
   * @param {boolean} [centered] false for RMSNorm: the mean counts as 0
   */
  function statistics(values, eps, centered = true) {
    const mu = centered ? mean(values) : 0;
    let squares = 0;
    for (const value of values) squares += (value - mu) * (value - mu);
    const variance = squares / values.length;
    return { mean: mu, variance, rstd: 1 / Math.sqrt(variance + eps) };
  }

  /**
   * LayerNorm of one row, with every intermediate result.
   *
   * @param {number[]} x
   * @param {number[]} gamma
   * @param {number[]} beta
   * @param {number} eps
   */
  function forward(x, gamma, beta, eps) {
    const found = statistics(x, eps);
    const xhat = x.map((value) => (value - found.mean) * found.rstd);
    return { ...found, xhat, y: xhat.map((value, i) => value * gamma[i] + beta[i]) };
  }

  /**
   * The gradients of a loss with respect to the row, gamma and beta.
   *
   * @param {number[]} dy the gradient with respect to the output
   * @param {number[]} x
   * @param {number[]} gamma
   * @param {number} eps
   */
  function backward(dy, x, gamma, eps) {
    const { xhat, rstd } = forward(x, gamma, gamma, eps);
    const g = dy.map((value, i) => value * gamma[i]);
    const meanG = mean(g);
    const meanGXhat = dot(g, xhat) / g.length;
    return {
      dx: g.map((value, i) => rstd * (value - meanG - xhat[i] * meanGXhat)),
      dgamma: dy.map((value, i) => value * xhat[i]),
      dbeta: dy.slice(),
    };
  }

  /**
   * The eigenvalues of the Jacobian of x̂: along (1, ..., 1), along x̂, and in all other directions.
   *
   * @param {number} variance of the row
   * @param {number} eps
   */
  function eigenvalues(variance, eps) {
    const rest = 1 / Math.sqrt(variance + eps);
    return { ones: 0, along: (rest * eps) / (variance + eps), rest };
  }

  /** The part of a row in the plane of mean 0. @param {number[]} x */
  function project(x) {
    const mu = mean(x);
    return x.map((value) => value - mu);
  }

  /**
   * Which set of statistics each cell of an array of shape (N, C, H, W) belongs to.
   *
   * @param {"BN"|"LN"|"LN2d"|"IN"|"GN"|"RMS2d"} method
   * @param {number[]} shape [N, C, H, W]
   * @param {number} [groups] of GN; divides C
   * @returns {number[]} for each cell, in array order, the number of its set, counted from 0
   */
  function sets(method, [N, C, H, W], groups = 1) {
    const share = C / groups;
    const keys = {
      BN: (n, c) => c,
      LN: (n) => n,
      LN2d: (n, c, h, w) => (n * H + h) * W + w,
      IN: (n, c) => n * C + c,
      GN: (n, c) => n * groups + Math.floor(c / share),
      RMS2d: (n, c, h, w) => (n * H + h) * W + w,
    };
    const found = [];
    for (let n = 0; n < N; n++)
      for (let c = 0; c < C; c++)
        for (let h = 0; h < H; h++)
          for (let w = 0; w < W; w++) found.push(keys[method](n, c, h, w));
    return found;
  }

  /**
   * Normalize each set of cells by its own statistics.
   *
   * @param {number[]} x all cells
   * @param {number[]} membership for each cell the number of its set
   * @param {number} eps
   * @param {boolean} [centered] false for RMSNorm
   * @returns {{xhat: number[], found: {mean: number, variance: number, rstd: number}[]}}
   */
  function normalizeSets(x, membership, eps, centered = true) {
    const members = [];
    membership.forEach((set, i) => (members[set] = members[set] || []).push(x[i]));
    const found = members.map((values) => statistics(values, eps, centered));
    const xhat = x.map((value, i) => {
      const { mean: mu, rstd } = found[membership[i]];
      return (value - mu) * rstd;
    });
    return { xhat, found };
  }

  /**
   * A source of normally distributed numbers that are the same in every browser.
   *
   * @param {number} seed a whole number
   * @returns {() => number}
   */
  function normal(seed) {
    let state = seed;
    const uniform = () => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return (state + 0.5) / 4294967296;
    };
    return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
  }

  /** `count` numbers from a source. @param {number} count @param {() => number} next */
  function vector(count, next) {
    return Array.from({ length: count }, next);
  }

  /** A matrix times a row. @param {number[][]} matrix @param {number[]} row */
  function times(matrix, row) {
    return matrix.map((line) => dot(line, row));
  }

  root.NormMath = { sum, mean, dot, statistics, forward, backward, eigenvalues, project, sets, normalizeSets, normal, vector, times };
})(globalThis);
