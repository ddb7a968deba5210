// The numbers of the promise, in the browser: the same formulas as gcon.mechanisms (attacker, gaussian, certificate_terms,
// theorem). Plain functions of plain numbers; the tests compare every one of them with Python over a grid.
"use strict";

// ---- what a budget means for an attacker (gcon.privacy.attacker)

function bestTruePositiveRate(epsilon, delta, falsePositiveRate) {
  if (epsilon > 700) return 1;
  const grow = Math.exp(epsilon);
  const straight = grow * falsePositiveRate + delta;
  const mirrored = 1 - (1 - delta - falsePositiveRate) / grow;
  return Math.max(falsePositiveRate, Math.min(1, straight, mirrored));
}

function bestAdvantage(epsilon, delta) {
  if (epsilon > 700) return 1;
  const grow = Math.exp(epsilon);
  return Math.min(1, (grow - 1 + 2 * delta) / (grow + 1));
}

function rightAtMost(epsilon, delta) {
  return (1 + bestAdvantage(epsilon, delta)) / 2;
}

// ---- the Gaussian law

// log erfc(z) for z >= 2, by the continued fraction e^(-z^2) / sqrt(pi) * 1/(z + (1/2)/(z + (2/2)/(z + ...))), from below.
function logErfcFar(z) {
  let tail = z;
  for (let k = 120; k >= 1; k--) tail = z + k / 2 / tail;
  return -z * z - Math.log(tail) - Math.log(Math.PI) / 2;
}

// erf(z) for |z| < 2: 2/sqrt(pi) e^(-z^2) sum of 2^k z^(2k+1) / (1 * 3 * ... * (2k+1)); all terms have one sign.
function erfNear(z) {
  let term = z, sum = z;
  for (let k = 1; Math.abs(term) > 1e-18 * Math.abs(sum); k++) {
    term *= 2 * z * z / (2 * k + 1);
    sum += term;
  }
  return 2 / Math.sqrt(Math.PI) * Math.exp(-z * z) * sum;
}

function logNormalCdf(x) {
  const z = -x / Math.SQRT2;
  if (z >= 2) return logErfcFar(z) - Math.LN2;
  if (z > -2) return Math.log((1 - erfNear(z)) / 2);
  return Math.log1p(-Math.exp(logErfcFar(-z)) / 2);
}

// gcon.mechanisms.gaussian_curve.gaussian_delta in logarithms, with its allowance for rounding.
function gaussianLogDelta(epsilon, distance) {
  if (distance <= 0 || epsilon === Infinity) return -Infinity;
  if (distance === Infinity) return 0;
  const first = logNormalCdf(distance / 2 - epsilon / distance);
  if (first === -Infinity) return -Infinity;
  const second = epsilon + logNormalCdf(-distance / 2 - epsilon / distance);
  const gap = Math.min(second - first - 1e-13 * (1 + Math.abs(first)) - 2e-15 * epsilon, -1e-16);
  return Math.min(0, first + Math.log(-Math.expm1(gap)));
}

// The noise multiplier g(epsilon, delta) of a Gaussian release: noise over what one edge can change. NaN where none is enough.
function gaussianMultiplier(epsilon, delta) {
  const goal = Math.log(delta);
  let low = Math.log(1e-6), high = 0;
  while (gaussianLogDelta(epsilon, Math.exp(-high)) > goal) {
    high += 10;
    if (high > 700) return NaN;
  }
  for (let round = 0; round < 200 && high - low >= 1e-15 * Math.max(1, Math.abs(high)); round++) {
    const middle = (low + high) / 2;
    if (gaussianLogDelta(epsilon, Math.exp(-middle)) > goal) low = middle;
    else high = middle;
  }
  return Math.exp(high);
}

// ---- Theorem 1 of the paper (gcon.mechanisms.theorem)

// log Gamma(x) for x >= 1: Stirling's series, after steps up to 12.
function logGamma(x) {
  let shift = 0;
  while (x < 12) shift -= Math.log(x++);
  const square = 1 / (x * x);
  const series = (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))) / x;
  return shift + (x - 0.5) * Math.log(x) - x + Math.log(2 * Math.PI) / 2 + series;
}

// log P[Erlang(shape, 1) > x]: e^-x x^(s-1)/(s-1)! (1 + (s-1)/x + (s-1)(s-2)/x^2 + ...), s terms, all positive.
function logErlangTail(shape, x) {
  let term = 1, sum = 1;
  for (let k = shape - 1; k >= 1 && term > 1e-18 * sum; k--) {
    term *= k / x;
    sum += term;
  }
  return -x + (shape - 1) * Math.log(x) - logGamma(shape) + Math.log(sum);
}

// The upper quantile of the Erlang law: how long one column of the noise can be, but for a probability of `tail`.
function erlangQuantile(shape, tail) {
  const goal = Math.log(tail);
  let low = 0, high = shape + 10;
  while (logErlangTail(shape, high) > goal) {
    low = high;
    high *= 2;
  }
  while (high - low > 1e-14 * high) {
    const middle = (low + high) / 2;
    if (middle <= low || middle >= high) break;
    if (logErlangTail(shape, middle) > goal) low = middle;
    else high = middle;
  }
  return high * (1 + 2e-12);
}

// What is left of a budget for the exact minimiser (gcon.mechanisms.certificate_terms).
function exactBudget(epsilon, delta) {
  const reserved = Math.min(1e-3, epsilon / 1000);
  const logWaste = logDelta => epsilon + Math.log1p(Math.exp(-epsilon)) + logDelta;
  let noiseOverRadius = 1e4 * (1e-3 / reserved);
  while (logWaste(gaussianLogDelta(reserved, 1 / noiseOverRadius)) > Math.log(delta) + Math.log(1e-6)) noiseOverRadius *= 2;
  const waste = Math.exp(logWaste(gaussianLogDelta(reserved, 1 / noiseOverRadius)));
  return { epsilon: epsilon - 2 * reserved, delta: Math.exp(-reserved) * (delta - waste) };
}

// All values of Theorem 1 at a budget. `shape` has the release's public numbers: ridge, noiseShare, numFeatures,
// numLabelled, numClasses, edgeInfluence, slopeBound, curvatureBound, curvatureSlopeBound.
function theoremOne(epsilon, delta, shape) {
  const exact = exactBudget(epsilon, delta);
  const { noiseShare, numFeatures, numLabelled, numClasses, edgeInfluence } = shape;
  const { slopeBound, curvatureBound, curvatureSlopeBound } = shape;
  const quantile = erlangQuantile(numFeatures, exact.delta / numClasses);
  const pull = numLabelled * noiseShare * exact.epsilon;
  const push = numClasses * edgeInfluence * quantile;
  const floor = curvatureBound * push / pull;
  const ridge = Math.max(shape.ridge, 2 * floor);
  const weightBound = slopeBound * (pull + push) / (pull * ridge - curvatureBound * push);
  const change = (2 * curvatureBound + curvatureSlopeBound * weightBound) * edgeInfluence;
  const jacobian = numClasses * numFeatures * Math.log1p(change / (numFeatures * numLabelled * ridge));
  const spare = (1 - noiseShare) * exact.epsilon;
  const extraRidge = jacobian <= spare ? 0 : Math.max(0, numClasses * change / (numLabelled * spare) - ridge);
  const left = Math.max(exact.epsilon - jacobian, noiseShare * exact.epsilon);
  const noiseRate = left / (numClasses * (slopeBound + curvatureBound * weightBound) * edgeInfluence);
  return { quantile, ridge, weightBound, jacobian, extraRidge, noiseRate };
}
