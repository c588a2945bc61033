// Numbers and verdicts as text. All text reaches the page as text nodes, never as HTML.

export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const NONE = "–";

export function number(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e5)) {
    const [head, tail] = value.toExponential(2).split("e");
    return `${head}·10${superscript(Number(tail))}`.replace("-", "−");
  }
  return value.toFixed(digits).replace("-", "−");
}

function superscript(value) {
  return String(value).replace("-", "⁻").replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]);
}

export function short(value) {
  if (!Number.isFinite(value)) return NONE;
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return number(value);
  return String(Number(value.toPrecision(3))).replace("-", "−");
}

export function percent(value) {
  return value === null || value === undefined || !Number.isFinite(value) ? NONE : `${(100 * value).toFixed(1)}%`;
}

export function several(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`;
}

export function agentName(agent) {
  return agent.name || `agent ${agent.id}`;
}

export function title(listing) {
  if (!listing.rule) return listing.name;
  return `${listing.rule} on ${listing.on}, seed ${listing.seed}`;
}

const STOPS = {
  settled: "it stopped: everybody is within reach of their precision",
  landed: "it landed: everybody was brought under their precision at once",
  stalled: "it stalled: no direction helps somebody and leaves those about to leave alone",
  "everyone-left": "it ended because everyone had left",
  "nobody-left": "it ended because everyone had left",
  "early-stop": "it stopped before a predicted departure",
  "round-limit": "it ended after the rounds asked for",
};

export function stopWords(stop) {
  return stop ? STOPS[stop] || `it ended: ${stop}` : null;
}

// What became of the run, or becomes of it, in one sentence.
export function verdict(detail) {
  const counts = detail.counts || { left: 0, in_d: 0, fault: 0 };
  const all = detail.agents_all || 0;
  const summary = detail.summary;
  if (summary && summary.verdict) {
    const failed = (summary.agents || []).filter((agent) => agent.loss !== null && agent.loss > agent.epsilon).length;
    if (summary.verdict === "retained") {
      const content = summary.everybody_content ? ", and everybody is content" : "";
      return { tone: "good", head: "Retained", text: `Nobody left${content}.` };
    }
    if (summary.verdict === "benign") {
      return { tone: "good", head: "Benign", text: `${counts.left} of ${all} left, and the model satisfies everybody all the same.` };
    }
    return { tone: "bad", head: "Harmful", text: `${counts.left} of ${all} left, and the model fails ${several(failed, "agent")}.` };
  }
  const near = counts.in_d ? `${several(counts.in_d, "agent is", "agents are")} about to leave` : "nobody is about to leave";
  const left = counts.left ? `${counts.left} of ${all} left` : "nobody has left";
  const faults = counts.fault ? `; ${several(counts.fault, "agent")} did not answer` : "";
  const sentence = `${near}; ${left}${faults}.`;
  const text = sentence[0].toUpperCase() + sentence.slice(1);
  if (summary) return { tone: counts.left ? "bad" : "good", head: "Finished", text };
  const silent = detail.status === "silent";
  return { tone: counts.left ? "bad" : counts.in_d ? "warn" : "good", head: silent ? "Stopped writing" : "Running", text };
}
