"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const tip = $("tip");
  const SPACE = "http://www.w3.org/2000/svg";
  const colour = (i) => `var(--c${i % 8})`;
  const dashes = ["", "6 3", "2 3"];
  const short = (v) => (v === 0 ? "0" : Math.abs(v) >= 1000 || Math.abs(v) < 0.01 ? v.toExponential(2) : String(+v.toPrecision(4)));

  // ---- drawing -------------------------------------------------------------------------------------------

  function add(parent, name, settings, text) {
    const element = document.createElementNS(SPACE, name);
    for (const [key, value] of Object.entries(settings || {})) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    parent.appendChild(element);
    return element;
  }

  function canvas(id, height, label, margins) {
    const place = $(id);
    place.replaceChildren();
    const width = Math.max(280, place.clientWidth || 640);
    const m = Object.assign({ left: 46, right: 14, top: 12, bottom: 40 }, margins);
    const svg = add(place, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
    return { svg, place, width, height, m, inner: { w: width - m.left - m.right, h: height - m.top - m.bottom } };
  }

  function legend(place, entries) {
    const list = document.createElement("ul");
    list.className = "legend";
    for (const [name, fill] of entries) {
      const item = document.createElement("li"), mark = document.createElement("span");
      mark.style.background = fill;
      item.append(mark, name);
      list.append(item);
    }
    place.prepend(list);
  }

  function showTip(event, text) {
    if (!text) { tip.hidden = true; return; }
    tip.hidden = false;
    tip.textContent = text;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 4)) + "px";
    tip.style.top = Math.max(4, event.clientY - height - 12) + "px";
  }

  function grid(c, x, y, xs, ys, xName, yName, xText, yText) {
    for (const v of ys) {
      add(c.svg, "line", { x1: c.m.left, x2: c.width - c.m.right, y1: y(v), y2: y(v), stroke: "var(--line)" });
      add(c.svg, "text", { x: c.m.left - 6, y: y(v) + 4, "text-anchor": "end" }, (yText || short)(v));
    }
    let last = -99;
    for (const v of xs) {
      if (x(v) - last < 34) continue;
      last = x(v);
      add(c.svg, "text", { x: x(v), y: c.height - c.m.bottom + 16, "text-anchor": "middle" }, (xText || short)(v));
    }
    add(c.svg, "text", { x: c.m.left + c.inner.w / 2, y: c.height - 4, "text-anchor": "middle", class: "strong" }, xName);
    if (yName) add(c.svg, "text", { x: 2, y: c.m.top + 2, class: "strong" }, yName);
  }

  function round(low, high) {
    const step = [1, 2, 5, 10, 20, 25, 50].find((s) => (high - low) / s <= 6) || 50;
    const found = [];
    for (let v = Math.floor(low / step) * step; v <= high + 1e-9; v += step) found.push(v);
    return found;
  }

  // Follows the pointer, or the arrow keys, from one place to the next.
  function walk(svg, count, nearest, show) {
    let at = -1;
    const go = (i, event) => { at = Math.max(0, Math.min(count - 1, i)); show(at, event); };
    svg.setAttribute("tabindex", "0");
    svg.addEventListener("pointermove", (e) => {
      const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
      go(nearest((e.clientX - box.left) * scale, (e.clientY - box.top) * scale), e);
    });
    svg.addEventListener("pointerleave", () => { tip.hidden = true; show(-1); });
    svg.addEventListener("blur", () => show(-1));
    svg.addEventListener("keydown", (e) => {
      const move = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[e.key];
      if (move) { e.preventDefault(); go(at + move); }
    });
  }

  // ---- accuracy ------------------------------------------------------------------------------------------

  const range = (values) => [Math.min(...values), Math.max(...values)];

  function accuracy() {
    const c = canvas("plot-accuracy", 330, "Accuracy in percent against time steps, one line for each method; all figures are in the table below");
    const steps = [...new Set(data.series.flatMap((s) => s.points.map((p) => p.t)))].sort((a, b) => a - b);
    const all = [...data.series.flatMap((s) => s.points.map((p) => p.accuracy)), ...data.baselines.map((b) => b.accuracy)];
    const ys = round(Math.max(0, Math.min(...all) - 2), Math.min(100, Math.max(...all) + 2));
    const [low, high] = [ys[0], Math.max(ys[ys.length - 1], Math.max(...all) + 1)];
    const last = Math.log2(steps[steps.length - 1]), first = Math.log2(steps[0]), span = last - first || 1;
    const x = (t) => c.m.left + 10 + ((Math.log2(t) - first) / span) * (c.inner.w - 20);
    const y = (v) => c.m.top + 10 + (1 - (v - low) / (high - low || 1)) * (c.inner.h - 10);
    const ticks = steps.filter((t) => steps.length < 9 || (t & (t - 1)) === 0 || t === steps[steps.length - 1]);
    grid(c, x, y, ticks, ys, data.perT ? "time steps T" : "time step t", "%");
    if (data.baselines.length) {
      const ann = data.baselines[0];
      add(c.svg, "line", { x1: c.m.left, x2: c.width - c.m.right, y1: y(ann.accuracy), y2: y(ann.accuracy), stroke: "var(--ink)", "stroke-dasharray": "6 4" });
    }
    data.series.forEach((s, i) => {
      const spread = s.points.filter((p) => p.spread !== null);
      if (spread.length) {
        const edge = [...spread.map((p) => `${x(p.t)},${y(p.accuracy + p.spread)}`), ...spread.slice().reverse().map((p) => `${x(p.t)},${y(p.accuracy - p.spread)}`)];
        add(c.svg, "polygon", { points: edge.join(" "), fill: colour(i), opacity: 0.15 });
      }
      add(c.svg, "polyline", { points: s.points.map((p) => `${x(p.t)},${y(p.accuracy)}`).join(" "), fill: "none", stroke: colour(i), "stroke-width": 2.5, "stroke-dasharray": dashes[Math.floor(i / 8) % 3] });
      for (const p of s.points) add(c.svg, "circle", { cx: x(p.t), cy: y(p.accuracy), r: 3.5, fill: colour(i) });
    });
    const mark = add(c.svg, "line", { y1: c.m.top, y2: c.height - c.m.bottom, stroke: "var(--ink)", "stroke-width": 1, visibility: "hidden" });
    legend(c.place, [...data.series.map((s, i) => [s.name, colour(i)]), ...data.baselines.slice(0, 1).map((b) => [`${b.name} ${b.accuracy.toFixed(2)} %`, "var(--ink)"])]);
    walk(c.svg, steps.length, (px) => steps.reduce((best, t, i) => (Math.abs(x(t) - px) < Math.abs(x(steps[best]) - px) ? i : best), 0), (i, event) => {
      mark.setAttribute("visibility", i < 0 ? "hidden" : "visible");
      if (i < 0) return;
      mark.setAttribute("x1", x(steps[i])); mark.setAttribute("x2", x(steps[i]));
      const lines = data.series.flatMap((s) => s.points.filter((p) => p.t === steps[i]).map((p) => `${s.name} ${p.accuracy.toFixed(2)} %`));
      $("say-accuracy").textContent = `${data.perT ? "T" : "t"} = ${steps[i]}: ${lines.join(", ")}`;
      if (event) showTip(event, [`${data.perT ? "T" : "t"} = ${steps[i]}`, ...lines].join("\n"));
    });
  }

  // ---- energy --------------------------------------------------------------------------------------------

  function energy() {
    if (!$("plot-energy")) return;
    const model = $("choose-model").value, cached = $("choose-cached").checked;
    const known = data.series.some((s) => s.points.some((p) => Object.keys(p.cached).length));
    $("choose-cached").disabled = !known;
    const c = canvas("plot-energy", 340, `Accuracy in percent against microjoules an image under the model ${model}; the table below has the figures of the last step`);
    const rows = data.series.map((s) => s.points.map((p) => ({ t: p.t, a: p.accuracy, e: (cached ? p.cached : p.energy)[model] })).filter((p) => p.e > 0));
    const flat = rows.flatMap((row, i) => row.map((p) => ({ ...p, name: `${data.series[i].name}, t = ${p.t}` })));
    data.baselines.forEach((b) => { if (b.energy[model] > 0) flat.push({ a: b.accuracy, e: b.energy[model], name: b.name, ann: true }); });
    if (!flat.length) return;
    const [least, most] = range(flat.map((p) => Math.log10(p.e))), pad = Math.max(0.05, (most - least) * 0.06);
    const ys = round(Math.max(0, Math.min(...flat.map((p) => p.a)) - 2), Math.min(100, Math.max(...flat.map((p) => p.a)) + 2));
    const high = Math.max(ys[ys.length - 1], Math.max(...flat.map((p) => p.a)) + 1);
    const x = (e) => c.m.left + ((Math.log10(e) - least + pad) / (most - least + 2 * pad)) * c.inner.w;
    const y = (v) => c.m.top + 10 + (1 - (v - ys[0]) / (high - ys[0] || 1)) * (c.inner.h - 10);
    const ticks = [];
    for (let p = Math.floor(least - pad); p <= most + pad; p++) for (const k of [1, 2, 5]) { const v = k * 10 ** p; if (Math.log10(v) >= least - pad && Math.log10(v) <= most + pad) ticks.push(v); }
    grid(c, x, y, ticks, ys, "microjoules an image", "%");
    rows.forEach((row, i) => {
      add(c.svg, "polyline", { points: row.map((p) => `${x(p.e)},${y(p.a)}`).join(" "), fill: "none", stroke: colour(i), "stroke-width": 2.5, "stroke-dasharray": dashes[Math.floor(i / 8) % 3] });
      for (const p of row) add(c.svg, "circle", { cx: x(p.e), cy: y(p.a), r: 3.5, fill: colour(i) });
    });
    flat.filter((p) => p.ann).forEach((p, i) => {
      add(c.svg, "rect", { x: x(p.e) - 5, y: y(p.a) - 5, width: 10, height: 10, fill: i ? "var(--quiet)" : "var(--ink)", transform: `rotate(45 ${x(p.e)} ${y(p.a)})` });
      const right = x(p.e) > c.width - 90 || i % 2 === 0;
      add(c.svg, "text", { x: x(p.e) + (right ? -8 : 8), y: y(p.a) + (i % 2 ? 17 : -8), "text-anchor": right ? "end" : "start", class: "strong" }, p.name);
    });
    const ring = add(c.svg, "circle", { r: 8, fill: "none", stroke: "var(--ink)", "stroke-width": 2, visibility: "hidden" });
    legend(c.place, data.series.map((s, i) => [s.name, colour(i)]));
    flat.sort((p, q) => p.e - q.e);
    const away = (p, px, py) => (x(p.e) - px) ** 2 + (y(p.a) - py) ** 2;
    walk(c.svg, flat.length, (px, py) => flat.reduce((best, p, i) => (away(p, px, py) < away(flat[best], px, py) ? i : best), 0), (i, event) => {
      ring.setAttribute("visibility", i < 0 ? "hidden" : "visible");
      if (i < 0) return;
      const p = flat[i], words = `${p.name}: ${p.a.toFixed(2)} %, ${short(p.e)} µJ`;
      ring.setAttribute("cx", x(p.e)); ring.setAttribute("cy", y(p.a));
      $("say-energy").textContent = words;
      if (event) showTip(event, words);
    });
  }

  // ---- layers --------------------------------------------------------------------------------------------

  let layer = 0, step = 1;
  const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;

  function errorOf(l) { return l.split ? l.split.total : data.errors[l.name]; }

  function layers() {
    const c = canvas("plot-layers", 250, "Firing rate and error of each layer; the table below has the figures", { right: 46, bottom: 30 });
    const rates = data.layers.map((l) => mean(l.rate)), errors = data.layers.map(errorOf);
    const most = Math.max(...rates, 0.01), worst = Math.max(...errors.filter((e) => e !== undefined), 1e-6);
    const wide = c.inner.w / data.layers.length, x = (i) => c.m.left + (i + 0.5) * wide;
    const y = (v) => c.m.top + 8 + (1 - v / most) * (c.inner.h - 8), z = (v) => c.m.top + 8 + (1 - v / worst) * (c.inner.h - 8);
    for (const k of [0, 0.5, 1]) {
      add(c.svg, "line", { x1: c.m.left, x2: c.width - c.m.right, y1: y(k * most), y2: y(k * most), stroke: "var(--line)" });
      add(c.svg, "text", { x: c.m.left - 6, y: y(k * most) + 4, "text-anchor": "end" }, (k * most).toPrecision(2));
      add(c.svg, "text", { x: c.width - c.m.right + 6, y: y(k * most) + 4 }, (k * worst).toPrecision(2));
    }
    data.layers.forEach((l, i) => {
      const bar = add(c.svg, "rect", { x: x(i) - wide * 0.38, width: wide * 0.76, y: y(rates[i]), height: Math.max(0, y(0) - y(rates[i])), fill: "var(--c0)", opacity: i === layer ? 1 : 0.45, cursor: "pointer" });
      bar.addEventListener("click", () => choose(i, step));
    });
    const line = data.layers.map((l, i) => [i, errors[i]]).filter(([, e]) => e !== undefined);
    add(c.svg, "polyline", { points: line.map(([i, e]) => `${x(i)},${z(e)}`).join(" "), fill: "none", stroke: "var(--c1)", "stroke-width": 2 });
    for (const [i, e] of line) add(c.svg, "circle", { cx: x(i), cy: z(e), r: 3.5, fill: "var(--c1)" });
    add(c.svg, "text", { x: c.m.left + c.inner.w / 2, y: c.height - 6, "text-anchor": "middle", class: "strong" }, "layers, from the image to the answer");
    legend(c.place, [["spikes per neuron and step (left)", "var(--c0)"], ["relative error (right)", "var(--c1)"]]);
    walk(c.svg, data.layers.length, (px) => Math.max(0, Math.floor((px - c.m.left) / wide)), (i, event) => {
      if (i < 0) return;
      const words = `${data.layers[i].name}: rate ${short(rates[i])}` + (errors[i] === undefined ? "" : `, error ${short(errors[i])}`);
      $("say-layers").textContent = words;
      if (event) showTip(event, words);
    });
  }

  const steps = () => data.layers[layer].rate.length;
  const named = (t) => (t <= data.extra ? `extra step ${t}` : String(t - data.extra));

  function membrane() {
    const l = data.layers[layer], { low, high, count } = data.bins;
    if (!l.membrane) { $("plot-membrane").textContent = "Shown for plain neurons: this kind has no single membrane that is compared with its threshold."; return; }
    const shares = l.membrane[step - 1];
    const c = canvas("plot-membrane", 230, `Histogram of membranes of ${l.name} before step ${named(step)}, in thresholds`);
    const most = Math.max(...l.membrane.flat(), 1e-9), wide = c.inner.w / count;
    const x = (v) => c.m.left + ((v - low) / (high - low)) * c.inner.w, y = (v) => c.m.top + 12 + (1 - v / most) * (c.inner.h - 12);
    grid(c, x, y, [-2, -1, 0, 1, 2, 3], [0, most / 2, most], "membrane / threshold", "share", (v) => v, (v) => (100 * v).toFixed(0) + " %");
    shares.forEach((s, i) => add(c.svg, "rect", { x: c.m.left + i * wide, width: Math.max(1, wide - 0.7), y: y(s), height: Math.max(0, y(0) - y(s)), fill: low + ((i + 0.5) * (high - low)) / count >= 1 ? "var(--c1)" : "var(--c0)" }));
    add(c.svg, "line", { x1: x(1), x2: x(1), y1: c.m.top, y2: y(0), stroke: "var(--ink)", "stroke-dasharray": "4 3" });
    const fired = shares.filter((s, i) => low + ((i + 0.5) * (high - low)) / count >= 1).reduce((a, b) => a + b, 0);
    $("say-membrane").textContent = `Step ${named(step)}: ${(100 * fired).toFixed(1)} % of the neurons are at or above the threshold and fire. What lies outside is in the outermost bars.`;
  }

  function bias() {
    const l = data.layers[layer], rows = l.bias.length, columns = l.channels.length;
    const height = Math.max(110, Math.min(340, rows * 22 + 56));
    const c = canvas("plot-bias", height, `Temporal bias of ${l.name}: ${columns} channels across, ${rows} steps down`);
    const most = Math.max(...l.bias.flat().map(Math.abs)), w = c.inner.w / columns, h = c.inner.h / rows;
    if (!most) { $("plot-bias").textContent = "This layer has no temporal bias."; $("say-bias").textContent = "Zero in every channel and step."; return; }
    l.bias.forEach((row, t) => {
      row.forEach((v, i) => add(c.svg, "rect", { x: c.m.left + i * w, y: c.m.top + t * h, width: w + 0.3, height: h + 0.3, fill: `rgba(var(${v > 0 ? "--up" : "--down"}), ${(Math.abs(v) / most).toFixed(3)})` }));
      if (rows <= 16 || t % Math.ceil(rows / 16) === 0) add(c.svg, "text", { x: c.m.left - 6, y: c.m.top + (t + 0.5) * h + 4, "text-anchor": "end" }, t + 1);
    });
    const now = step > data.extra ? step - data.extra - 1 : step - 1; // neurons begin anew after the extra steps
    if (now < rows) add(c.svg, "rect", { x: c.m.left - 1, y: c.m.top + now * h, width: c.inner.w + 2, height: h, fill: "none", stroke: "var(--ink)", "stroke-width": 1.5 });
    add(c.svg, "text", { x: c.m.left + c.inner.w / 2, y: c.height - 6, "text-anchor": "middle", class: "strong" }, `${columns} channels`);
    legend(c.place, [[`up to +${short(most)}`, "rgba(var(--up), 1)"], [`down to −${short(most)}`, "rgba(var(--down), 1)"]]);
    $("say-bias").textContent = "Channels across, steps down, in thresholds.";
    const place = (px, py) => Math.max(0, Math.min(rows - 1, Math.floor((py - c.m.top) / h))) * columns + Math.max(0, Math.min(columns - 1, Math.floor((px - c.m.left) / w)));
    walk(c.svg, rows * columns, place, (i, event) => {
      if (i < 0) return;
      const t = Math.floor(i / columns), k = i % columns, words = `channel ${l.channels[k]}, step ${t + 1}: ${short(l.bias[t][k])} thresholds`;
      $("say-bias").textContent = words;
      if (event) showTip(event, words);
    });
  }

  function raster() {
    const l = data.layers[layer], n = l.raster.length, T = steps();
    const c = canvas("plot-raster", 260, `Spikes of ${n} neurons of ${l.name} over ${T} steps, first image`);
    const w = c.inner.w / T, h = c.inner.h / n, x = (t) => c.m.left + (t - 0.5) * w;
    add(c.svg, "rect", { x: c.m.left + (step - 1) * w, y: c.m.top, width: w, height: c.inner.h, fill: "var(--line)" });
    grid(c, x, () => 0, Array.from({ length: T }, (_, i) => i + 1), [], "step", "", named);
    let sent = 0;
    l.raster.forEach((row, i) => row.forEach((s, t) => {
      if (!s) return;
      sent += t === step - 1 ? 1 : 0;
      add(c.svg, "rect", { x: c.m.left + t * w + w * 0.15, y: c.m.top + i * h + h * 0.1, width: w * 0.7, height: h * 0.8, rx: 1, fill: s > 0 ? "var(--c0)" : "var(--c1)" });
    }));
    $("say-raster").textContent = `${sent} of ${n} watched neurons fire at step ${named(step)}; they are evenly spread over the layer's ${l.shape.reduce((a, b) => a * b, 1)}.`;
  }

  function through() {
    const T = steps(), many = data.layers.length;
    const c = canvas("plot-through", 260, `Which watched neurons of each of ${many} layers fire at step ${named(step)}`, { left: 14, bottom: 30 });
    const w = c.inner.w / many;
    data.layers.forEach((l, i) => {
      const h = c.inner.h / l.raster.length, r = Math.max(1, Math.min(w, h) * 0.42);
      l.raster.forEach((row, k) => {
        const s = row[step - 1], settings = { cx: c.m.left + (i + 0.5) * w, cy: c.m.top + (k + 0.5) * h, r };
        add(c.svg, "circle", s ? { ...settings, fill: s > 0 ? "var(--c0)" : "var(--c1)" } : { ...settings, r: r * 0.55, fill: "var(--line)" });
      });
    });
    add(c.svg, "rect", { x: c.m.left + layer * w, y: c.m.top - 3, width: w, height: c.inner.h + 6, fill: "none", stroke: "var(--ink)", rx: 3 });
    add(c.svg, "text", { x: c.m.left + c.inner.w / 2, y: c.height - 6, "text-anchor": "middle", class: "strong" }, `layers, at step ${named(step)} of ${named(T)}`);
  }

  function choose(newLayer, newStep) {
    layer = newLayer;
    step = Math.min(newStep, steps());
    $("choose-layer").value = String(layer);
    $("choose-step").max = String(steps());
    $("choose-step").value = String(step);
    $("step").textContent = `${named(step)} of ${named(steps())}`;
    for (const row of document.querySelectorAll("#table-layers tbody tr")) row.classList.toggle("chosen", Number(row.dataset.layer) === layer);
    layers(); membrane(); bias(); raster(); through(); highlight();
  }

  // ---- images --------------------------------------------------------------------------------------------

  const word = (k) => (data.classes ? data.classes[k] : `class ${k}`);

  function answers() {
    const place = $("answers");
    if (!place) return;
    for (const a of data.answers) {
      const card = document.createElement("div"), text = document.createElement("div"), said = document.createElement("p"), cells = document.createElement("ol");
      card.className = "answer";
      if (a.address) { const image = document.createElement("img"); image.src = a.address; image.alt = a.label === null ? "test image" : `test image: ${word(a.label)}`; card.append(image); }
      said.textContent = (a.label === null ? "" : `It is: ${word(a.label)}. `) + (a.ann === null ? "" : `ANN: ${word(a.ann)}.`);
      cells.className = "cells";
      a.said.forEach((k, t) => {
        const cell = document.createElement("li"), right = a.label === null || k === a.label;
        cell.textContent = data.classes ? word(k) : k;
        cell.className = right ? "right" : "wrong";
        cell.dataset.step = t + 1 + data.extra;
        cell.title = `t = ${t + 1}: ${word(k)}, ${(100 * a.sure[t]).toFixed(0)} % sure` + (right ? "" : ", wrong");
        if (!right) { const wrong = document.createElement("span"); wrong.className = "unseen"; wrong.textContent = " (wrong)"; cell.append(wrong); }
        cell.style.background = right ? `rgba(var(--down), ${(0.1 + 0.4 * a.sure[t]).toFixed(2)})` : "transparent";
        cells.append(cell);
      });
      text.append(said, cells);
      card.append(text);
      place.append(card);
    }
  }

  function highlight() {
    for (const cell of document.querySelectorAll(".cells li")) cell.classList.toggle("now", Number(cell.dataset.step) === step);
  }

  // ---- start ---------------------------------------------------------------------------------------------

  function draw() {
    accuracy();
    energy();
    if (data.layers.length) choose(layer, step);
  }

  answers();
  draw();
  if ($("plot-energy")) { $("choose-model").addEventListener("change", energy); $("choose-cached").addEventListener("change", energy); }
  if (data.layers.length) {
    $("choose-layer").addEventListener("change", (e) => choose(Number(e.target.value), step));
    $("choose-step").addEventListener("input", (e) => choose(layer, Number(e.target.value)));
    for (const button of document.querySelectorAll("#table-layers button")) button.addEventListener("click", () => choose(Number(button.dataset.layer), step));
  }
  addEventListener("beforeprint", () => { for (const part of document.querySelectorAll("details")) part.open = true; });
  let wait = 0, before = innerWidth;
  addEventListener("resize", () => { if (innerWidth === before) return; before = innerWidth; clearTimeout(wait); wait = setTimeout(draw, 150); });
})();
