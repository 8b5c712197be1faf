# Everything a person does here, by name. The work is in scripts/; CMakePresets.json has the build flavours.
PREFIX ?= /usr/local
DESTDIR ?=
.DEFAULT_GOAL := build
export SECONDS_EACH ?= 20
.PHONY: build test test-projects test-vm test-vm-security test-vm-sessions test-vm-crash test-vm-selinux test-vm-apparmor test-containers test-images check tidy format bench install debug asan tsan clang test-mcp test-mcp-stress test-hostile test-neighbours test-stress fuzz-smoke test-servers surface surface-lists clean help test-image-use test-api test-vm-rungs test-rungs test-clients test-agents dist test-packages

build: ## build build/caisson (the default)
	@sh scripts/build.sh release

test: ## build and run the standard suites; the last line says how many passed, failed and were skipped
	@sh scripts/test.sh release

test-vm: ## the limits on other kernels in emulated machines, as one table (ROWS="6.1,amd64,root,own" for some)
	@sh scripts/build.sh --tests release
	@bash tests/vm/test.sh limits $(ROWS)

test-vm-security: ## the security suite on the other architecture, in emulated machines; about an hour (ROWS, CAISSON_VM_FILTER)
	@bash tests/vm/test.sh security $(ROWS)

test-rungs: ## the security suite in each weaker rung (docs/isolation.md): exactly the documented losses; about 10 minutes (RUNGS="landlock")
	@sh scripts/build.sh --tests release caisson caisson-weakened without payload security_tests
	@python3 tests/security/rungs/run.py $(RUNGS)

test-vm-rungs: ## the same for the rung proc_subset, which needs Linux 7.2, in an emulated machine; about an hour
	@sh scripts/build.sh --tests release caisson caisson-weakened without payload security_tests
	@bash tests/vm/test.sh rungs $(ROWS)

test-vm-sessions: ## the sessions with pure cgroup v2 on the other architecture, in emulated machines; about an hour
	@bash tests/vm/test.sh sessions $(ROWS)

test-vm-crash: ## kill emulated machines while they write the audit log, and check it afterwards (ROUNDS=2)
	@bash tests/vm/crash.sh $(ROUNDS)

test-vm-selinux: ## isolation.selinux_label on a kernel with SELinux, in an emulated machine
	@bash tests/vm/selinux.sh

test-vm-apparmor: ## user namespaces refused by AppArmor 4 and by sysctls: causes, remedies, our profile, in an emulated machine
	@sh scripts/build.sh release caisson caisson-mcp caisson-server caisson-image
	@tests/packages/apparmor_test.sh

test-containers: ## as root: caisson inside containers of Docker, Podman, containerd and runc; about 20 minutes (ROWS="docker-user,podman-user")
	@sh scripts/test_containers.sh $(ROWS)

test-images: ## images of skopeo, podman, buildah, umoci and a real registry, hostile archives, kill -9 at every step (SUITES="crash"); installs the tools
	@sh scripts/test_images.sh $(SUITES)

check: ## layers, path lint, formatting and house rules
	@sh scripts/check.sh

tidy: ## clang-tidy over every source file (FILES="a.cc b.cc" for some)
	@sh scripts/tidy.sh $(FILES)

format: ## clang-format every tracked C++ file
	@sh scripts/check_style.sh --fix

bench: ## build and run the benchmarks; prints a table
	@sh scripts/bench.sh

install: ## install to PREFIX (/usr/local), below DESTDIR if given
	@sh scripts/build.sh release
	@DESTDIR="$(DESTDIR)" cmake --install build --prefix "$(PREFIX)"

dist: ## packages into dist/ (ARTEFACTS="tarball deb npm wheel image" for some; ARCH=amd64 or arm64: cross-built, beside those of this machine)
	@sh scripts/dist.sh $(if $(ARCH),--arch $(ARCH)) $(ARTEFACTS)

test-packages: ## as root: build the packages, then install, use and remove them in fresh Debian roots (SUITES="release"; ARCH=amd64 or arm64: those of it, in emulated machines)
	@sh scripts/test_packages.sh $(if $(ARCH),--arch $(ARCH)) $(SUITES)

debug: ## debug build in build-debug/, and its tests
	@sh scripts/test.sh debug

asan: ## the suites under AddressSanitizer and UndefinedBehaviorSanitizer
	@sh scripts/test.sh asan

tsan: ## the suites under ThreadSanitizer
	@sh scripts/test.sh tsan

clang: ## the suites built by Clang
	@sh scripts/test.sh clang

test-api: ## the HTTP API: all suites, load, kills, a browser, lint of its document (installs npm packages); 15 minutes (SUITES="crash")
	@sh scripts/test_api.sh $(SUITES)

test-mcp: ## the MCP server under the official conformance suite and clients (installs them from npm)
	@sh scripts/test_mcp.sh

test-clients: ## the Python and TypeScript clients, curl and the AI SDK example against a real server (installs npm packages)
	@sh scripts/test_clients.sh

test-agents: ## published Claude Code and Codex in a sandbox, against a scripted model (installs them from npm)
	@sh scripts/test_agents.sh

test-mcp-stress: ## 64 clients at one MCP server built with ThreadSanitizer; some minutes (CLIENTS=64 ROUNDS=1)
	@sh scripts/build.sh tsan caisson-mcp && python3 tests/mcp/stress.py build-tsan/caisson $${CLIENTS:-64} $${ROUNDS:-1}

test-neighbours: ## whether abuse in one sandbox slows another (measured, so on a quiet machine)
	@sh scripts/build.sh --tests release && cd build && CAISSON_MEASURE=1 tests/functional/functional_limits --gtest_filter='*Neighbour*'

test-hostile: ## a hostile process in a session against all that the session promises, some minutes (FILTER="*/StopAll")
	@sh scripts/test_hostile.sh "$(FILTER)"

test-servers: ## PostgreSQL, SQLite, Redis and Chromium inside a sandbox (installs them)
	@sh scripts/test_servers.sh

test-image-use: ## apt, pip and npm as root inside an image session (downloads Debian packages once)
	@sh scripts/test_image_use.sh $(CHECKS)

test-projects: ## real projects (Vite, Next.js, Python, Rust, Go, CMake, Maven) under the profile dev (installs their tools)
	@sh scripts/test_projects.sh $(NAMES)

test-stress: ## audited runs and writers killed at any moment, some thousands of them; long histories of sessions
	@sh scripts/build.sh --tests release && cd build && \
	  export CAISSON_BIN="$$PWD/caisson" CAISSON_STRESS=$${CAISSON_STRESS:-20} CAISSON_TEST_SECONDS=1800 && \
	  tests/functional/functional_audit --gtest_filter='*Killing*' && tests/unit_tests --gtest_filter='*Killed*' && \
	  CAISSON_STRESS=$$((CAISSON_STRESS / 2 + 1)) tests/session/session_promises --gtest_filter='*Model*'

fuzz-smoke: ## every fuzzer for a short while (SECONDS_EACH=20)
	@sh scripts/fuzz_smoke.sh

surface: ## as root: measure how much of the kernel caisson and its peers leave open (docs/syscalls.md)
	@sh scripts/build.sh --tests release && sh scripts/surface.sh measure

surface-lists: ## write the generated lists of docs/syscalls.md anew
	@sh scripts/build.sh --tests release && sh scripts/surface.sh lists

clean: ## remove every build directory
	@rm -rf build build-debug build-asan build-tsan build-clang build-fuzz build-fuzz-quick build-dist build-dist-amd64 build-dist-arm64 build-amd64 build-arm64

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile
