// node read_diagram.js MERMAID < DIAGRAM: nothing where mermaid can read it, else what it says, and status 1.
const fs = require("fs");
const vm = require("vm");

// As much of a browser as its sanitizer looks for when it is loaded; parsing needs none.
globalThis.window = globalThis;
globalThis.Element = class {};
globalThis.document = { nodeType: 9, implementation: {}, createElement: () => ({}), addEventListener() {} };
globalThis.addEventListener = () => {};

vm.runInThisContext(fs.readFileSync(process.argv[2], "utf8"));
globalThis.mermaid.parse(fs.readFileSync(0, "utf8")).catch((problem) => {
  console.error(String(problem.message));
  process.exitCode = 1;
});
