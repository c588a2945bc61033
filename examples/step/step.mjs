// A server in another language: Node has the weights and three agents, and asks `fedstay step` in every
// round what to add to the weights. See the README beside this file.

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const fedstay =
  process.env.FEDSTAY ?? fileURLToPath(new URL("../../target/release/fedstay", import.meta.url));

/** One round: JSON in, JSON out. */
function step(input) {
  const { status, stdout, stderr, error } = spawnSync(fedstay, ["step"], {
    input: JSON.stringify(input),
    encoding: "utf8",
  });
  if (error) throw new Error(`${fedstay}: ${error.message}; build it with \`cargo build --release\``);
  if (status !== 0) throw new Error(stderr.trim());
  return JSON.parse(stdout);
}

/** Every agent has one equation x·w = y, the loss ½(x·w − y)², and leaves at a loss of epsilon. */
const agents = [
  { x: [0, 0, 1], y: 3, epsilon: 0.05 },
  { x: [2, 2, 1], y: 2, epsilon: 0.05 },
  { x: [-1, 2, 2], y: 1, epsilon: 0.05 },
];
const error = ({ x, y }, weights) => x.reduce((sum, x, i) => sum + x * weights[i], -y);
const loss = (agent, weights) => 0.5 * error(agent, weights) ** 2;
const gradient = (agent, weights) => agent.x.map((x) => error(agent, weights) * x);

function train(rule, rounds = 200) {
  const left = new Set();
  let weights = [0, 0, 0];
  let state = null; // What the server passes itself from round to round.
  for (let round = 1; ; round++) {
    const reports = [];
    agents.forEach((agent, id) => {
      // Leaving is the agent's own decision, and it is for good.
      if (loss(agent, weights) <= agent.epsilon) left.add(id);
      if (left.has(id)) return;
      const { epsilon } = agent;
      const direction = gradient(agent, weights);
      reports.push({ agent: id, loss: loss(agent, weights), epsilon, direction });
    });
    const decision = step({ rule, step_size: 0.1, reports, state });
    if (reports.length > 0) weights = weights.map((weight, i) => weight + decision.step[i]);
    state = decision.state;
    const stop = decision.stop ?? (round === rounds ? "round-limit" : null);
    if (stop) return { weights, left, round, stop };
  }
}

// No loss bends more than |x|² = 9; a rule that knows this can prove that it lands.
const retain = { kind: "retain", smoothness: 9 };
for (const rule of [{ kind: "fedavg" }, { kind: "ada-gd" }, retain]) {
  const { weights, left, round, stop } = train(rule);
  const losses = agents.map((agent) => loss(agent, weights).toFixed(2)).join(", ");
  console.log(`${rule.kind}: ${stop} after ${round} rounds, ${left.size} left; losses ${losses}`);
}
