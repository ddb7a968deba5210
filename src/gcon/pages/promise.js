// The dial of the promise page: moves the numbers and drawings that depend on epsilon. Formulas are in formulas.js.

(() => {
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const at = id => document.getElementById(id);
  const percent = share => (100 * share).toFixed(1) + " %";
  const score = row => (100 * row.mean).toFixed(2) + " \u00b1 " + (100 * row.error).toFixed(2);
  const show = number => Number(number.toPrecision(4)).toString();
  const rows = facts.rows.map(([graph, method, access, epsilon, mean, error]) => ({ graph, method, access, epsilon, mean, error }));
  const slider = at("slider"), box = at("epsilon");
  let epsilon = facts.start, later = 0;

  // ---- the attacker

  function showAttacker() {
    const right = rightAtMost(epsilon, facts.delta);
    const found = bestTruePositiveRate(epsilon, facts.delta, facts.falseAlarms);
    const shown = Math.ceil(100 * right - 1e-9);
    at("right").textContent = percent(right);
    at("found").textContent = percent(found);
    at("advantage").textContent = bestAdvantage(epsilon, facts.delta).toFixed(4);
    at("found-bar").style.width = 100 * found + "%";
    at("learnt").textContent = shown - 50;
    at("wrong").textContent = 100 - shown;
    [...at("dots").children].forEach((dot, place) => {
      dot.setAttribute("class", place < 50 ? "luck" : place < shown ? "learnt" : "wrong");
    });
    return `Epsilon ${epsilon}: guesses are right at most ${percent(right)} of the time, and at 1 % false alarms at most ` +
      `${percent(found)} of the connections are recognised.`;
  }

  // ---- the noise

  function showNoise() {
    if (at("multiplier")) at("multiplier").textContent = show(gaussianMultiplier(epsilon, facts.delta));
    if (!facts.shape || !at("theorem")) return;
    const values = theoremOne(epsilon, facts.delta, facts.shape);
    values.noiseLength = values.quantile / values.noiseRate;
    for (const name of ["ridge", "extraRidge", "noiseRate", "noiseLength"]) at("theorem-" + name).textContent = show(values[name]);
  }

  // ---- accuracy

  const FAR = 0.08; // lines that lie further away would press all others together
  const LEFT = 46, RIGHT = 392, TOP = 10, BOTTOM = 206;
  const across = value => LEFT + (RIGHT - LEFT) * Math.log(value / facts.low) / Math.log(facts.high / facts.low);

  function draw(name, attributes, words) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (words !== undefined) made.textContent = words;
    at("chart").append(made);
    return made;
  }

  // What the chosen graph and access have: the private model by epsilon, its controls, and the model without privacy.
  function chosen() {
    const graph = at("graph").value, access = document.querySelector("input[name=access]:checked").value;
    const here = rows.filter(row => row.graph === graph);
    const controls = facts.controls.map(name =>
      here.find(row => row.method === name && row.access === (name === "mlp" ? "none" : access)));
    return {
      points: here.filter(row => row.method === facts.private && row.access === access).sort((a, b) => a.epsilon - b.epsilon),
      controls,
      best: controls.filter(Boolean).reduce((a, b) => (b.mean > a.mean ? b : a)),
      open: here.find(row => row.method === facts.notPrivate),
    };
  }

  function drawChart({ points, controls, open }) {
    const close = row => points.some(point => Math.abs(point.mean - row.mean) < FAR);
    const [lines, off] = [true, false].map(wanted => [...controls.filter(Boolean), open].filter(row => close(row) === wanted));
    const all = [...points, ...lines].flatMap(row => [row.mean - 2 * row.error, row.mean + 2 * row.error]);
    at("off-scale").textContent = off.length ? "Outside this scale: " + off.map(row => `${facts.names[row.method]} (${score(row)} %)`).join(", ") + "." : "";
    const step = [0.01, 0.02, 0.05, 0.1, 0.2].find(size => (Math.max(...all) - Math.min(...all)) / size <= 5) ?? 0.25;
    const low = Math.floor(Math.min(...all) / step) * step, high = Math.ceil(Math.max(...all) / step) * step;
    const down = value => BOTTOM - (BOTTOM - TOP) * (value - low) / (high - low);
    at("chart").replaceChildren();
    const [first, last] = [across(points[0].epsilon), across(points.at(-1).epsilon)];
    for (const [from, to] of [[LEFT, first], [last, RIGHT]]) {
      draw("rect", { class: "unmeasured", x: from, y: TOP, width: to - from, height: BOTTOM - TOP });
      draw("text", { x: (from + to) / 2, y: BOTTOM - 6, "text-anchor": "middle" }, "not measured");
    }
    for (let value = low; value < high + step / 2; value += step) {
      draw("line", { class: "grid", x1: LEFT, x2: RIGHT, y1: down(value), y2: down(value) });
      draw("text", { x: LEFT - 6, y: down(value) + 4, "text-anchor": "end" }, Math.round(100 * value) + " %");
    }
    for (const value of [0.05, 0.5, 1, 2, 4, 16]) {
      draw("text", { x: across(value), y: BOTTOM + 17, "text-anchor": "middle" }, value);
    }
    draw("text", { x: (LEFT + RIGHT) / 2, y: BOTTOM + 36, "text-anchor": "middle" }, "epsilon");
    for (const row of lines) {
      draw("line", { class: "line " + row.method, x1: LEFT, x2: RIGHT, y1: down(row.mean), y2: down(row.mean) });
    }
    for (const row of points) {
      const x = across(row.epsilon);
      draw("line", { class: "spread", x1: x, x2: x, y1: down(row.mean - 2 * row.error), y2: down(row.mean + 2 * row.error) });
      draw("circle", { class: "point", "data-epsilon": row.epsilon, cx: x, cy: down(row.mean), r: 4.5 });
    }
    draw("line", { id: "now", x1: 0, x2: 0, y1: TOP, y2: BOTTOM });
  }

  // The nearest measured epsilons: one on each side, or the measured one itself.
  function nearest(points) {
    const below = points.filter(row => row.epsilon <= epsilon).at(-1);
    const exact = below && below.epsilon === epsilon;
    return { below, above: points.find(row => row.epsilon > epsilon), exact };
  }

  // Two standard errors of the difference decide, as in gcon.pages.measured.compared.
  function compared(row, control) {
    const gap = row.mean - control.mean, error = Math.hypot(row.error, control.error);
    return gap > 2 * error ? "above" : gap < -2 * error ? "below" : "no different";
  }

  function sentence(told, { below, above, exact }, best) {
    const said = { above: "it beats", below: "it is worse than", "no different": "it does not beat" };
    const parts = told.map((row, place) =>
      `at epsilon ${row.epsilon} ${said[compared(row, best)]} ${place ? "it" : "the best control"}`);
    const where = exact ? "Measured at this epsilon" : below && above ? "Between two measurements" : "Nothing was measured near here";
    return `${where}: ${parts.join(", ")}. That control spends nothing: ${facts.names[best.method]}, ${score(best)} %.`;
  }

  function showAccuracy() {
    const { points, controls, best, open } = chosen(), close = nearest(points);
    const told = close.exact ? [close.below] : [close.below, close.above].filter(Boolean);
    const clamped = Math.min(Math.max(epsilon, facts.low), facts.high);
    at("now").setAttribute("transform", `translate(${across(clamped)} 0)`);
    for (const point of at("chart").querySelectorAll(".point")) {
      const near = told.some(row => row.epsilon === Number(point.dataset.epsilon));
      point.classList.toggle("near", near);
    }
    const fill = (name, row, spends, empty) => {
      const line = document.querySelector(`#costs tr[data-row="${name}"]`);
      line.querySelector(".value").textContent = row ? score(row) + " %" : empty;
      if (spends !== undefined) line.querySelector(".spends").textContent = spends;
    };
    const spent = row => (row ? "epsilon " + row.epsilon : "");
    fill("below", close.below, spent(close.below), "not measured");
    fill("above", close.above, spent(close.above), "not measured");
    facts.controls.forEach((name, place) => fill(name, controls[place], undefined, "not measured"));
    fill(facts.notPrivate, open, undefined, "not measured");
    const outcome = at("outcome");
    outcome.textContent = sentence(told, close, best);
    outcome.classList.toggle("warn", told.some(row => compared(row, best) !== "above"));
  }

  // ---- several connections: numbers of Python's exact curve, one row for each

  if (at("edges")) at("edges").addEventListener("input", () => {
    const row = facts.several[at("edges").value - 1];
    at("several-edges").textContent = row.edges;
    at("several-epsilon").textContent = row.delta < 1 ? row.epsilon : "no promise";
    at("several-right").textContent = percent(row.delta < 1 ? rightAtMost(row.epsilon, row.delta) : 1);
  });

  // ---- the dial

  function turn(value, { moveSlider, moveBox, aloud = true }) {
    epsilon = value;
    const share = Math.log(value / facts.low) / Math.log(facts.high / facts.low);
    if (moveSlider) slider.value = Math.round(facts.steps * Math.min(1, Math.max(0, share)));
    if (moveBox) box.value = value;
    at("epsilon-problem").textContent = "";
    box.removeAttribute("aria-invalid");
    const said = showAttacker();
    slider.setAttribute("aria-valuetext", "epsilon " + value);
    showNoise();
    showAccuracy();
    clearTimeout(later);
    if (aloud) later = setTimeout(() => { at("said").textContent = said; }, 500);
  }

  slider.addEventListener("input", () => {
    const exact = facts.low * (facts.high / facts.low) ** (slider.value / facts.steps);
    turn(Number(exact.toPrecision(3)), { moveBox: true });
  });
  box.addEventListener("input", () => {
    const typed = box.valueAsNumber;
    if (typed >= Number(box.min) && typed <= Number(box.max)) {
      turn(typed, { moveSlider: true });
      return;
    }
    box.setAttribute("aria-invalid", "true");
    at("epsilon-problem").textContent = `Type a number from ${box.min} to ${box.max}.`;
  });
  at("back").addEventListener("click", () => turn(facts.start, { moveSlider: true, moveBox: true }));
  for (const input of [at("graph"), ...document.querySelectorAll("input[name=access]")]) {
    input.addEventListener("change", () => {
      drawChart(chosen());
      showAccuracy();
    });
  }
  drawChart(chosen());
  turn(facts.start, { moveSlider: true, moveBox: true, aloud: false });
})();
