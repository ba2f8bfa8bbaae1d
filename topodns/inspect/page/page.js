// The topology page. Names of a cluster are foreign text: everything is written by textContent, nothing as markup.
"use strict";

const PAGE_ROWS = 200; // Services shown before "Show more", and as many more each time: fewer of many zones
const PAGE_CELLS = 5000;
const POLL = 10000; // milliseconds, where there is no live connection
const AGAIN = 2000; // milliseconds between two what-ifs that the cluster's changes cause
const LAST = ["Endpoints", "Misses in 5 min", "Keys"]; // behind the zones
const MARKS = {near: "●", far: "○", part: "◐", none: "✕", idle: "–"};
const MEANING = {
  near: "all by a key", far: "some from anywhere", part: "gaps", none: "clients on no node get one", idle: "no nodes",
};

const at = (id) => document.getElementById(id);
const page = {
  cluster: 0, revision: -1, about: {queries: false, clusters: []}, summary: {misses: {}, prefixes: {}, unknown: [], zones: []},
  nodes: [], rows: new Map(), lines: new Map(), zones: [], screens: 1, chosen: null, pictured: null, detail: null,
  problem: "", drawn: [], by: "queries", changes: [], supposed: new Map(), source: null, poll: 0, waiting: 0, fetching: false, stale: false, news: null, recalled: null,
};

// Makes an element: text and elements are its children.
function made(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (name === "class") element.className = value;
    else if (name === "click") element.addEventListener("click", value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// A key as text that may be wrapped behind each "/".
const breakable = (text) => text.split(/(?<=\/)/).flatMap((part, at) => (at ? [made("wbr"), part] : [part]));

const button = (text, click, properties) => made("button", {type: "button", click, ...properties}, text);
const digits = (number) => number.toLocaleString("en");
const count = (number, one, many) => `${digits(number)} ${number === 1 ? one : many || one + "s"}`;
const OTHERS = "\0"; // in place of a name, which has no such character: all zones without a column
const zoneText = (name) => (name === OTHERS ? "other zones" : name || "no zone");
const isIn = (name, zone) => zone === null || (zone === OTHERS ? !page.zones.includes(name) : name === zone);
const path = (name, query) => `/topology/${name}?${new URLSearchParams([["cluster", page.cluster], ...query])}`;

async function ask(name, ...query) {
  const response = await fetch(path(name, query), {cache: "no-store"});
  if (!response.ok) throw new Error((await response.text()).trim() || `status ${response.status}`);
  return response.json();
}

// --- the state, and its changes

async function load() {
  if (page.fetching) { page.stale = true; return; }
  page.fetching = true;
  try {
    do {
      page.stale = false;
      const state = await ask("state");
      page.about = state.about;
      page.revision = state.revision;
      take(state);
      page.rows = new Map(state.rows.map((row) => [row.id, row]));
      renderAll();
      keepPictured();
      if (page.recalled) recallService(); else showService();
    } while (page.stale);
  } catch (problem) {
    at("summary").textContent = `The state could not be read: ${problem.message}`;
  } finally {
    page.fetching = false;
  }
}

function take(state) {
  if (state.summary) page.summary = state.summary;
  if (state.nodes) page.nodes = state.nodes;
}

function change(event) {
  const news = JSON.parse(event.data);
  if (news.to <= page.revision) return;
  if (news.from !== page.revision || page.fetching) { load(); return; }
  page.revision = news.to;
  take(news);
  for (const row of news.rows) page.rows.set(row.id, row);
  for (const id of news.gone) page.rows.delete(id);
  renderAll();
  if (page.changes.length && !page.waiting) {
    page.waiting = setTimeout(() => { page.waiting = 0; suppose(); }, AGAIN);
  }
  if (keepPictured() || news.nodes || news.rows.some((row) => row.id === page.pictured)) showService();
}

function connect() {
  if (page.source) page.source.close();
  clearInterval(page.poll);
  const source = page.source = new EventSource(path("events", []));
  source.addEventListener("hello", () => { live("live", true); load(); });
  source.addEventListener("reset", load);
  source.addEventListener("change", (event) => { live(`live, changed at ${new Date().toLocaleTimeString()}`, true); change(event); });
  source.addEventListener("error", () => {
    const last = page.news ? `; last news at ${page.news.toLocaleTimeString()}` : "";
    if (source.readyState !== EventSource.CLOSED) { live(`not live: trying to connect${last}`, false); return; }
    live(`not live: asked again every 10 seconds${last}`, false);
    load();
    page.poll = setInterval(load, POLL);
  });
}

function live(text, works) {
  at("live").textContent = text;
  at("live").className = works ? "" : "broken";
  if (works) page.news = new Date();
  document.body.classList.toggle("dimmed", !works);
}

// --- the table

function level([endpoints, nodes, covered, near]) {
  if (!nodes) return "idle";
  if (!covered) return "none";
  if (covered < nodes) return "part";
  return near < nodes ? "far" : "near";
}

const NO_CELL = [0, 0, 0, 0];
const cellOf = (row, name) => (name === OTHERS ? row.others : Object.hasOwn(row.zones, name) && row.zones[name]) || NO_CELL;
const isUncovered = (row) => [...Object.values(row.zones), row.others || NO_CELL].some((cell) => cell[2] < cell[1]);
const shownRow = (row) => page.supposed.get(row.id) || row;
const limit = () => page.screens * Math.min(PAGE_ROWS, Math.ceil(PAGE_CELLS / Math.max(1, page.zones.length)));
const hasGap = (row) => row.problems.length > 0 || !row.endpoints || isUncovered(row);
const uncovered = (row) => [...Object.values(row.zones), row.others || NO_CELL].reduce((sum, cell) => sum + cell[1] - cell[2], 0);
const worstFirst = (a, b) => uncovered(b) - uncovered(a) || (b.endpoints ? 0 : 1) - (a.endpoints ? 0 : 1) ||
  b.problems.length - a.problems.length || (a.id < b.id ? -1 : 1);

function renderAll() {
  at("cluster-name").textContent = page.summary.name || "the cluster";
  document.title = `topodns: topology of ${page.summary.name || "a cluster"}`;
  renderClusters();
  const unknown = page.summary.unknown;
  at("unknown").hidden = !unknown.length;
  at("unknown-list").replaceChildren(...unknown.map((line) => made("li", {}, line)));
  const names = [...page.summary.zones, ...(page.summary.other_zones ? [OTHERS] : [])];
  let focused = null;
  if (names.join("\n") !== page.zones.join("\n") || !at("head").children.length) {
    page.zones = names;
    focused = placeOf(document.activeElement);
    page.lines.clear();
    at("body").replaceChildren();
    at("head").replaceChildren(...["Service", ...names.map(zoneText), ...LAST].map((text) => made("th", {scope: "col"}, text)));
  }
  renderRows();
  if (focused) focusPlace(focused);
  at("ask").hidden = !page.about.queries;
  if (page.about.queries) renderPrefixes();
}

function placeOf(element) { // the Service and the zone of a button in the table
  for (const [id, line] of page.lines) {
    if (line.head === element) return [id, null];
    for (const [name, cell] of line.cells) if (cell.press === element) return [id, name];
  }
  return null;
}

function focusPlace([id, name]) {
  const line = page.lines.get(id);
  const cell = line && line.cells.get(name);
  if (line) (cell ? cell.press : line.head).focus();
}

function renderRows() {
  const find = at("find").value.trim().toLowerCase();
  const gapsOnly = at("show").value === "gaps";
  const all = [...page.rows.values()].sort(worstFirst);
  const wanted = all.filter((row) => row.id.toLowerCase().includes(find) && (!gapsOnly || hasGap(shownRow(row))));
  const shown = wanted.slice(0, limit());
  const kept = new Set(shown.map((row) => row.id));
  for (const [id, line] of page.lines) if (!kept.has(id)) { line.line.remove(); page.lines.delete(id); }
  let before = null;
  for (const row of shown) {
    const line = renderRow(row);
    const next = before ? before.nextSibling : at("body").firstChild;
    if (line !== next) at("body").insertBefore(line, next);
    before = line;
  }
  keepTabStop("body");
  at("more").hidden = wanted.length <= limit();
  at("left-out").hidden = !page.summary.left_out;
  at("left-out").textContent = `${count(page.summary.left_out, "Service")} with better coverage are not shown.`;
  at("zones-note").hidden = !page.summary.other_zones;
  at("zones-note").textContent = `The ${count(page.summary.zones.length, "zone")} with the most nodes have a column each; ` +
    "all others share the last one.";
  const gaps = all.filter(isUncovered).length;
  const others = page.summary.misses.others;
  const services = count(all.length + (page.summary.left_out || 0), "Service");
  at("summary").className = gaps ? "bad" : "";
  say("summary", (gaps ? `${MARKS.none} On some nodes clients of ${digits(gaps)} of ${services} with topology keys get no endpoint`
    : `${services} with topology keys, whose clients all get endpoints`) + `; ${count(page.summary.nodes, "node")}.` +
    (others ? ` ${count(others, "miss", "misses")} of further Services.` : ""));
}

function say(id, text) { // a live region repeats what is written again
  if (at(id).textContent !== text) at(id).textContent = text;
}

function renderRow(given) {
  const row = shownRow(given);
  let known = page.lines.get(given.id);
  if (!known) {
    known = {line: made("tr"), head: button("", () => choose(given.id, null)), keys: made("td", {class: "keys"}),
      endpoints: made("td"), misses: made("td"), cells: new Map(), written: ""};
    known.head.append(...breakable(given.id));
    known.line.dataset.service = given.id;
    known.line.append(made("th", {scope: "row"}, known.head));
    for (const name of page.zones) {
      const cell = {box: made("td", {class: "cell", "data-zone": name}), press: button("", () => choose(given.id, name))};
      cell.box.append(cell.press);
      known.cells.set(name, cell);
      known.line.append(cell.box);
    }
    known.line.append(known.endpoints, known.misses, known.keys);
    page.lines.set(given.id, known);
  }
  const misses = page.summary.misses[given.id] || 0;
  const written = JSON.stringify([row, given.zones, misses, page.supposed.has(given.id)]);
  known.line.classList.toggle("chosen", page.chosen !== null && page.chosen.id === given.id);
  if (written === known.written) return known.line;
  known.written = written;
  known.keys.replaceChildren(...breakable(row.keys.join(", ")), ...row.problems.map((text) => made("span", {class: "problem"}, text)));
  known.endpoints.textContent = digits(row.endpoints);
  known.endpoints.className = row.endpoints ? "number" : "number none";
  known.misses.textContent = digits(misses);
  known.misses.className = misses ? "number none" : "number";
  for (const [name, cell] of known.cells) renderCell(given, row, name, cell);
  return known.line;
}

function renderCell(given, row, name, {box, press}) {
  const [cell, now] = [cellOf(row, name), cellOf(given, name)];
  const [endpoints, nodes, covered] = cell;
  const kind = level(cell);
  const differs = row !== given && JSON.stringify(cell) !== JSON.stringify(now);
  box.className = `cell ${kind}${differs ? " changed" : ""}`;
  const spoken = `${given.id} in ${zoneText(name)}: ${count(endpoints, "endpoint")}, clients on ${covered} of ` +
    `${count(nodes, "node")} get one, ${MEANING[kind]}${differs ? ", as if" : ""}`;
  const was = differs ? [made("br"), made("span", {class: "was"}, `was ${MARKS[level(now)]} ${now[0]}, ${now[2]}/${now[1]}`)] : [];
  press.replaceChildren(
    made("span", {"aria-hidden": "true"}, `${MARKS[kind]} ${endpoints}`, made("br"), `${covered}/${nodes} nodes`, ...was),
    made("span", {class: "unseen"}, spoken));
}

// --- the keyboard: one tab stop for the table and one for the nodes, arrow keys in each

const GRIDS = {
  body: {lines: () => [...at("body").rows].map((line) => [...line.querySelectorAll("button")]), focus: null},
  nodes: {lines: () => [...at("nodes").children].map((zone) => [...zone.querySelectorAll("button")]), focus: null, upright: true},
};
const TURNED = {ArrowLeft: "ArrowUp", ArrowUp: "ArrowLeft", ArrowRight: "ArrowDown", ArrowDown: "ArrowRight"};

function keepTabStop(id) {
  const all = GRIDS[id].lines().flat();
  const current = all.includes(GRIDS[id].focus) ? GRIDS[id].focus : all[0];
  for (const each of all) each.tabIndex = each === current ? 0 : -1;
  GRIDS[id].focus = current || null;
}

function move(id, event) {
  const lines = GRIDS[id].lines(), key = (GRIDS[id].upright && TURNED[event.key]) || event.key;
  const row = lines.findIndex((line) => line.includes(event.target));
  if (row < 0) return;
  const column = lines[row].indexOf(event.target);
  const steps = {
    ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1], ArrowUp: [row - 1, column], ArrowDown: [row + 1, column],
    Home: [event.ctrlKey ? 0 : row, 0], End: [event.ctrlKey ? lines.length - 1 : row, lines[row].length - 1],
  };
  const target = steps[key] && (lines[steps[key][0]] || [])[steps[key][1]];
  if (!steps[key]) return;
  event.preventDefault();
  if (target) target.focus();
}
