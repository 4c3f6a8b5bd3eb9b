# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# Each target calls a script or program in hack.

.DEFAULT_GOAL := help

# `make run` changes the cluster, so only a CLUSTER given on the command line counts. A
# CLUSTER in the environment often means something else.
ifeq ($(origin CLUSTER),command line)
  RUN_FLAGS := --cluster='$(CLUSTER)'
endif

# The minor version of Kubernetes that the tests run on, such as 1.36.
ifeq ($(origin KUBERNETES),command line)
  export KUBERNETES
endif

# The same for N and the others. $(call given,VARIABLE,-flag) is the flag if VARIABLE was
# given on the command line.
given = $(if $(findstring command,$(origin $(1))),$(2)='$($(1))')
BENCH_FLAGS = $(call given,BENCH,-load) $(call given,N,-n) $(call given,ROUNDS,-rounds) \
  $(call given,GIVE_UP_AFTER,-give-up-after) $(call given,CANDIDATES,-candidates)

.PHONY: help
help: ## Show this help.
	@sed -n -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 26

.PHONY: all
all: build verify test ## Build, verify and test.

.PHONY: build
build: ## Build bin/sample-controller-manager and the kubectl plugin bin/kubectl-scm.
	hack/build.sh
	hack/build.sh kubectl-scm

.PHONY: run
run: ## Run it on a new local cluster, or on an existing one with CLUSTER=<kubeconfig>.
	@echo 'Building hack/tools/run (takes about 90 seconds the first time)'
	@# Not `go run`, which exits 1 after Ctrl-C and does not forward other signals.
	@hack/build.sh run >/dev/null && exec bin/run $(RUN_FLAGS)

.PHONY: test
test: ## Run the short tests: KUBERNETES=<minor version>.
	hack/test.sh short

.PHONY: test-all
test-all: ## Run all tests, including long fault and stress tests.
	hack/test.sh all

.PHONY: test-matrix
test-matrix: ## Run the core end-to-end tests on each supported minor version of Kubernetes.
	hack/test.sh matrix

.PHONY: test-faults
test-faults: ## Inject faults into the daemon and into Kubernetes' sample-controller, and print a table of the effects.
	hack/test.sh faults

.PHONY: fuzz
fuzz: ## Run each fuzz target for a minute, or for FUZZTIME=<duration>.
	FUZZTIME='$(FUZZTIME)' hack/fuzz.sh

.PHONY: bench
bench: ## Compare the daemon with its peers: BENCH=<loads> N=<number> ROUNDS=<times>; see hack/tools/bench/README.md.
	@go -C hack/tools/bench build -o ../../../bin/bench . && exec bin/bench $(BENCH_FLAGS)

.PHONY: bench-compare
bench-compare: ## Compare Go benchmarks of the hot paths with another commit: BASE=<commit>.
	hack/bench-compare.sh '$(BASE)'

.PHONY: mutate
mutate: ## Change one operator at a time and list the changes that no test catches: PKG=<directory tree> (default: pkg).
	@go -C hack/tools/test build -o ../../../bin/gremlins github.com/go-gremlins/gremlins/cmd/gremlins
	@cd $(if $(findstring command,$(origin PKG)),$(PKG:/...=),pkg) && nice -n 15 $(CURDIR)/bin/gremlins unleash \
	  --workers=1 --timeout-coefficient=30 --invert-logical --invert-loopctrl --output-statuses=lct

.PHONY: verify
verify: ## Check generated files, formatting, imports, modules and more.
	hack/verify.sh

.PHONY: lint
lint: ## Run only the static checks: boilerplate, gofmt, lint and shell.
	hack/verify.sh boilerplate gofmt lint shell

.PHONY: update
update: ## Regenerate all generated files, tidy the modules and format the code.
	hack/update.sh

.PHONY: image
image: ## Build the multi-platform container image and its SBOMs: IMAGE=<name:tag> FIPS=1.
	hack/build-image.sh

.PHONY: verify-image
verify-image: ## Build the image twice, in different directories, and check that the results are identical.
	hack/reproduce-image.sh

.PHONY: release
release: ## Build a release in dist: VERSION=<v1.2.3> IMAGE=<registry/name> FIPS=1.
	hack/build-release.sh

.PHONY: deploy
deploy: ## Install the daemon in the cluster of the current kubectl context: IMAGE=<name:tag>.
	hack/deploy.sh deploy

.PHONY: undeploy
undeploy: ## Remove the daemon from that cluster; keeps the CRDs and all objects.
	hack/deploy.sh undeploy

.PHONY: clean
clean: ## Remove the build output.
	rm -rf bin dist _output
