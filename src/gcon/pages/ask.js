// The form of the ask page. What is typed leaves the page only when a button is pressed, and is kept nowhere. All that the
// service says is shown as text, never as markup.
"use strict";

(() => {
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const at = id => document.getElementById(id);
  const WAIT = 30000; // milliseconds
  const KINDS = {
    401: "The service refused: the token, the node's id or both are wrong, or the token is no longer valid.",
    404: "The service does not answer this kind of question.",
    413: "The question is too large for the service.",
    422: "The service could not use the question.",
    429: "The service gets too many questions.",
    500: "The service could not answer, and withholds why.",
    503: "The service is busy.",
  };

  // An error that belongs to a field, or to the whole form if `field` is null.
  class Problem extends Error {
    constructor(words, field = null) {
      super(words);
      this.field = field;
    }
  }

  function element(name, words, attributes = {}) {
    const made = document.createElement(name);
    if (words !== undefined) made.textContent = words;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  // ---- from the fields to a question

  function person(line, field, place) {
    const kind = document.querySelector("input[name=kind]:checked")?.value ?? "features";
    if (kind === "id") return { id: line };
    const numbers = line.split(/[\s,;]+/).filter(Boolean).map(Number);
    if (numbers.length !== facts.numFeatures || !numbers.every(Number.isFinite)) {
      throw new Problem(`${place} must have ${facts.numFeatures} numbers, separated by commas.`, field);
    }
    return { features: numbers };
  }

  const linesOf = id => at(id).value.split("\n").map(line => line.trim()).filter(Boolean);

  function question() {
    const access = document.querySelector("input[name=access]:checked").value;
    const mine = linesOf("person");
    if (mine.length !== 1) throw new Problem("Write one line about yourself.", "person");
    const me = person(mine[0], "person", "Your line");
    const others = access === "none" ? [] : linesOf("neighbours");
    const neighbours = others.map((line, place) => person(line, "neighbours", `Line ${place + 1}`));
    return { path: "/predict", headers: {}, body: { access, me, neighbours } };
  }

  function ownersQuestion() {
    const token = at("token").value.trim(), node = at("node").value.trim();
    if (!/^gcon_[A-Za-z0-9_-]{43}$/.test(token)) {
      throw new Problem("This is no token: one starts with gcon_ and has 48 characters, letters, digits, - and _.", "token");
    }
    if (!node) throw new Problem("Write your node's id.", "node");
    return { path: "/me", headers: { Authorization: "Bearer " + token }, body: { node } };
  }

  // ---- the service

  async function ask({ path, headers, body }) {
    let reply, answer;
    try {
      reply = await fetch(facts.service + path, {
        method: "POST",
        headers: { "Content-Type": "application/json", ...headers },
        body: JSON.stringify(body),
        credentials: "omit",
        cache: "no-store",
        redirect: "error",
        referrerPolicy: "no-referrer",
        signal: AbortSignal.timeout(WAIT),
      });
      answer = await reply.text();
    } catch (failure) {
      if (failure.name === "TimeoutError") throw new Problem("The service did not answer within 30 seconds.");
      throw new Problem("The service could not be reached. Is it running, and may this page ask it?");
    }
    try {
      answer = JSON.parse(answer);
    } catch {
      answer = null;
    }
    if (!reply.ok) throw refusal(reply, answer);
    const chances = answer?.probabilities;
    if (typeof answer?.label !== "string" || typeof chances !== "object" || chances === null ||
        !Object.values(chances).every(chance => typeof chance === "number")) {
      throw new Problem("The service answered something that this page does not understand.");
    }
    return answer;
  }

  function refusal(reply, answer) {
    const wait = reply.headers.get("Retry-After");
    const parts = [
      KINDS[reply.status] ?? `The service could not answer (status ${reply.status}).`,
      typeof answer?.message === "string" && reply.status !== 401 ? `It says: ${answer.message}` : "",
      /^\d+$/.test(wait ?? "") ? `Try again in ${wait} seconds.` : "",
    ];
    return new Problem(parts.filter(Boolean).join(" "));
  }

  // ---- showing

  function chances(answer) {
    const list = element("dl", undefined, { class: "chances" });
    const sorted = Object.entries(answer.probabilities).sort((a, b) => b[1] - a[1]);
    for (const [name, chance] of sorted) {
      const bar = element("dd", undefined, { class: "bar", "aria-hidden": "true" }), inside = element("span");
      inside.style.width = 100 * Math.min(1, Math.max(0, chance)) + "%";
      bar.append(inside);
      list.append(element("dt", name), bar, element("dd", (100 * chance).toFixed(1) + " %"));
    }
    return list;
  }

  function showAnswer(place, answer) {
    const parts = [element("p", "The model's guess for you:"), element("p", answer.label, { class: "big" }), chances(answer)];
    for (const [title, words] of [["What was used", answer.used], ["The promise", answer.promise],
      ["Who may see this", answer.audience], ["Release", answer.release]]) {
      if (typeof words !== "string") continue;
      const line = element("p", " " + words);
      line.prepend(element("strong", title + ":"));
      parts.push(line);
    }
    const card = element("div", undefined, { class: "card" });
    card.append(...parts);
    place.replaceChildren(card);
  }

  function showProblem(place, problem) {
    const field = problem.field && at(problem.field);
    if (!field) {
      place.replaceChildren(element("p", problem.message, { class: "warn" }));
      return;
    }
    at(problem.field + "-problem").textContent = problem.message;
    field.setAttribute("aria-invalid", "true");
    field.focus();
  }

  function clear(form, place) {
    place.replaceChildren();
    for (const words of form.querySelectorAll(".problem")) words.textContent = "";
    for (const field of form.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
  }

  function connect(form, place, read) {
    const button = form.querySelector("button[type=submit]");
    let busy = false; // a disabled button would lose the keyboard's focus
    const mark = now => {
      busy = now;
      button.setAttribute("aria-disabled", String(now));
    };
    for (const field of form.elements) field.disabled = false;
    form.addEventListener("submit", async event => {
      event.preventDefault();
      if (busy) return;
      clear(form, place);
      mark(true);
      try {
        const asked = read();
        place.replaceChildren(element("p", "Asking the service."));
        showAnswer(place, await ask(asked));
      } catch (problem) {
        if (!(problem instanceof Problem)) throw problem;
        showProblem(place, problem);
      } finally {
        mark(false);
      }
    });
  }

  if (at("me-form")) {
    connect(at("me-form"), at("me-answer"), ownersQuestion);
    at("show-token").addEventListener("click", () => {
      const hidden = at("token").type === "password";
      at("token").type = hidden ? "text" : "password";
      at("show-token").setAttribute("aria-pressed", String(hidden));
      at("show-token").textContent = hidden ? "Hide" : "Show";
    });
    // A page that is left may be kept in memory by the browser; the token and its answer are not.
    addEventListener("pagehide", () => {
      at("token").value = "";
      at("me-answer").replaceChildren();
    });
  }
  connect(at("predict-form"), at("predict-answer"), question);
  for (const choice of document.querySelectorAll("input[name=access]")) {
    choice.addEventListener("change", () => {
      at("neighbours").disabled = document.querySelector("input[name=access]:checked").value === "none";
    });
  }
  if (facts.service === "" && location.protocol.startsWith("http")) {
    for (const code of document.querySelectorAll("pre code")) {
      code.textContent = code.textContent.replaceAll(facts.somewhere, location.origin);
    }
  }
  if (!isSecureContext && location.protocol === "http:") {
    const words = "This page came over an unencrypted connection: what you send can be read on the way.";
    document.querySelector("main").prepend(element("p", words, { class: "warn" }));
  }
})();
