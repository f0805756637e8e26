# What a contributor runs. `make check test` before every commit; the rest when
# it is about that.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build

TOOL      := go tool -modfile=tools.mod
FUZZTIME  ?= 30s
FUZZPKGS  ?= ./...
FUZZJOBS  ?= 1
FUZZPROCS ?= $(shell nproc 2>/dev/null || sysctl -n hw.ncpu)
BENCHTIME ?= 1s

.PHONY: build check test e2e fuzz bench mutants cover

build:
	go build -trimpath -o capgate ./cmd/capgate

# Form, suspicious constructs, and the laws of the tree. The tag brings in the
# one test file that is not built by default.
check:
	@unformatted=$$($(TOOL) gofumpt -l .); [ -z "$$unformatted" ] || { \
		echo "not formatted (gofumpt -w):"; echo "$$unformatted"; exit 1; }
	go vet -tags mutants ./...
	$(TOOL) staticcheck -tags mutants ./...
	$(TOOL) golangci-lint run ./...
	go test -count=1 -run '^(TestArch|TestTables|TestLawsCanFail)$$' .

test:
	go test ./...

# The real binary with real clients and real servers.
e2e:
	@if [ -d e2e ]; then set -x; go test -count=1 ./e2e/...; \
	else echo "there is no e2e package yet"; fi

# Every fuzz target there is, FUZZJOBS at a time with FUZZPROCS workers each.
fuzz:
	@go test -list '^Fuzz' $(FUZZPKGS) \
	| awk '/^Fuzz/ { name[++n] = $$1 } /^ok/ { for (i = 1; i <= n; i++) print $$2, name[i]; n = 0 }' \
	| GOMAXPROCS=$(FUZZPROCS) xargs -r -P $(FUZZJOBS) -I{} bash -c '.ci/fuzz {} $(FUZZTIME)'

bench:
	go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...

# Each file of testdata/mutants breaks one requirement; a test must notice.
mutants:
	@go test -tags mutants -count=1 -timeout 30m -v \
		-run '^(TestMutants|TestRunner|TestParseMutant)$$' . | grep -v '^=== '

# The core is covered, every statement of it. A statement counts as covered
# when any test binary reached it.
cover:
	go test -coverprofile=coverage.out -coverpkg=./capability/... ./capability/...
	@awk 'NR > 1 { size[$$1] = $$2; if ($$3 > 0) hit[$$1] = 1 } \
		END { \
			for (place in size) { \
				all += size[place]; \
				if (hit[place]) done += size[place]; else print "not covered: " place \
			} \
			printf "capability: %d of %d statements covered\n", done, all; \
			exit all == 0 || done < all \
		}' coverage.out | sort
