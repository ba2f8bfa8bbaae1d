# Everything a user or CI does, one verb each. `make` alone prints this list.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SUITES := $(BIN)/python -m tests.support.suites

.DEFAULT_GOAL := help
.PHONY: help install run test test-unit test-stories test-hostile test-tenants test-node test-cluster test-e2e test-e2e-short test-crowd test-conformance test-differential test-chart test-dashboards test-release test-publication test-interpreters test-arm64 test-site test-page test-bench page-screenshot test-ci kubelab manifests dist sbom image image-tools chart release release-dry-run release-push site site-serve audit test-all lint format bench bench-compare bench-node-cache bench-push bench-scale bench-memory bench-guard lock clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/.runtime ## create .venv with .venv/bin/topodns from requirements.lock

run: install ## serve the example cluster of config/demo on 127.0.0.1:5300, and its topology page on 127.0.0.1:5382
	@echo 'try in another terminal, and open the topology page, whose address follows, in a browser:'
	@sed -n 's/^# *\(dig .*[^ ]\)  *#  */  \1   # /p' config/demo/Corefile
	@$(BIN)/topodns -conf config/demo/Corefile -dns.port 5300

test: $(VENV)/.dev ## run the unit tests and, beside them, the stories (no root, no cluster, no Go; 5 minutes on two quiet cores, longer beside other work)
	@$(SUITES) tests/unit beside -n 4 --dist loadfile tests/stories

test-unit: $(VENV)/.dev ## run the pure tests only
	@$(SUITES) tests/unit

test-stories: $(VENV)/.dev ## run the tests with real sockets, processes and signals
	@$(SUITES) -n 4 --dist loadfile tests/stories

test-hostile: $(VENV)/.dev ## attack a server on loopback, beside a victim that asks steadily (3 minutes; not in `make test`)
	@$(SUITES) -n 2 --dist loadfile -m 'not long' tests/hostile

test-tenants: $(VENV)/.dev ## of the attacks those by all kinds of a tenant's objects, at each way to start (15 to 30 minutes)
	@$(SUITES) -n 2 --dist load -m long tests/hostile

test-node: $(VENV)/.dev ## run the tests of the host's network, in namespaces of their own (root; 5 minutes)
	@$(SUITES) tests/node

test-cluster: kubelab ## run the tests against a real Kubernetes (root; the first run builds it, 20 to 30 minutes)
	@$(SUITES) tests/cluster

test-e2e: kubelab ## install and run it as an operator does, on real kubelets, with kube-proxy in both modes (root; 15 minutes)
	@$(BIN)/python -m tests.support.kube.dnstools
	@$(SUITES) tests/e2e

test-e2e-short: kubelab ## of these only what CI runs: README's Install, topology by zone, the node cache's life (root; 4 minutes)
	@$(BIN)/python -m tests.support.kube.dnstools
	@$(SUITES) tests/e2e -m short -k nftables

test-crowd: kubelab ## of these only the ones with 300 nodes and 1,000 pods, which kwok plays (2 minutes)
	@$(SUITES) tests/cluster/test_many_nodes.py

test-conformance: kubelab ## run Kubernetes' own tests of cluster DNS against the chart (root; an hour, the first run 20 minutes more)
	@$(BIN)/python -m tests.support.kube.kubernetes_tests
	@$(SUITES) tests/conformance

test-differential: $(VENV)/.dev ## ask topodns and CoreDNS the same 190,000 questions (5 minutes; the first run builds CoreDNS with Go)
	@$(BIN)/python -m tests.support.coredns
	@$(SUITES) tests/differential

test-chart: $(VENV)/.dev ## render the Helm chart in all its shapes (the first run builds helm, kustomize and krew with Go)
	@$(BIN)/python -m tests.support.chart.helm
	@$(BIN)/python -m tests.support.chart.tools
	@$(BIN)/python -m tests.support.chart.promtool
	@$(SUITES) tests/chart

test-dashboards: $(VENV)/.dev ## ask Debian's Prometheus what dashboards ask, over a server and (root) a node cache
	@$(BIN)/python -m tests.support.prometheus
	@$(SUITES) tests/dashboards

test-release: $(VENV)/.dev ## make distributions, bill of materials and image, and run what is in the image (root)
	@$(SUITES) tests/release --ignore tests/release/test_publication.py

test-publication: $(VENV)/.dev ## make all of a release from a scratch clone, read it back, and push it to a registry here (root; 5 minutes)
	@$(SUITES) tests/release/test_publication.py

test-interpreters: $(VENV)/.dev ## run the unit tests by Debian's newer Pythons, each in a root of its own (root; 5 minutes)
	@$(SUITES) tests/interpreters/test_newer_pythons.py

test-arm64: $(VENV)/.dev ## run unit tests and stories of what is next to the kernel on arm64, elsewhere by qemu-user (root; 5 minutes)
	@$(SUITES) tests/interpreters/test_architectures.py

test-site: $(VENV)/.dev $(VENV)/.site ## make a site of the documents and follow every link in it
	@$(SUITES) tests/site

kubelab: $(VENV)/.dev
	@$(BIN)/python -m tests.kubelab prepare || echo 'not all could be built here: tests/cluster will say what it lacks'
	@$(BIN)/python -m tests.support.chart.helm

test-bench: $(VENV)/.dev ## run the benchmarks briefly and check the answers that they measure, with a C compiler (1 minute)
	@$(SUITES) tests/bench

test-page: $(VENV)/.dev ## use the topology page in Debian's Chromium: mouse, keyboard, light and dark (1 minute)
	@$(SUITES) tests/page

page-screenshot: $(VENV)/.dev ## write docs/operate/topology-page.png (Debian's Chromium)
	@$(BIN)/python -m tests.support.page_screenshot

test-ci: test test-hostile bench-guard test-bench test-page test-site test-release test-interpreters test-node test-differential test-e2e-short test-chart ## run what CI runs

test-all: test test-hostile test-tenants bench-guard test-bench test-page test-site test-chart test-dashboards test-release test-publication test-interpreters test-arm64 test-node test-differential test-cluster test-e2e ## run everything but test-conformance

lint: $(VENV)/.dev ## check style, types and the floors (ruff, mypy --strict, import-linter; actionlint where Go is)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m tests.support.actionlint

format: $(VENV)/.dev ## rewrite the code in the house style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: install ## measure CPU and latency of topodns alone, beside a plain echo (prints; some minutes)
	@$(BIN)/python -m bench.compare --alone

bench-compare: install ## measure CPU and latency beside CoreDNS, unbound, BIND and NSD; renews docs/reference/performance.md (15 minutes)
	@$(BIN)/python -m bench.compare

bench-node-cache: install ## measure a node's DNS cache, with ORIGINAL=PATH beside NodeLocal DNSCache (root; prints; 12 minutes)
	@$(BIN)/python -m bench.node_cache $(if $(ORIGINAL),--original $(ORIGINAL))

bench-push: install ## measure how soon a change is in a node cache's answers, with pushes and with TTLs (prints; 2 minutes)
	@$(BIN)/python -m bench.push

bench-scale: install ## measure memory and latency at 5,000 nodes and 150,000 endpoints, beside CoreDNS (prints; 6 minutes)
	@$(BIN)/python -m bench.scale

bench-memory: install ## measure what a server and a node cache take, and fit formulas (prints; 10 minutes)
	@$(BIN)/python -m bench.memory

bench-guard: install ## count the calls of a query on each of its paths; fails if one takes over 10 % more than its figure (10 seconds)
	@$(BIN)/python -m bench.guard $(ARGS)

manifests: $(VENV)/.dev ## write config/kubernetes, the chart's README, annotations and dashboards anew
	@$(BIN)/python -m tests.support.chart.helm
	@$(BIN)/python -m tests.support.chart.manifests

.PHONY: krew
krew: install ## write the kubectl plugin and its manifest for krew into dist/: REPOSITORY=https://github.com/OWNER/topodns
	@$(BIN)/python -m release.krew $(REPOSITORY)

dist: install ## write wheel and sdist into dist/, the same octets for the same commit
	@$(BIN)/python -m release dist

sbom: install ## write the bills of materials (CycloneDX) of requirements.lock and requirements-image.lock into dist/
	@$(BIN)/python -m release sbom

image: install ## build the image by docker or buildah; where they or a registry are missing, assemble it into dist/
	@$(BIN)/python -m release image $(ARGS)

image-tools: install ## the same with the package kubernetes, for topodns locator and for commands that read a kubeconfig
	@$(BIN)/python -m release image --tools $(ARGS)

chart: install ## write the package of the chart into dist/ (the first run builds helm with Go)
	@$(BIN)/python -m release chart

release: install ## write everything of a release into dist/: from a commit tagged v and its version (Debian's apt, Go)
	@$(BIN)/python -m release all

release-dry-run: install ## the same of the last commit, dated and tagged in a scratch clone
	@$(BIN)/python -m release dry-run

release-push: install ## push images and chart of dist/ to REGISTRY=HOST/PATH (skopeo); prints the digest of each
	@$(BIN)/python -m release push $(REGISTRY) $(ARGS)

site: $(VENV)/.site ## write the documents as a site into dist/site
	@$(BIN)/python -m release site

site-serve: site ## the same, on 127.0.0.1:8000
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory dist/site 8000

audit: install ## ask PyPI for known vulnerabilities of what is pinned; ARGS=--strict: fail where it cannot be asked
	@$(BIN)/python -m release audit $(ARGS)

lock: ## pin the newest allowed dependencies with their hashes (needs uv)
	uv pip compile --universal --generate-hashes --python-version 3.11 --no-emit-index-url --no-header --upgrade \
	  --group build -o requirements.lock pyproject.toml
	echo kubernetes | uv pip compile --universal --generate-hashes --python-version 3.11 --no-emit-index-url --no-header \
	  --upgrade --group build --excludes - -c requirements.lock -o requirements-image.lock pyproject.toml
	uv pip compile --universal --generate-hashes --python-version 3.11 --no-emit-index-url --no-header --upgrade \
	  --group build --group dev -c requirements.lock -o requirements-dev.lock pyproject.toml
	uv pip compile --universal --generate-hashes --python-version 3.11 --no-emit-index-url --no-header --upgrade \
	  --group site -c requirements-dev.lock -o requirements-site.lock

clean: ## remove what make made
	rm -rf $(VENV) *.egg-info build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'topodns needs Python 3.11 or newer: make PYTHON=/path/to/python3.11'; exit 1; }
	@echo 'making the virtual environment $(VENV)'
	@$(PYTHON) -m venv $(VENV) || \
	  { echo 'python3 has no venv module here: install it (Debian: apt install python3-venv)'; rm -rf $(VENV); exit 1; }

$(VENV)/.runtime: requirements.lock pyproject.toml | $(BIN)/python
	@echo 'downloading and installing the pinned libraries of requirements.lock: up to a minute'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@echo 'installing topodns'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.runtime
	@echo 'downloading and installing the pinned libraries of requirements-dev.lock, for tests'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

$(VENV)/.site: requirements-site.lock $(VENV)/.runtime
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-site.lock
	@touch $@
