// The last part of the script of the page: one Service, what-if, the URL, and the effect of each control.

// --- one Service

function choose(id, zone) {
  page.chosen = {id, zone};
  const drawn = page.pictured === id && page.detail;
  page.pictured = id;
  remember();
  renderRows();
  const first = page.nodes.find(([, name]) => isIn(name, zone));
  at("explain-node").value = first ? first[0] : "";
  for (const part of ["details-facts", "explanation", "clients", "endpoints"]) at(part).replaceChildren();
  at("details-title").textContent = zone === null ? id : `${id} in ${zoneText(zone)}`;
  at("details").hidden = false;
  at("details-title").focus();
  at("details").scrollIntoView({block: "nearest"});
  if (drawn) showDetails(); else showService();
  if (zone !== null && first) explain();
}

function closeDetails() {
  const {id, zone} = page.chosen;
  page.chosen = null;
  remember();
  at("details").hidden = true;
  renderRows();
  focusPlace([id, zone]);
}

function showDetails() {
  const {id, zone} = page.chosen, detail = page.detail;
  if (!detail) {
    at("details-facts").replaceChildren(made("dt", {}, "Not known"), made("dd", {}, page.problem));
    at("clients").replaceChildren();
    at("endpoints").replaceChildren();
    return;
  }
  const facts = [["Keys", detail.keys.join(", ") || "none"], ["Where from", detail.source || "nowhere"],
    ["Guards", Object.entries(detail.guards).map((guard) => guard.join(" ")).join(", ") || "none"], ["Names", detail.names],
    ["Endpoints", detail.endpoints], ["Load", detail.skew ? `the busiest endpoint has ${detail.skew} times the mean` : "none"],
    ["Misses in 5 min", page.summary.misses[id] || 0], ...detail.problems.map((text) => ["Problem", text]),
    ...detail.findings.map(({severity, text}) => ["Audit", `${SEVERITIES[severity] || ""} ${severity}: ${text}`])];
  at("details-facts").replaceChildren(...facts.flatMap(([name, value]) => [made("dt", {}, name), made("dd", {}, ...breakable(`${value}`))]));
  const groups = detail.clients.filter((group) => isIn(group.zone, zone));
  at("clients").replaceChildren(table("Nodes whose clients get the same", ["Zone", "Clients get", "Nodes"], groups.map(clientLine)));
  const listed = detail.listed.filter((one) => isIn(one.zone, zone));
  at("endpoints").replaceChildren(table("Ready endpoints, and the clients each has if one on each node asks",
    ["Address", "Hostname", "Node", "Zone", "Clients"],
    listed.map((one) => [one.address, one.hostname, one.node, zoneText(one.zone), `${one.clients}`])),
  detail.listed_of > detail.listed.length ? made("p", {}, `The first ${detail.listed.length} of ${detail.listed_of}.`) : "");
}

const SEVERITIES = {error: "✕", warning: "▲", info: "●"};

function clientText(group) {
  return group.answers.map((answer) => `IPv${answer.family}: ${count(answer.endpoints, "endpoint")}` +
    `${answer.key ? " by " + answer.key : ""} (${answer.reason.replaceAll("_", " ")})`).join("; ") || "no endpoint: there is none";
}

function clientLine(group) {
  const more = group.size > group.nodes.length ? ` and ${group.size - group.nodes.length} more` : "";
  return [zoneText(group.zone), `${group.covered ? group.near ? MARKS.near : MARKS.far : MARKS.none} ${clientText(group)}`, [chips(group.nodes), more]];
}

function table(caption, heads, lines) {
  const cells = (line) => line.map((value) => made("td", {}, ...(Array.isArray(value) ? value : [value])));
  return made("table", {}, made("caption", {}, caption),
    made("thead", {}, made("tr", {}, ...heads.map((text) => made("th", {scope: "col"}, text)))),
    made("tbody", {}, ...lines.map((line) => made("tr", {}, ...cells(line)))));
}

async function explain() {
  const node = at("explain-node").value, chosen = page.chosen;
  await showExplanation("explanation", () => page.chosen === chosen, ["service", page.chosen.id], ["node", node], ["type", at("explain-type").value]);
}

const explained = new Map(); // by id of the element: the number of the latest request

// Only the reply to the latest request is shown, and only while it is wanted.
async function showExplanation(id, wanted, ...query) {
  const number = (explained.get(id) || 0) + 1;
  explained.set(id, number);
  let shown;
  try {
    shown = made("pre", {}, (await ask("explain", ...query)).text);
  } catch (problem) {
    shown = made("p", {}, `No explanation: ${problem.message}`);
  }
  if (explained.get(id) === number && wanted()) at(id).replaceChildren(shown);
}

// --- what-if

const chips = (names) => made("ul", {class: "chips"}, ...names.map((name) => made("li", {}, toggle(name, `node=${name}:down`, `${name}: as if down`))));

// A button that is pressed while the change is supposed.
function toggle(text, change, label) {
  return button(text, () => {
    page.changes = page.changes.includes(change) ? page.changes.filter((other) => other !== change) : [...page.changes, change];
    suppose();
  }, {title: label, "aria-label": label, "aria-pressed": page.changes.includes(change)});
}

async function suppose() {
  remember();
  at("what-if").hidden = !page.changes.length;
  at("what-if-changes").replaceChildren(...page.changes.map((text) => made("li", {}, `${changeText(text)} `,
    button("Put back", () => { page.changes = page.changes.filter((other) => other !== text); suppose(); },
      {"aria-label": `Put back ${text}`}))));
  page.supposed = new Map();
  at("what-if-worse").replaceChildren();
  drawPicture();
  showService();
  if (page.changes.length) {
    const asked = page.changes.join("\n");
    say("what-if-result", "Being worked out.");
    try {
      const found = await ask("what-if", ...page.changes.map((text) => ["change", text]));
      if (page.changes.join("\n") !== asked) return;
      page.supposed = new Map(found.rows.map((row) => [row.id, row]));
      say("what-if-result", resultText(found));
      at("what-if-worse").replaceChildren(...found.worse.slice(0, PAGE_ROWS).map((one) => made("li", {}, lossText(one))));
    } catch (problem) {
      say("what-if-result", `This cannot be supposed: ${problem.message}`);
    }
  }
  renderRows();
}

function resultText({nodes, endpoints: [before, after], worse}) {
  const capacity = before > after ? ` ${before - after} of ${before} endpoints are lost.` : "";
  if (!nodes) return `No node is left: everything is lost.${capacity}`;
  return `${count(nodes, "node")} left.${capacity} ` +
    (worse.length ? `Clients of ${count(worse.length, "Service")} lose:` : "No Service's clients lose anything else.");
}

function changeText(text) { // node=NAME:down, zone=NAME:down
  const [, kind, name] = text.match(/^(node|zone)=(.*):down$/) || [null, "", text];
  return kind ? `${kind} ${name} were down` : name;
}

function lossText({id, without_endpoints: without, far, endpoints}) {
  const empty = endpoints ? "" : "no endpoint is left";
  const none = without ? `clients on ${count(without, "node")} more get no endpoint` : "";
  const distant = far ? `clients on ${count(far, "node")} more get far ones` : "";
  return `${id}: ${[empty, none, distant].filter(Boolean).join(", ")}`;
}

// --- the URL, which has what is shown, so that it can be sent to others

function remember() {
  const shown = new URLSearchParams();
  if (page.cluster) shown.set("cluster", page.cluster);
  if (page.chosen) shown.set("service", page.chosen.id);
  if (page.chosen && page.chosen.zone !== null && page.chosen.zone !== OTHERS) shown.set("zone", page.chosen.zone);
  if (page.by !== "queries") shown.set("by", page.by);
  for (const text of page.changes) shown.append("change", text);
  if (at("find").value) shown.set("find", at("find").value);
  if (at("show").value !== "all") shown.set("show", at("show").value);
  history.replaceState(null, "", `${shown}` ? `#${shown}` : location.pathname);
}

// Take what the URL has; a Service and changes once the state is there.
function recall() {
  const shown = page.recalled = new URLSearchParams(location.hash.slice(1));
  page.cluster = Number(shown.get("cluster")) || 0;
  at("find").value = shown.get("find") || "";
  if (shown.get("show") === "gaps") at("show").value = "gaps";
  if (shown.get("by") === "nodes") page.by = "nodes";
  page.changes = shown.getAll("change");
  connect();
}

function recallService() {
  const shown = page.recalled, service = shown.get("service");
  page.recalled = null;
  if (page.changes.length) suppose(); else showService();
  if (service !== null && page.rows.has(service)) choose(service, shown.get("zone"));
}

// --- the rest of the page

function renderClusters() {
  const names = page.about.clusters;
  at("cluster").parentElement.hidden = names.length < 2;
  if (at("cluster").options.length !== names.length) {
    at("cluster").replaceChildren(...names.map((name, number) => made("option", {value: number}, name)));
    at("cluster").value = page.cluster;
  }
}

function renderPrefixes() {
  const counts = Object.entries(page.summary.prefixes).sort((a, b) => b[1] - a[1]);
  at("prefixes").replaceChildren(counts.length
    ? table("Sources of unlocated clients", ["Prefix", "Queries"], counts.map(([prefix, number]) => [prefix, `${number}`]))
    : made("p", {}, "None."));
}

function submit(id, action) {
  at(id).addEventListener("submit", (event) => { event.preventDefault(); action(); });
}

for (const id of Object.keys(GRIDS)) {
  at(id).addEventListener("keydown", (event) => move(id, event));
  at(id).addEventListener("focusin", (event) => { GRIDS[id].focus = event.target; keepTabStop(id); });
}
document.addEventListener("keydown", (event) => { if (event.key === "Escape" && page.chosen) closeDetails(); });
at("details-close").addEventListener("click", closeDetails);
at("explain-down").addEventListener("click", () => {
  const text = `node=${at("explain-node").value}:down`;
  if (!page.changes.includes(text)) page.changes.push(text);
  suppose();
});
at("what-if-clear").addEventListener("click", () => { page.changes = []; suppose(); });
at("find").addEventListener("input", () => { remember(); renderRows(); });
at("show").addEventListener("change", () => { remember(); renderRows(); });
at("unit").addEventListener("change", (event) => { page.by = event.target.value; remember(); drawPicture(); });
at("more").addEventListener("click", () => { page.screens += 1; renderRows(); });
at("cluster").addEventListener("change", () => {
  page.cluster = Number(at("cluster").value);
  page.revision = -1;
  page.changes = [];
  page.lines.clear();
  at("body").replaceChildren();
  if (page.chosen) closeDetails();
  page.pictured = page.detail = null;
  suppose();
  connect();
});
submit("filter", renderRows);
submit("explain", explain);
submit("ask-form", () => showExplanation("ask-answer", () => true, ["client", at("ask-client").value], ["name", at("ask-name").value], ["type", at("ask-type").value]));
recall();
