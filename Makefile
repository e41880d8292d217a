.DEFAULT_GOAL := help
SHELL := /bin/bash -o pipefail

# The pinned tools of `make check` and `make dist`; a changed version is built anew.
GOLANGCI_LINT_VERSION := v2.15.0
GOVULNCHECK_VERSION := v1.9.0
CYCLONEDX_VERSION := v1.10.0
GOLANGCI_LINT := bin/tools/golangci-lint-$(GOLANGCI_LINT_VERSION)
GOVULNCHECK := bin/tools/govulncheck-$(GOVULNCHECK_VERSION)
CYCLONEDX := bin/tools/cyclonedx-gomod-$(CYCLONEDX_VERSION)

# The services that the tests need; one whose address is set already
# (DATABASE_URL, PGBOUNCER_URL, REDIS_URL, AMQP_URL) is used, not started.
NEED ?= postgres,redis,pgbouncer

# The race detector is built with a C compiler.
RACE := $(shell command -v "$$(go env CC)" >/dev/null && echo -race)

WITH := bin/with-services

.PHONY: help run watch recording test check dist bench shape mutants torture build functions schema

help: ## list these targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 10

run: build ## watch Sluice work off a burst here; DIR=folder makes thumbnails of its images
	bin/sluice run $(if $(DIR),--dir "$$DIR")

watch: build ## as run, but it goes on until Ctrl-C and takes more work on its page
	bin/sluice run --watch $(if $(DIR),--dir "$$DIR")

recording: build ## run it once, and write docs/run.svg and docs/page.png as it was
	go run ./scripts/recording

build: ## build bin/sluice and bin/sluice-agent, static, so that they run on any Linux of this architecture
	CGO_ENABLED=0 go build -o bin/ ./cmd/sluice ./cmd/sluice-agent

test: bin/with-services ## run every test against private services, which it installs if it must
	$(if $(RACE),,@echo 'no C compiler ("apt-get install gcc"): running WITHOUT the race detector')
	$(WITH) --need $(NEED) -- sh -ec '\
		go test $(RACE) -shuffle=on -timeout 15m ./...; \
		$(if $(RACE),echo "all seeds of the simulator without the race detector:"; go test -timeout 15m ./core/sim -run TestTorture;) \
		echo "once more, through the pooler:"; \
		POSTGRES_VIA=pgbouncer go test $(RACE) -shuffle=on -timeout 15m ./providers/postgres'

check: $(GOLANGCI_LINT) $(GOVULNCHECK) ## check format, vet, lint, known vulnerabilities, licences, documents and go.mod
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "not formatted:" $$unformatted; exit 1; }
	go vet ./...
	$(GOLANGCI_LINT) run ./...
	$(call vulnerabilities)
	go run ./scripts/licences
	go test -run '^TestEvery' ./docs
	go mod tidy -diff

dist: $(CYCLONEDX) ## make the archives of a release in dist/: static, for two architectures, built twice and compared
	scripts/dist/dist.sh $(CYCLONEDX)

functions: ## build bin/evaluate and bin/reconcile as a cloud runs them: static, stripped
	CGO_ENABLED=0 go build -tags lambda.norpc -trimpath -ldflags '-s -w' -o bin/ ./functions/evaluate ./functions/reconcile

bench: functions bin/with-services ## measure warm ticks, decisions alone and the evaluate function, in one table
	$(WITH) --need postgres,redis -- go run ./scripts/bench

shape: ## print how long functions and files are; gates nothing
	@go run ./scripts/shape

mutants: bin/with-services ## break the code in small ways and see that a test notices
	$(WITH) --need postgres,redis,pgbouncer -- go run ./scripts/mutants $(if $(ONLY),-only '$(ONLY)')

torture: ## run the simulator for DURATION (10m) of fresh seeds beside the fixed ones
	go test ./core/sim -run TestTorture -timeout 0 -count=1 -v -duration=$(or $(DURATION),10m)

schema: ## write the settings' JSON Schema and reference table anew
	go test ./core/config -update

.PHONY: bin/with-services
bin/with-services:
	@go build -o $@ ./scripts/services/cmd/with-services

$(GOLANGCI_LINT):
	$(call install,github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION))

$(GOVULNCHECK):
	$(call install,golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION))

$(CYCLONEDX):
	$(call install,github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$(CYCLONEDX_VERSION))

# install builds a tool, and names it by its version so that it is built once.
define install
	@echo 'building $(1) (some minutes, the first time)'
	@mkdir -p bin/tools/new
	GOBIN=$(CURDIR)/bin/tools/new go install -trimpath $(1)
	@mv bin/tools/new/$(notdir $(firstword $(subst @, ,$(1)))) $@
endef

# vulnerabilities fails for any vulnerability in use and any error, but for a
# database that cannot be fetched, which it says.
define vulnerabilities
	@$(GOVULNCHECK) ./... >bin/govulncheck.log 2>&1 || { \
		grep -q '^govulncheck: fetching vulnerabilities' bin/govulncheck.log && \
		echo 'govulncheck: not run: its database is unreachable' >>bin/govulncheck.log; \
	} || { cat bin/govulncheck.log; exit 1; }
	@cat bin/govulncheck.log
endef
