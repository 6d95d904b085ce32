# SPDX-License-Identifier: BSD-2-Clause
# Entry point for Meson and Ninja.
#
#   make            build into build/; build/verbena runs from there
#   make run        build, then run the quick tour of the suite
#   make test       build, and run every test
#   make test-long  the NAS kernels in classes A and B, live and in virtual time; all of MPI; the packages;
#                   the programs of other groups, sanitized;
#                   a build where paths have spaces; the documentation's commands that take minutes;
#                   twelve calibrations; each parameter of each model changed by 1%; recorded programs on
#                   other adapters; ten times the random traffic and kills; 1,024 processes in virtual time;
#                   forty corrupted segments; unit tests, faults and live programs for aarch64;
#                   programs over the wire
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
# run, test, test-long, test-rxe, bench, fuzz, mutants and deps install missing packages first, unless SETUP=no.
# The other targets never do: they name what is missing, and stop.

BUILD        ?= build
prefix       ?= /usr/local
DESTDIR      ?=
FUZZ_SECONDS ?= 300
N            ?= 25
SEED         ?= 1
export SETUP

# Install packages before configuring, whatever -j says; ninja itself runs in parallel.
.NOTPARALLEL:

all: check-packages
	@tools/configure "$(BUILD)" release
	@tools/build "$(BUILD)"

check-packages:
	@tools/setup --check build
packages-run:
	@tools/setup build run
packages-test:
	@tools/setup build run test
packages-long:
	@tools/setup build run test long

deps: packages-test
	@tools/npm-install report "$(BUILD)/report/modules"
	@tools/npm-install tests/report "$(BUILD)/tests/report"

run: packages-run all
	@tools/show "$(BUILD)"

test: packages-test all
	@tests/run

test-long: packages-long all
	@tests/run build-long check-long docs-long nas-long mpi-all mpi-seeds packages-long calibrate-long replay-long \
		stress-long virtual-long anywhere-long properties-long aarch64 wire-programs

test-rxe: packages-test all
	@tests/run rxe-all

bench: packages-test all
	@bench/run
	@bench/suite
	@bench/mpi
	@bench/model
	@bench/replay
	@bench/wire
	@bench/nas

asan tsan: check-packages
	@tools/configure build-$@ $@
	@tools/build build-$@

fuzz: packages-test all
	@tests/fuzz/run --seconds $(FUZZ_SECONDS)

mutants: packages-test
	@tools/mutants --count $(N) --seed $(SEED) $(WHERE)

install: check-packages
	@tools/configure "$(BUILD)" release -Dprefix="$$(realpath -ms "$(prefix)")"
	@tools/build "$(BUILD)"
	@DESTDIR="$(DESTDIR)" meson install -C "$(BUILD)" --no-rebuild --quiet

uninstall:
	@tools/configure "$(BUILD)" release -Dprefix="$$(realpath -ms "$(prefix)")"
	@DESTDIR="$(DESTDIR)" tools/uninstall "$(BUILD)"

deb:
	@tools/deb build-deb

dist-binary: all
	@tools/dist-binary "$(BUILD)" build-dist

clean:
	rm -rf build build-*

.PHONY: all run test test-long test-rxe bench asan tsan fuzz mutants install uninstall clean deps
.PHONY: deb dist-binary
.PHONY: check-packages packages-run packages-test packages-long
