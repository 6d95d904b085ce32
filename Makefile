# SPDX-License-Identifier: BSD-2-Clause
# Entry point for Meson and Ninja; tools/setup installs missing packages.
#
#   make            build into build/; build/verbena runs from there
#   make run        build, then run the quick tour of the suite
#   make test       build, and run every test
#   make test-long  the NAS kernels in classes A and B, live and in virtual time; all of MPI; the packages
#   make test-rxe   the suite on the kernel's RDMA stack, in virtual machines
#   make bench      compare with UCX's shared memory, bare system calls, perftest and other MPIs
#   make asan, tsan build with sanitizers into build-asan/, build-tsan/
#   make fuzz       fuzz for longer than "make test" does (FUZZ_SECONDS=300)
#   make mutants    mutation testing: do the tests notice random changes? (N=25 SEED=1)
#   make deb        Debian packages, into build-deb/
#   make dist-binary  a tarball that runs from any directory, into build-dist/
#   make install    install (honours DESTDIR and prefix); make uninstall removes it
#   make deps       install every package that any of the above needs
#   make clean
#
# SETUP=no installs no packages.

BUILD        ?= build
prefix       ?= /usr/local
DESTDIR      ?=
FUZZ_SECONDS ?= 300
N            ?= 25
SEED         ?= 1
export SETUP

# Install packages before configuring, whatever -j says; ninja itself runs in parallel.
.NOTPARALLEL:

all: packages-build
	@tools/configure $(BUILD) release
	@ninja -C $(BUILD) --quiet

packages-build:
	@tools/setup build
packages-run:
	@tools/setup build run
packages-test deps:
	@tools/setup build run test
packages-long:
	@tools/setup build run test long

run: packages-run all
	@tools/show $(BUILD)

test: packages-test all
	@tests/run

test-long: packages-long all
	@tests/run nas-long mpi-all mpi-seeds packages-long

test-rxe: packages-test all
	@tests/run rxe-all

bench: packages-test all
	@bench/run
	@bench/suite
	@bench/mpi
	@bench/model
	@bench/nas

asan tsan: packages-build
	@tools/configure build-$@ $@
	@ninja -C build-$@ --quiet

fuzz: packages-test all
	@tests/fuzz/run --seconds $(FUZZ_SECONDS)

mutants: packages-test
	@tools/mutants --count $(N) --seed $(SEED) $(WHERE)

install: packages-build
	@tools/configure $(BUILD) release -Dprefix=$(abspath $(prefix))
	@ninja -C $(BUILD) --quiet
	@DESTDIR="$(DESTDIR)" meson install -C $(BUILD) --no-rebuild --quiet

uninstall:
	@tools/configure $(BUILD) release -Dprefix=$(abspath $(prefix))
	@DESTDIR="$(DESTDIR)" tools/uninstall $(BUILD)

deb:
	@tools/deb build-deb

dist-binary: all
	@tools/dist-binary $(BUILD) build-dist

clean:
	rm -rf build build-*

.PHONY: all run test test-long test-rxe bench asan tsan fuzz mutants install uninstall clean deps
.PHONY: deb dist-binary
.PHONY: packages-build packages-run packages-test packages-long
