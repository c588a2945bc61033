// The delivered model: no round has it, so it stands behind the last one, with a dotted line to it.

// The index of the last known value of a column, or −1.
export function lastKnown(column, to = column.low.length) {
  let last = to - 1;
  while (last >= 0 && column.low[last] !== column.low[last]) last -= 1;
  return last;
}

// Whether a place of what is drawn is the run's last round, behind which the delivered model
// stands.
export function reaches(run, index) {
  const { first, bucket } = run.drawn;
  return index >= 0 && first[index] + bucket - 1 >= run.detail.round;
}

// `at` is the place of the mark in pixels, `from` the start of the line to it, if there is one.
export function drawDelivered(context, { from, at: [x, y], colour, size = 6 }) {
  context.strokeStyle = colour;
  context.fillStyle = colour;
  if (from) {
    context.lineWidth = 1.8;
    context.setLineDash([2, 3]);
    context.beginPath();
    context.moveTo(...from);
    context.lineTo(x, y);
    context.stroke();
    context.setLineDash([]);
  }
  context.beginPath();
  for (const [dx, dy] of [
    [0, -size],
    [size, 0],
    [0, size],
    [-size, 0],
  ])
    context.lineTo(x + dx, y + dy);
  context.fill();
}
