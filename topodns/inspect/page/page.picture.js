// The picture: zones as columns, and the flow of queries between them for one Service, by queries or by nodes.

const REFRESH = 10000; // milliseconds between two readings of the queries
const DRAWN_NODES = 12; // names of a group of equal nodes that are drawn at once
const WIDE = 1000; // units of the drawing, whose width is that of all columns
const INSIDE = 0.8; // of a column's width that flows take at most

// Fetch the Service of the picture, as if the changes were made, and draw it, and its details if they are open.
async function showService() {
  const id = page.pictured, asked = page.changes.join("\n");
  let known = null;
  if (id === null || (page.detail && page.detail.id !== id)) page.detail = null;
  if (!page.detail) drawPicture(); // the nodes, until more is known
  if (id === null) return;
  try {
    const detail = await ask("service", ["service", id], ...page.changes.map((text) => ["change", text]));
    if (page.pictured !== id || page.changes.join("\n") !== asked) return;
    known = page.detail;
    page.detail = detail;
    page.problem = "";
  } catch (problem) {
    if (page.pictured !== id || page.changes.join("\n") !== asked) return;
    page.detail = null;
    page.problem = problem.message;
  }
  drawPicture();
  if (page.chosen && !(known && withoutFlows(known) === withoutFlows(page.detail))) showDetails();
}

const withoutFlows = (detail) => JSON.stringify({...detail, flows: null, queries: null});

// The queries change while the cluster stays as it is.
setInterval(() => {
  if (page.detail && !document.hidden && !document.body.classList.contains("dimmed")) showService();
}, REFRESH);

// The worst Service is drawn until the user chooses one.
function keepPictured() {
  if (page.pictured !== null && page.rows.has(page.pictured)) return false;
  const first = [...page.rows.values()].sort(worstFirst)[0];
  const before = page.pictured;
  page.pictured = first ? first.id : null;
  return page.pictured !== before;
}

function drawPicture() {
  const detail = page.detail, zones = pictureZones(detail);
  const measured = detail ? measure(detail) : {flows: []};
  const flows = new Map(measured.flows.map((flow) => [flow.zone, flow]));
  at("picture-title").replaceChildren(...breakable(page.pictured === null ? "Nodes" : `Where queries for ${page.pictured} go`));
  at("picture-about").replaceChildren(...breakable(!detail ? page.problem || (page.pictured === null ? "No Service has topology keys." : "")
    : `Keys: ${detail.keys.join(", ") || "none that are valid"}; ${count(detail.endpoints, "ready endpoint")}${page.changes.length ? ", as if" : ""}.`));
  at("picture-shares").replaceChildren(...(detail ? sharesText(detail, measured) : []));
  at("picture-unit").textContent = !detail ? "" : measured.byQueries
    ? "Estimated from a sample of queries, each divided evenly among the endpoints of its answer."
    : "One client on each node, divided evenly among the endpoints of its answer.";
  at("unit").hidden = !detail || !detail.queries;
  for (const choice of at("unit").elements) choice.checked = choice.value === (measured.byQueries ? "queries" : "nodes");
  const focused = GRIDS.nodes.focus && GRIDS.nodes.focus.getAttribute("aria-label");
  const hadFocus = at("nodes").contains(document.activeElement);
  redraw(zones.map((zone) => zoneColumn(zone, flows.get(zone), detail, measured)));
  GRIDS.nodes.focus = GRIDS.nodes.lines().flat().find((each) => each.getAttribute("aria-label") === focused) || null;
  keepTabStop("nodes");
  if (hadFocus && GRIDS.nodes.focus) GRIDS.nodes.focus.focus();
  at("destinations").replaceChildren(...zones.map((zone) => destination(zone, detail, measured)));
  at("flows").replaceChildren(...bands(zones, flows));
  for (const id of ["nodes", "destinations"]) at(id).style.setProperty("--columns", zones.length || 1);
  at("flows").style.setProperty("--columns", zones.length || 1);
  at("node-names").replaceChildren(...page.nodes.map(([name]) => made("option", {value: name})));
}

// Buttons that look the same are kept, as a user may be about to release one.
function redraw(elements) {
  const drawn = elements.map((each) => each.cloneNode(true));
  const same = drawn.length === page.drawn.length && drawn.every((each, number) => each.isEqualNode(page.drawn[number]));
  if (!same) at("nodes").replaceChildren(...elements);
  page.drawn = drawn;
}

// The zones of nodes and endpoints that have a column, then null for all others: also those that a flow names.
function pictureZones(detail) {
  const names = new Set(page.summary.zones);
  if (!page.summary.other_zones) for (const [, zone] of page.nodes) names.add(zone);
  for (const flow of detail ? detail.flows : []) for (const zone of [flow.zone, ...flow.to.map(([to]) => to)]) names.add(zone);
  if (page.summary.other_zones) names.add(null);
  const others = names.delete(null) ? [null] : [];
  return [...[...names].sort(), ...others];
}

const parts = (flow) => {
  const own = flow.to.filter(([zone]) => zone === flow.zone && zone).reduce((sum, [, share]) => sum + share, 0);
  const all = flow.to.reduce((sum, [, share]) => sum + share, 0);
  const ownNode = Math.min(flow.own_node, all);
  return {"own-node": ownNode, "own-zone": Math.max(0, own - ownNode), farther: Math.max(0, all - Math.max(own, ownNode)), nowhere: flow.nowhere};
};

// The flows that are drawn. By queries where enough are known, unless the user wants nodes.
function measure(detail) {
  const byQueries = detail.queries !== null && page.by === "queries";
  const {flows, unlocated} = byQueries ? detail.queries : {flows: detail.flows, unlocated: 0};
  const sums = {nowhere: 0, farther: 0, "own-zone": 0, "own-node": 0, unlocated};
  for (const flow of flows) for (const [kind, share] of Object.entries(parts(flow))) sums[kind] += share;
  return {byQueries, flows, sums, all: unlocated + flows.reduce((sum, flow) => sum + flow.all, 0), least: byQueries ? 0.5 : 0.005};
}

const WORDS = { // the worst first
  nowhere: "nowhere", farther: "farther", "own-zone": "to the own zone", "own-node": "to the own node",
  unlocated: "from clients without a node",
};

// Estimates have three digits.
const rounded = (number) => digits(number < 1000 ? Math.round(number) : Number(number.toPrecision(3)));
const queryCount = (number) => `about ${rounded(number)} ${Math.round(number) === 1 ? "query" : "queries"}`;

// A sentence, which is the legend too: each share has its colour.
function sharesText(detail, {byQueries, flows, sums, all, least}) {
  if (!flows.length) return ["No node is left."];
  if (!all) return ["No query came from the nodes that are left."];
  const of = byQueries ? `Of ${queryCount(all)} in the last ${detail.queries.minutes} minutes` :
    detail.queries ? "By nodes" : "By nodes, since few queries were seen";
  const shares = Object.entries(WORDS).filter(([kind]) => sums[kind] >= least).map(([kind, words]) =>
    made("span", {class: `share ${kind}`}, `${Math.round((100 * sums[kind]) / all) || "under 1"} % ${words}`));
  return [`${of}: `, ...shares.flatMap((share, at) => (at ? [", ", share] : [share])), "."];
}

function zoneColumn(zone, flow, detail, measured) {
  const title = zone === null ? "other zones" : zoneText(zone);
  const text = `zone=${zone}:down`, isDown = page.changes.includes(text);
  const head = zone ? toggle(title, text, `zone ${zone}: as if down`) : made("strong", {}, title);
  const names = page.nodes.filter(([, of]) => (zone === null ? !page.summary.zones.includes(of) : of === zone)).map(([name]) => name);
  const column = made("div", {class: `zone${isDown ? " down" : ""}`}, made("h3", {}, head));
  if (flow) column.append(made("p", {class: "shares"}, ...shareLines(flow, measured)));
  else if (detail) column.append(made("p", {class: "shares faint"}, names.length ? "no node left" : "no nodes"));
  column.append(...nodeGroups(zone, names, detail));
  return column;
}

function shareLines(flow, {byQueries, least}) {
  if (byQueries && !flow.all) return [`no queries from ${count(flow.nodes, "node")}`];
  const number = (share) => (byQueries || share >= 10 ? rounded(share) : `${Math.round(share * 10) / 10}`);
  const found = parts(flow);
  const lines = Object.entries(WORDS).filter(([kind]) => found[kind] >= least)
    .map(([kind, words]) => made("span", {class: `share ${kind}`}, `${number(found[kind])} ${words}`));
  return [byQueries ? `${queryCount(flow.all)}: ` : `${count(flow.nodes, "node")} ask${flow.nodes === 1 ? "s" : ""}: `, ...lines];
}

// The nodes of a zone, those together whose clients get the same.
function nodeGroups(zone, names, detail) {
  const left = new Set(names);
  const groups = [];
  for (const group of detail ? detail.clients : []) {
    const own = group.nodes.filter((name) => left.has(name));
    if (!own.length) continue;
    own.forEach((name) => left.delete(name));
    const kind = group.covered ? (group.near ? "near" : "far") : "none";
    groups.push([kind, `${MARKS[kind]} ${answerText(group)}`, own, group.size - group.nodes.length]);
  }
  const down = [...left].filter((name) => page.changes.includes(`node=${name}:down`) || page.changes.includes(`zone=${zone}:down`));
  down.forEach((name) => left.delete(name));
  if (left.size) groups.push(["", "", [...left], 0]);
  if (down.length) groups.push(["idle", "as if down", down, 0]);
  const merged = new Map();
  for (const [kind, text, own, more] of groups) {
    const [, before, unnamed] = merged.get(text) || [kind, [], 0];
    merged.set(text, [kind, [...before, ...own], unnamed + more]);
  }
  return [...merged].map(([text, [kind, own, more]]) => made("div", {class: `alike ${kind}`}, ...(text ? [made("p", {}, ...breakable(text))] : []),
    chips(own.sort().slice(0, DRAWN_NODES)), ...(own.length + more > DRAWN_NODES ? [made("p", {}, `and ${digits(own.length + more - DRAWN_NODES)} more`)] : [])));
}

function answerText(group) {
  const [families, texts] = [new Set(), new Set()];
  for (const answer of group.answers) {
    families.add(answer.family);
    texts.add(answer.endpoints ? `${count(answer.endpoints, "endpoint")}${answer.key ? " by " + answer.key : ""}`
      : `no endpoint: ${answer.reason.replaceAll("_", " ")}`);
  }
  return texts.size === 1 || families.size < 2 ? [...texts].join("; ") || "no endpoint is ready" : clientText(group);
}

function destination(zone, detail, {byQueries, flows, least}) {
  if (!detail) return made("p");
  const here = arrivingIn(flows).get(zone) || 0;
  const cell = zone === null ? detail.others : Object.hasOwn(detail.zones, zone) && detail.zones[zone];
  const asked = here < least ? "" : byQueries ? `, ${queryCount(here)}` : `, asked from ${digits(Math.round(here * 10) / 10)} nodes`;
  return made("p", {}, `${count(cell ? cell[0] : 0, "endpoint")} in ${zone === null ? "other zones" : zoneText(zone)}${asked}`);
}

function arrivingIn(flows) {
  const arriving = new Map();
  for (const flow of flows) for (const [to, share] of flow.to) arriving.set(to, (arriving.get(to) || 0) + share);
  return arriving;
}

// --- the drawing: areas from the zone of the clients, above, to that of the endpoints, below

function bands(zones, flows) {
  const width = WIDE / Math.max(1, zones.length), leaving = [...flows.values()].map((flow) => flow.all);
  const most = Math.max(1, ...leaving, ...arrivingIn(flows.values()).values());
  const unit = (INSIDE * width) / most;
  const begin = (zone) => zones.indexOf(zone) * width + ((1 - INSIDE) / 2) * width;
  const used = new Map(zones.map((zone) => [zone, 0]));
  const areas = [];
  for (const zone of zones) {
    const flow = flows.get(zone);
    if (!flow) continue;
    let from = begin(zone);
    const area = (kind, share, to) => {
      if (share <= 0) return;
      const size = share * unit, reaches = to !== undefined;
      const end = reaches ? begin(to) + used.get(to) : from;
      if (reaches) used.set(to, used.get(to) + size);
      areas.push(band(kind, from, end, size, reaches));
      from += size;
    };
    const {"own-node": ownNode, "own-zone": ownZone} = parts(flow);
    for (const [to, share] of [...flow.to].sort(([a], [b]) => zones.indexOf(a) - zones.indexOf(b))) {
      if (to === zone) {
        area("own-node", Math.min(ownNode, share), to);
        area(zone ? "own-zone" : "farther", zone ? ownZone : share - Math.min(ownNode, share), to);
      } else area("farther", share, to);
    }
    area("nowhere", flow.nowhere);
  }
  return areas;
}

function band(kind, from, to, size, reaches) {
  const shape = document.createElementNS(at("flows").namespaceURI, "path");
  shape.setAttribute("class", kind);
  shape.setAttribute("d", reaches
    ? `M${from},0 C${from},50 ${to},50 ${to},100 L${to + size},100 C${to + size},50 ${from + size},50 ${from + size},0 Z`
    : `M${from},0 L${from},30 L${from + size / 2},45 L${from + size},30 L${from + size},0 Z`);
  return shape;
}
