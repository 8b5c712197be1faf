# Targets for developers; `make help` lists them. The scripts are in scripts/, the build types in CMakePresets.json.
PREFIX ?= /usr/local
DESTDIR ?=
.DEFAULT_GOAL := build
export SECONDS_EACH ?= 20
.PHONY: build test test-projects test-vm test-vm-security test-vm-sessions test-vm-crash test-vm-selinux test-vm-apparmor test-containers test-images check tidy format bench install debug asan tsan clang test-mcp test-mcp-stress test-hostile test-neighbours test-stress fuzz-smoke test-servers surface surface-lists clean help test-image-use test-api test-vm-rungs test-rungs test-clients test-agents dist test-packages test-bundle test-other test-secrets-busy test-filesystems test-shapes test-protected-names

build: ## build build/caisson (the default)
	@sh scripts/build.sh release

test: ## build and run the standard suites; the last line counts passed, failed and skipped tests
	@sh scripts/test.sh release

test-bundle: ## build the programs and suites for ARCH (amd64 or arm64) as one file: python3 build/caisson-tests-ARCH.pyz runs them on a machine without compiler and source
	@sh scripts/test_bundle.sh $(ARCH)

test-other: ## build the suites for the other architecture and run them in an emulated machine; hours (FILTER="session_commit" selects)
	@CAISSON_TEST_FILTER="$(FILTER)" bash scripts/test_other.sh

test-vm: ## test the limits on other kernels, in emulated machines; prints a table (ROWS="6.1,amd64,root,own" selects)
	@sh scripts/build.sh --tests release
	@bash tests/vm/test.sh limits $(ROWS)

test-vm-security: ## run the security suite on the other architecture, in emulated machines; about an hour (ROWS, CAISSON_VM_FILTER)
	@bash tests/vm/test.sh security $(ROWS)

test-rungs: ## run the security suite in each weaker rung: only the losses documented in docs/isolation.md may occur; about 10 minutes (RUNGS="landlock")
	@sh scripts/build.sh --tests release caisson caisson-weakened without payload security_tests
	@python3 tests/security/rungs/run.py $(RUNGS)

test-vm-rungs: ## test-rungs for the rung proc_subset, which needs Linux 7.2, in an emulated machine; about an hour
	@sh scripts/build.sh --tests release caisson caisson-weakened without payload security_tests
	@bash tests/vm/test.sh rungs $(ROWS)

test-vm-sessions: ## run the session suites with pure cgroup v2 on the other architecture, in emulated machines; about an hour
	@bash tests/vm/test.sh sessions $(ROWS)

test-vm-crash: ## kill emulated machines while they write the audit log, and check it afterwards (ROUNDS=2)
	@bash tests/vm/crash.sh $(ROUNDS)

test-vm-selinux: ## test isolation.selinux_label on a kernel with SELinux, in an emulated machine
	@bash tests/vm/selinux.sh

test-vm-apparmor: ## test user namespaces denied by AppArmor 4 and by sysctls (error messages, fixes, our profile), in an emulated machine
	@sh scripts/build.sh release caisson caisson-mcp caisson-server caisson-image
	@tests/packages/apparmor_test.sh

test-containers: ## as root: run caisson inside containers of Docker, Podman, containerd and runc; about 20 minutes (ROWS="docker-user,podman-user")
	@sh scripts/test_containers.sh $(ROWS)

test-images: ## test images from skopeo, podman, buildah, umoci and a real registry, hostile archives, kill -9 at every step (SUITES="crash"); installs the tools
	@sh scripts/test_images.sh $(SUITES)

check: ## check layers, paths, formatting and house rules
	@sh scripts/check.sh

tidy: ## run clang-tidy on every source file (FILES="a.cc b.cc" selects)
	@sh scripts/tidy.sh $(FILES)

format: ## run clang-format on every tracked C++ file
	@sh scripts/check_style.sh --fix

bench: ## build and run the benchmarks; prints a table
	@sh scripts/bench.sh

install: ## install to PREFIX (default: /usr/local), below DESTDIR if set
	@sh scripts/build.sh release
	@DESTDIR="$(DESTDIR)" cmake --install build --prefix "$(PREFIX)"

dist: ## build packages into dist/ (ARTEFACTS="tarball deb npm wheel image" selects; ARCH=amd64 or arm64 cross-builds and adds to dist/)
	@sh scripts/dist.sh $(if $(ARCH),--arch $(ARCH)) $(ARTEFACTS)

test-packages: ## as root: build the packages, then install, use and remove them in fresh Debian roots (SUITES="release"; ARCH=amd64 or arm64: in emulated machines)
	@sh scripts/test_packages.sh $(if $(ARCH),--arch $(ARCH)) $(SUITES)

debug: ## build in build-debug/ and run its tests
	@sh scripts/test.sh debug

asan: ## run the suites with AddressSanitizer and UndefinedBehaviorSanitizer
	@sh scripts/test.sh asan

tsan: ## run the suites with ThreadSanitizer
	@sh scripts/test.sh tsan

clang: ## run the suites built with Clang
	@sh scripts/test.sh clang

test-api: ## test the HTTP API: all suites, load, kills, a browser, lint of the OpenAPI document (installs npm packages); 15 minutes (SUITES="crash")
	@sh scripts/test_api.sh $(SUITES)

test-mcp: ## test the MCP server with the official conformance suite and clients (installs them from npm)
	@sh scripts/test_mcp.sh

test-clients: ## test the Python and TypeScript clients, curl and the AI SDK example with a real server (installs npm packages)
	@sh scripts/test_clients.sh

test-agents: ## run published agents in a sandbox: Claude Code and Codex with a scripted model, four others as far as they start (installs them from npm, 1 GB)
	@sh scripts/test_agents.sh

test-mcp-stress: ## run 64 clients against one MCP server built with ThreadSanitizer; some minutes (CLIENTS=64 ROUNDS=1)
	@sh scripts/build.sh tsan caisson-mcp && python3 tests/mcp/stress.py build-tsan/caisson $${CLIENTS:-64} $${ROUNDS:-1}

test-neighbours: ## measure whether abuse in one sandbox slows another (needs an idle machine)
	@sh scripts/build.sh --tests release && cd build && CAISSON_MEASURE=1 tests/functional/functional_limits --gtest_filter='*Neighbour*'

test-hostile: ## test the guarantees of a session that contains a hostile process; some minutes (FILTER="*/StopAll")
	@sh scripts/test_hostile.sh "$(FILTER)"

test-servers: ## run PostgreSQL, SQLite, Redis and Chromium inside a sandbox (installs them)
	@sh scripts/test_servers.sh

test-image-use: ## run apt, pip and npm as root inside an image session (downloads Debian packages once)
	@sh scripts/test_image_use.sh $(CHECKS)

test-filesystems: ## as root: hidden secrets on ext2, ext4 and tmpfs that ignore case, vfat, btrfs, xfs; here and in an emulated machine
	@bash scripts/test_filesystems.sh

test-secrets-busy: ## read secrets in large trees beside 16 busy loops: 350 runs of all interfaces; about 20 minutes
	@sh scripts/build.sh release && CAISSON_BIN=$$PWD/build/caisson python3 -B tests/security/busy/secrets_busy.py

test-protected-names: ## run 50 shells, debuggers, interpreters and other tools with planted files: what they execute must be protected (installs them; NAMES="vim .pdbrc")
	@sh scripts/test_protected_names.sh $(NAMES)

test-projects: ## build real projects (Vite, Next.js, Python, Rust, Go, CMake, Maven) under the profile dev (installs their tools)
	@sh scripts/test_projects.sh $(NAMES)

test-stress: ## kill audited runs and writers at random moments, some thousand times; run long session histories
	@sh scripts/build.sh --tests release && cd build && \
	  export CAISSON_BIN="$$PWD/caisson" CAISSON_STRESS=$${CAISSON_STRESS:-20} CAISSON_TEST_SECONDS=1800 && \
	  tests/functional/functional_audit --gtest_filter='*Killing*' && tests/unit_tests --gtest_filter='*Killed*' && \
	  CAISSON_STRESS=$$((CAISSON_STRESS / 2 + 1)) tests/session/session_promises --gtest_filter='*Model*' && \
	  CAISSON_HISTORIES=$${CAISSON_HISTORIES:-2000} tests/session/session_histories

test-shapes: ## compare what random trees show in runs, sessions, MCP and HTTP with a reference written from docs/; some 15 minutes (TREES=500 SEED=1)
	@sh scripts/build.sh release caisson caisson-mcp caisson-server
	@python3 -B tests/security/shapes/differential.py --programs build --trees $${TREES:-500} --seed $${SEED:-1}

fuzz-smoke: ## run every fuzzer for a short time (SECONDS_EACH=20)
	@sh scripts/fuzz_smoke.sh

surface: ## as root: measure how much of the kernel is reachable in caisson and in its peers (docs/syscalls.md)
	@sh scripts/build.sh --tests release && sh scripts/surface.sh measure

surface-lists: ## regenerate the lists in docs/syscalls.md
	@sh scripts/build.sh --tests release && sh scripts/surface.sh lists

clean: ## remove every build directory
	@rm -rf build build-debug build-asan build-tsan build-clang build-fuzz build-fuzz-quick build-dist build-dist-amd64 build-dist-arm64 build-amd64 build-arm64

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile
