# `make` does what CI does. `make help` lists the rest.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all
# The steps of `make` run in the order they are written, also under -j: the first
# failure is the last thing on the screen, and go uses every core by itself.
.NOTPARALLEL:
MAKEFLAGS += --warn-undefined-variables --no-builtin-rules --no-print-directory

GO ?= go
export GO

# More arguments for go test, e.g. TESTFLAGS='-run=Buffer -v'.
TESTFLAGS ?=

# make bench: how many rounds, and for how long each benchmark runs in one.
BENCH_ROUNDS ?= 9
BENCH_TIME ?= 50ms

# make bench-core: which benchmarks, how often, for how long.
BENCH ?= .
COUNT ?= 1
BENCHTIME ?= 1s

# make fuzz: how long for each target.
FUZZTIME ?= 10s

# make mutate: which lines are broken.
SEED ?= 1

BIN := $(CURDIR)/.tmp/bin
GOLANGCI_LINT := $(BIN)/golangci-lint

.PHONY: all
all: test check ## Everything CI does (default)

.PHONY: check
check: lint lint-test tidy standalone bench-smoke ## Everything CI does after the tests

.PHONY: test
test: ## Run all tests with the race detector, and those that count allocations, simulate or take many rounds without it
	scripts/test-race $(TESTFLAGS)
	scripts/test-allocs
	scripts/test-figures
	BALANCE_ROUNDS=25000 $(GO) test -run='^TestStress$$' ./balance # four metrics: 100,000 rounds
	STACK_CALLS=100000 $(GO) test -run='^TestStress$$' ./stack # so many that all that can happen has to

.PHONY: lint
lint: tools ## Run golangci-lint and the checks of scripts/
	scripts/check-core-requires-nothing
	scripts/check-sleeps
	scripts/check-allocs
	scripts/cases --check
	$(GOLANGCI_LINT) run $$($(GO) list -m -f '{{.Dir}}/...')
	cd bench && GOWORK=off $(GOLANGCI_LINT) run

.PHONY: lint-test
lint-test: tools ## Prove that the checks and the import rules can fail
	scripts/lint-test $(GOLANGCI_LINT)
	cd tools && GOWORK=off $(GO) test ./mutate

.PHONY: fmt
fmt: tools ## Format all Go files
	$(GOLANGCI_LINT) fmt

.PHONY: e2e
e2e: ## Run the end-to-end scenarios for longer, and print the table of docs/e2e.md
	cd cmd/belfry && $(GO) test -count=1 -timeout=15m -v ./internal/e2e -args -phase=10s -rate=200

.PHONY: tidy
tidy: ## Check that every go.mod and go.sum is tidy
	scripts/each-module $(GO) mod tidy -diff

# go.work hides what a published module forgets to require: here each stands alone.
.PHONY: standalone
standalone: ## Build and vet every published module without go.work
	for dir in $$($(GO) list -m -f '{{.Dir}}'); do \
	  (set -x; cd "$$dir"; GOWORK=off $(GO) build -o /dev/null ./...; GOWORK=off $(GO) vet ./...); \
	done

.PHONY: bench
bench: ## Compare with peers, Rust's tower among them, and write docs/benchmarks.md (BENCH_ROUNDS=n BENCH_TIME=t)
	tower=$$(scripts/build-tower) && cd bench && \
	  GOWORK=off $(GO) run ./compare -rounds=$(BENCH_ROUNDS) -time=$(BENCH_TIME) -tower="$$tower"

.PHONY: bench-smoke
bench-smoke: ## Run the tests beside the peers, and count allocations against what is promised
	cd bench && GOWORK=off $(GO) vet ./... && GOWORK=off $(GO) test -shuffle=on -timeout=2m ./...
	cd bench && GOWORK=off $(GO) run ./compare -smoke

.PHONY: bench-core
bench-core: ## Run the core's own benchmarks with allocations (BENCH=regexp COUNT=n BENCHTIME=t)
	$(GO) test -run='^$$' -bench='$(BENCH)' -benchmem -benchtime=$(BENCHTIME) -count=$(COUNT) -timeout=60m ./...

.PHONY: fuzz
fuzz: ## Run every fuzz target for a while (FUZZTIME=10s)
	scripts/fuzz $(FUZZTIME)

.PHONY: stress
stress: ## Run the stress tests whole: 100,000 rounds for each metric of the balancer, a million calls through ten layers
	BALANCE_ROUNDS=100000 $(GO) test -count=1 -timeout=30m -run='^TestStress$$' ./balance
	STACK_CALLS=1000000 $(GO) test -count=1 -timeout=60m -run='^TestStress$$' -v ./stack

.PHONY: mutate
mutate: ## Break 30 lines of the layers, one at a time, and see which breaks the tests notice (SEED=n)
	cd tools && GOWORK=off $(GO) build -o $(BIN)/mutate ./mutate
	$(BIN)/mutate -seed=$(SEED)

# Not a file target: go install looks up its build cache within a second, and rebuilds
# when tools/go.mod or the Go release changes. A timestamp would not see the latter.
.PHONY: tools
tools:
	cd tools && GOWORK=off GOBIN=$(BIN) $(GO) install tool

.PHONY: clean
clean: ## Delete what make has built
	rm -rf .tmp

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
