# Copyright The sample-controller-manager Authors.
# SPDX-License-Identifier: Apache-2.0

# A table of contents: the work is done by the scripts in hack.

.DEFAULT_GOAL := help

# The environment often has a CLUSTER that means something else, and `make run`
# installs things: so only one that is given on the command line counts.
ifeq ($(origin CLUSTER),command line)
  RUN_FLAGS := --cluster='$(CLUSTER)'
endif

# The minor version of Kubernetes that tests run on, such as 1.36.
ifeq ($(origin KUBERNETES),command line)
  export KUBERNETES
endif

# Nor does what else in the environment is called N: $(call given,VARIABLE,-flag).
given = $(if $(findstring command,$(origin $(1))),$(2)='$($(1))')
BENCH_FLAGS = $(call given,BENCH,-load) $(call given,N,-n) $(call given,ROUNDS,-rounds) \
  $(call given,GIVE_UP_AFTER,-give-up-after) $(call given,CANDIDATES,-candidates) $(call given,PROFILE,-profile)

.PHONY: help
help: ## Show this help.
	@sed -n -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 26

.PHONY: all
all: build verify test ## Build, check and test.

.PHONY: build
build: ## Build bin/sample-controller-manager, and the kubectl plugin bin/kubectl-scm.
	hack/build.sh
	hack/build.sh kubectl-scm

.PHONY: run
run: ## Run it on a local cluster made for it, or on an existing one: CLUSTER=<kubeconfig>.
	@echo 'Building hack/run, the first time a minute'
	@# Not by `go run`, which exits 1 after Ctrl-C and keeps other signals to itself. With
	@# the flags of hack/cluster, which then compiles nothing twice.
	@go build -trimpath -gcflags=all=-dwarf=false -o bin/run ./hack/run && exec bin/run $(RUN_FLAGS)

.PHONY: test
test: ## Run the short tests, which show each promise once: KUBERNETES=<minor version>.
	hack/test.sh short

.PHONY: test-all
test-all: ## Run all tests: also long faults, storms and combinations.
	hack/test.sh all

.PHONY: test-matrix
test-matrix: ## Run a core set of end-to-end tests on each minor version of Kubernetes that is supported.
	hack/test.sh matrix

.PHONY: test-faults
test-faults: ## Do bad things to the daemon, and to Kubernetes' sample-controller, and print what came of it.
	hack/test.sh faults

.PHONY: fuzz
fuzz: ## Run each fuzz target, each for a minute: FUZZTIME=<duration>.
	FUZZTIME='$(FUZZTIME)' hack/fuzz.sh

.PHONY: bench
bench: ## Compare the daemon with its peers: BENCH=<loads> N=<number> ROUNDS=<times>; see hack/bench/README.md.
	@go -C hack/bench build -o ../../bin/bench . && exec bin/bench $(BENCH_FLAGS)

.PHONY: bench-compare
bench-compare: ## Compare the hot paths with those of another commit: BASE=<commit>.
	hack/bench-compare.sh '$(BASE)'

# Unlike go list, find also enters nested modules.
MUTATED = $(if $(findstring command,$(origin PKG)),$(PKG),pkg staging/src/samplecontroller.io/controller-manager)

.PHONY: mutate
mutate: ## Change one critical line at a time, and list what no test notices: PKG=<directory>, with all below it, N=<sample> SEED=<number>.
	@go build -o bin/mutate ./hack/mutate
	@nice -n 15 bin/mutate $(call given,N,-n) $(call given,SEED,-seed) \
	  $$(find $(MUTATED:/...=) -name '*_test.go' -not -path '*/testdata/*' -exec dirname {} + | sort -u)

.PHONY: verify
verify: ## Check that generated files, formatting, imports, modules and more are as they should be.
	hack/verify.sh

.PHONY: lint
lint: ## The checks of verify that only read the code.
	hack/verify.sh boilerplate gofmt lint shell

.PHONY: update
update: ## Generate anew all that is generated, tidy the modules, format the code.
	hack/update.sh

.PHONY: image
image: ## Build the container image for all its platforms, and its bills of materials.
	hack/image/build.sh

.PHONY: verify-image
verify-image: ## Build the image in two places, and check that each byte of it is the same.
	hack/image/verify.sh

.PHONY: clean
clean: ## Remove what was built in this directory.
	rm -rf bin _output
