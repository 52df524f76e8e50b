# Everything that is done with this repository. `make` builds; `make help` lists the rest.

PREFIX ?= /usr/local
DESTDIR ?=
CARGO ?= cargo
CARGO_TARGET_DIR ?= target

RELEASE := $(CARGO_TARGET_DIR)/release
INSTALLED := lib/libpreloom.so bin/preloom include/preloom.h

.NOTPARALLEL:
.PHONY: all build setup demo check check-full bench lint doc install uninstall clean help

all: build

build: ## Build build/lib/libpreloom.so, build/bin/preloom and build/include/preloom.h (the default)
	$(CARGO) build --release -p preloom -p preloom-cli
	@install -C -D -m 755 $(RELEASE)/libpreloom.so build/lib/libpreloom.so
	@install -C -D -m 755 $(RELEASE)/preloom build/bin/preloom
	@install -C -D -m 644 include/preloom.h build/include/preloom.h

setup: ## Install what is missing from Debian; nothing happens if all is there
	@scripts/setup

demo: setup build ## Show a threaded C server natively and on preloom, side by side (a minute)
	$(CARGO) build --release -p loadgen
	@scripts/demo

check: setup build lint ## Lint, and run all tests but the long ones
	scripts/test

check-full: setup build lint ## Lint, and run all tests
	scripts/test --full

bench: setup build ## Measure against threads and epoll loops, into docs/bench/
	benches/run

bench-%: setup build ## Measure one thing only; benches/run --help lists the names
	benches/run $*

lint: ## Check formatting and warnings
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	@if command -v shellcheck >/dev/null; then shellcheck scripts/setup scripts/test .ci/run; fi

doc: ## Build the library's own documentation, private items included
	$(CARGO) doc --workspace --no-deps --document-private-items

install: ## Install what `make` built below PREFIX (default /usr/local), DESTDIR before it
	@for file in $(INSTALLED); do \
	    test -e build/$$file || { echo "build/$$file is missing: run make first" >&2; exit 1; }; \
	done
	install -D -m 755 build/lib/libpreloom.so $(DESTDIR)$(PREFIX)/lib/libpreloom.so
	install -D -m 755 build/bin/preloom $(DESTDIR)$(PREFIX)/bin/preloom
	install -D -m 644 build/include/preloom.h $(DESTDIR)$(PREFIX)/include/preloom.h
	@if test -z "$(DESTDIR)" && test "$$(id -u)" = 0; then ldconfig; fi

uninstall: ## Remove what install installed
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/,$(INSTALLED))

clean: ## Remove all that was built
	$(CARGO) clean
	rm -rf build

help: ## List the targets
	@sed -n 's/^\([a-z%-]*\):[^#]*## /\1\t/p' Makefile | sed 's/%/NAME/' | expand -t 12
