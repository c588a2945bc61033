// What comes first: only the frame of the page. The rest, some 200 kB of script, most of the style
// and the list of runs, is asked for once that frame is painted, because reading and running it
// would be in the way of the first paint.

let begun = false;

function link(about) {
  const made = Object.assign(document.createElement("link"), about);
  document.head.append(made);
  return made;
}

function begin() {
  if (begun) return;
  begun = true;
  // All three are on their way at once; the script runs when what it builds has its style.
  const style = link({ rel: "stylesheet", href: "/page/style.css" });
  link({ rel: "modulepreload", href: "/page/app.js" });
  link({ rel: "preload", as: "fetch", crossOrigin: "anonymous", href: "/api/runs" });
  style.onload = style.onerror = () => import("/page/app.js");
}

new PerformanceObserver(begin).observe({ type: "paint", buffered: true });
// A page that nobody sees is never painted.
setTimeout(begin, 100);
