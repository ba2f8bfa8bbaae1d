// The second half of the script of the page: one Service, what-if, nodes, and what each control does.

// --- one Service

function choose(id, zone) {
  page.chosen = {id, zone};
  renderRows();
  const first = page.nodes.find(([, name]) => isIn(name, zone));
  at("explain-node").value = first ? first[0] : "";
  for (const part of ["details-facts", "explanation", "clients", "endpoints"]) at(part).replaceChildren();
  at("details-title").textContent = zone === null ? id : `${id} in ${zoneText(zone)}`;
  at("details").hidden = false;
  at("details-title").focus();
  at("details").scrollIntoView({block: "nearest"});
  showDetails();
  if (zone !== null && first) explain();
}

function closeDetails() {
  const {id, zone} = page.chosen;
  page.chosen = null;
  at("details").hidden = true;
  renderRows();
  focusPlace([id, zone]);
}

async function showDetails() {
  const chosen = page.chosen;
  try {
    const detail = await ask("service", ["service", chosen.id]);
    if (page.chosen !== chosen) return;
    const facts = [["Keys", detail.keys.join(", ") || "none"], ["Where from", detail.source || "nowhere"],
      ["Endpoints", detail.endpoints], ["Load", detail.skew ? `the busiest endpoint has ${detail.skew} times the mean` : "none"],
      ["Misses in 5 min", page.summary.misses[chosen.id] || 0], ...detail.problems.map((text) => ["Problem", text]), ...detail.findings.map((text) => ["Audit", text])];
    at("details-facts").replaceChildren(...facts.flatMap(([name, value]) => [made("dt", {}, name), made("dd", {}, `${value}`)]));
    const groups = detail.clients.filter((group) => isIn(group.zone, chosen.zone));
    at("clients").replaceChildren(table("Nodes whose clients get the same", ["Zone", "Clients get", "Nodes"], groups.map(clientLine)));
    const listed = detail.listed.filter((one) => isIn(one.zone, chosen.zone));
    at("endpoints").replaceChildren(table("Ready endpoints, and the clients each has if one on each node asks",
      ["Address", "Hostname", "Node", "Zone", "Clients"],
      listed.map((one) => [one.address, one.hostname, one.node, zoneText(one.zone), `${one.clients}`])),
    detail.listed_of > detail.listed.length ? made("p", {}, `The first ${detail.listed.length} of ${detail.listed_of}.`) : "");
  } catch (problem) {
    if (page.chosen === chosen) {
      at("details-facts").replaceChildren(made("dt", {}, "Not known"), made("dd", {}, problem.message));
      at("clients").replaceChildren();
      at("endpoints").replaceChildren();
    }
  }
}

function clientLine(group) {
  const gets = group.answers.map((answer) => `IPv${answer.family}: ${count(answer.endpoints, "endpoint")}` +
    `${answer.key ? " by " + answer.key : ""} (${answer.reason.replaceAll("_", " ")})`).join("; ") || "no endpoint: there is none";
  const more = group.size > group.nodes.length ? ` and ${group.size - group.nodes.length} more` : "";
  return [zoneText(group.zone), `${group.covered ? group.near ? MARKS.near : MARKS.far : MARKS.none} ${gets}`, [chips(group.nodes), more]];
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
    shown = made("pre", {}, explanationText(await ask("explain", ...query)));
  } catch (problem) {
    shown = made("p", {}, `No explanation: ${problem.message}`);
  }
  if (explained.get(id) === number && wanted()) at(id).replaceChildren(shown);
}

function explanationText(found) {
  const lines = [
    `client   ${found.client.address || "any"} on ${found.client.node ? "node " + found.client.node : "an unknown node"}`,
    `name     ${found.question.name} ${found.question.type}`,
    `policy   ${found.policy.source ? found.policy.source + ": " + (found.policy.problem || found.policy.keys.join(", ")) : "none"}`,
  ];
  for (const one of found.tried) {
    lines.push(`tried    ${one.key}${one.value ? " = " + one.value : ""}: ${one.matches} matching${one.key === found.winner ? "  <- wins" : ""}`);
  }
  if (found.reason) lines.push(`because  ${found.reason}`);
  if (found.hint) lines.push(`hint     ${found.hint}`);
  return [...lines, `answer   ${found.rcode}`, ...found.answer.map((record) => `         ${record}`)].join("\n");
}

// --- what-if

function chips(names) {
  return made("ul", {class: "chips"}, ...names.map((name) => made("li", {},
    button(name, () => away(`node=${name}:down`), {"aria-label": `${name}: as if down`}))));
}

function away(text) {
  if (!page.changes.includes(text)) page.changes.push(text);
  suppose();
}

async function suppose() {
  at("what-if").hidden = !page.changes.length;
  at("what-if-changes").replaceChildren(...page.changes.map((text) => made("li", {}, `${changeText(text)} `,
    button("Put back", () => { page.changes = page.changes.filter((other) => other !== text); suppose(); },
      {"aria-label": `Put back ${text}`}))));
  page.supposed = new Map();
  at("what-if-worse").replaceChildren();
  if (page.changes.length) {
    const asked = page.changes.join("\n");
    say("what-if-result", "Being worked out.");
    try {
      const found = await ask("what-if", ...page.changes.map((text) => ["change", text]));
      if (page.changes.join("\n") !== asked) return;
      page.supposed = new Map(found.rows.map((row) => [row.id, row]));
      say("what-if-result", `${count(found.nodes, "node")} left; ` + (found.worse.length
        ? `clients of ${count(found.worse.length, "Service")} lose:` : "no Service's clients lose anything."));
      at("what-if-worse").replaceChildren(...found.worse.slice(0, PAGE_ROWS).map((one) => made("li", {}, lossText(one))));
    } catch (problem) {
      say("what-if-result", `This cannot be supposed: ${problem.message}`);
    }
  }
  renderRows();
}

function changeText(text) { // node=NAME:down, zone=NAME:down
  const [, kind, name] = text.match(/^(node|zone)=(.*):down$/) || [null, "", text];
  return kind ? `${kind} ${name} were down` : name;
}

function lossText({id, without_endpoints: without, far}) {
  const none = without ? `clients on ${count(without, "node")} more get no endpoint` : "";
  const distant = far ? `clients on ${count(far, "node")} more get far ones` : "";
  return `${id}: ${[none, distant].filter(Boolean).join(", ")}`;
}

// --- the rest of the page

function renderNodes() {
  const zones = new Map();
  for (const [name, zone] of page.nodes) zones.set(zone, [...(zones.get(zone) || []), name]);
  const parts = [...zones.keys()].sort().flatMap((zone) => {
    const names = zones.get(zone);
    const whole = zone ? [button("as if this zone were down", () => away(`zone=${zone}:down`), {"aria-label": `zone ${zone}: as if down`})] : [];
    const more = names.length > PAGE_NODES ? [made("p", {}, `and ${names.length - PAGE_NODES} more`)] : [];
    return [made("h3", {}, `${zoneText(zone)}: ${count(names.length, "node")} `, ...whole), chips(names.slice(0, PAGE_NODES)), ...more];
  });
  at("nodes").replaceChildren(...(parts.length ? parts : [made("p", {}, "No node is known.")]));
  at("node-names").replaceChildren(...page.nodes.map(([name]) => made("option", {value: name})));
}

function renderClusters() {
  const names = page.about.clusters;
  at("cluster").parentElement.hidden = names.length < 2;
  if (at("cluster").options.length !== names.length) {
    at("cluster").replaceChildren(...names.map((name, number) => made("option", {value: number}, name)));
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

at("body").addEventListener("keydown", move);
at("body").addEventListener("focusin", (event) => { page.focus = event.target; keepTabStop(); });
document.addEventListener("keydown", (event) => { if (event.key === "Escape" && page.chosen) closeDetails(); });
at("details-close").addEventListener("click", closeDetails);
at("explain-down").addEventListener("click", () => away(`node=${at("explain-node").value}:down`));
at("what-if-clear").addEventListener("click", () => { page.changes = []; suppose(); });
at("find").addEventListener("input", renderRows);
at("show").addEventListener("change", renderRows);
at("more").addEventListener("click", () => { page.screens += 1; renderRows(); });
at("cluster").addEventListener("change", () => {
  page.cluster = Number(at("cluster").value);
  page.revision = -1;
  page.changes = [];
  page.lines.clear();
  at("body").replaceChildren();
  if (page.chosen) closeDetails();
  suppose();
  connect();
});
submit("filter", renderRows);
submit("explain", explain);
submit("ask-form", () => showExplanation("ask-answer", () => true, ["client", at("ask-client").value], ["name", at("ask-name").value], ["type", at("ask-type").value]));
connect();
