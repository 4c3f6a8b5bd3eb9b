// Copyright The sample-controller-manager Authors. SPDX-License-Identifier: Apache-2.0
(() => {
  const by = (id) => document.getElementById(id);

  const words = (s) => [[86400, 172800, "d"], [3600, 3600, "h"], [60, 60, "min"], [1, 0, "s"]]
    .filter(([, from]) => s >= from).map(([unit, , name]) => Math.floor(s / unit) + " " + name)[0];
  setInterval(() => document.querySelectorAll("time").forEach((t) => {
    const s = (Date.now() - Date.parse(t.dateTime)) / 1000, old = s > t.dataset.old;
    t.textContent = (s < 0 ? "in " + words(-s) : words(s) + " ago") + (old ? ", old" : "");
    t.classList.toggle("old", old);
  }), 1000);

  const stream = by("stream"), on = (what, f, from = stream) => from.addEventListener(what, f);
  for (const e of ["htmx:error", "htmx:sse:error"]) on(e, () => { by("lost").hidden = false; });
  let times, data, drawn = [];
  on("htmx:sse:after:connection", () => { by("lost").hidden = true; times = []; data = {}; }); // all samples come again

  const place = by("plots");
  if (!place) return;
  const names = place.dataset.controllers.split(" ");
  const plots = [["Keys in the queue", [0]], ["Age of the oldest key (s)", [1]], ["Syncs a second (red: failed)", [2, 3]]];
  const dashes = [[], [8, 4], [2, 3]];
  const rows = (kinds) => [times, ...names.flatMap((n) => kinds.map((i) => data[n][i]))];
  const draw = () => {
    const css = getComputedStyle(document.body), color = (name) => css.getPropertyValue("--" + name);
    const line = { stroke: color("line") }, axis = { stroke: color("text"), grid: line, ticks: line };
    const clock = (_, ticks) => ticks.map((t) => new Date(t * 1000).toISOString().slice(11, 19));
    const make = (name, text) => { const made = document.createElement(name); made.append(text); return made; };
    place.replaceChildren(...plots.map(([title]) => make("figure", make("figcaption", title))));
    drawn = plots.map(([, kinds], at) => new uPlot({
      width: place.children[at].clientWidth, height: 140, legend: { live: false },
      scales: { x: { range: (_, from, to) => [Math.min(from, to - 120), to] }, y: { range: (_, low, high) => [0, Math.max(1, high)] } },
      axes: [{ ...axis, values: clock, space: 70 }, axis],
      series: [{}, ...names.flatMap((n, i) => kinds.map((f) => ({
        label: n.replace("-controller", ""), class: f > 2 ? "hidden" : null, stroke: color(f > 2 ? "bad" : "c" + i), dash: dashes[i], width: 2,
      })))],
    }, rows(kinds), place.children[at]));
  };
  on("samples", (event) => {
    const more = JSON.parse(event.detail.data);
    let time = 0;
    times = [...times, ...more.t.map((t) => time += t)].slice(-450);
    for (const n of names) data[n] = more.f[n].map((c, i) => [...data[n]?.[i] ?? [], ...c].slice(-450));
    if (drawn[0]) drawn.forEach((p, i) => p.setData(rows(plots[i][1])));
    else draw();
  });
  const again = () => drawn[0] && draw();
  on("change", again, matchMedia("(prefers-color-scheme: dark)"));
  on("resize", again, window);
})();
