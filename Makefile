# make run     trains ./pipeline.toml (needs Go and make alone)
# make test    installs what the tests need beyond Go, then runs them all
GO        ?= go
PIPELINE  ?= pipeline.toml
FUZZTIME  ?= 10s
# The program and the examples take ten minutes; four times as much on a machine that has other things to do.
TIMEOUT   ?= -timeout 40m
# Vet is lint's, and nobody debugs these programs.
TEST      = $(GO) test -vet=off -ldflags=-w $(TIMEOUT)
# Tests that have a short and a long form run in the long one; LONG= runs the short one.
LONG      ?= 1
KILLS     ?= 500
MINUTES   ?= 30
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
ERRORLINT   = github.com/polyfloyd/go-errorlint@v1.8.0
REVIVE      = github.com/mgechev/revive@v1.7.0
# Packages of Gymnasium's environments that are learned.
TASKS      = box2d==2.3.10 pygame-ce==2.5.8 mujoco==4.0.0 imageio==2.38.1 packaging==26.3
# Packages that make blocks, and that hold them.
BLOCKS     = $(addprefix ./core/,arena cluster component env link/... recording tape trajectory)
HOLDERS    = $(addprefix ./plugins/,batcher envcheck evaluation inference learner objects/... opponents plugintest process/... rollout runner vector wrap) ./sdk/process/...
export CGO_ENABLED = 0

.PHONY: run build dist wheel test-wheel test-pythons kernels docs test test-go test-live test-docs test-python test-examples test-langs test-ports test-kernels test-cuda cuda-record test-kills test-chaos test-hosts test-replay test-browser test-hostile test-peers peers test-learn learn test-avx512 race check lint format tools plugins fuzz bench bench-dev bench-peers clean

run: build
	bin/rlhost train $(PIPELINE)

build:
	$(GO) build -o bin/ ./cmd/rlhost ./cmd/rlhost-cuda

# Compiles the kernels of the CUDA backend anew.
kernels:
	$(GO) run ./gpu/cuda/kernels/build

# Python, clang, Rust: into the project's own folder, without privileges where that is possible.
tools:
	@./bench/tools.sh

test: tools test-go

# The second line is the build that poisons free blocks and remembers every claim. It runs what holds blocks: the packages of ONCE, which take
# minutes, in that build alone, since make race, test-kills and test-chaos run them without it; the others once more. What the other targets of
# this file run is in neither.
ONCE = /pipeline$$|/pipeline/session$$|/plugins/process/
PYTHON = ./sdk/python
LIVE = ^TestSwap|^TestCounts_|^TestPolicies_OfOnesOwn|^TestSelfPlay_(Learners|Swaps|Trains)
HOSTS = ^TestHosts_|^TestShared_
EXAMPLES = ./examples/... ./internal/touch ./gpu/gorgonia
PAGES = ^TestDocs_EveryBlockRuns|^TestNewcomer_
INTERPRETED = ^TestBackend_ContinuesAfterAnyFailedCall|^TestBenchmarks_CanBeTried
test-go:
	$(TEST) -skip '$(LIVE)|$(HOSTS)|^TestMath_|$(PAGES)|$(INTERPRETED)' $$($(GO) list ./... | grep -vE '$(ONCE)' | grep -vxF "$$($(GO) list $(PYTHON) $(EXAMPLES))")
	$(TEST) -tags invariants $(BLOCKS) ./pipeline ./pipeline/session $(HOLDERS)

# The tests of the program in which most blocks change hands, in the build that poisons free blocks: runs that are changed, other programs' policies,
# self-play. Make test has the others.
test-live: tools
	$(TEST) -tags invariants -run '$(LIVE)' ./cmd/rlhost

# The pages as a site that is read and searched without a network, .cache/docs/site. What leads nowhere fails it.
docs:
	@docs/site/build.sh

# The commands of the pages, block by block, and the paths of newcomers from an empty folder to a policy, but for those of test-langs.
test-docs: tools docs
	$(TEST) -count 1 -run '$(PAGES)' -skip 'TestNewcomer_ReachesTheResult/^($(LANGUAGES))$$' ./cmd/rlhost

# The package for Python: its own tests, four minutes, and what all runtimes of components promise.
test-python: tools
	$(TEST) $(PYTHON)

# Newcomers in each language that environments are written in, with real toolchains, from an empty folder to a policy; then the guests of
# the languages that the other targets have no compiler of, and of those without an SDK; then what rlhost new writes, in each language.
LANGUAGES = AssemblyScript|C|C\+\+|Go|Rust|Zig
COMPILED = TestLanguages|TestCorridor|TestForagers
test-langs: tools
	@./bench/languages.sh
	$(TEST) -count 1 -v -run 'TestNewcomer_ReachesTheResult/^($(LANGUAGES))$$' ./cmd/rlhost
	RLHOST_LONG=1 $(TEST) -count 1 -run '^(TestGuests$$|$(COMPILED))' ./cmd/rlhost ./examples/plugins
	RLHOST_LONG=1 $(TEST) -count 1 -v -run 'TestNew_|TestDoctor_' ./cmd/rlhost

# The examples in each language, with what each compiler makes of them, byte by byte, and of the mathematics, but for what test-langs runs in more
# languages; a new part of each kind, as the table of the architecture says; the backend whose networks are graphs.
test-examples: tools
	$(TEST) -skip '^($(COMPILED))' $(EXAMPLES)
	$(TEST) -count 1 -run '^TestMath_' ./cmd/rlhost

# Ports of PufferLib's environments in C, whose headers (60 MB) are fetched from its package on PyPI, and LunarLander beside Gymnasium's own.
test-ports: tools
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check $(TASKS)
	RLHOST_LONG=1 $(TEST) -count 1 -run TestPorts ./examples/plugins

# The kernels of the CUDA backend: compiled again and compared byte by byte, assembled for six architectures, every test of them
# under three seeds, and through a driver; then all that backends promise, for every network, and what runs do: four minutes on two cores.
# It installs NVIDIA's compiler (0.3 GB) and needs no GPU.
test-kernels:
	$(GO) run ./gpu/cuda/kernels/build -check
	$(TEST) -count 3 ./gpu/cuda/kernels
	RLHOST_CUDA_DRIVER=fake $(TEST) -count 1 ./gpu/cuda/kernels
	RLHOST_LONG=$(LONG) $(TEST) -count 1 -run 'TestBackend$$|$(INTERPRETED)' ./gpu/cuda
	RLHOST_LONG=$(LONG) $(TEST) -count 1 -run 'OnCUDA' ./pipeline/session

# Runs with the plugin over the interpreter: a CartPole to 475, then in the build with invariants all others, with twenty kills and fifty swaps. Then
# all that is recorded where there is a GPU, on less work.
test-cuda: build
	RLHOST_LONG=1 $(TEST) -count 1 -run 'TestCUDA_LearnsCartPole' ./cmd/rlhost
	RLHOST_LONG=$(LONG) $(TEST) -count 1 -tags invariants -run 'TestCUDA' -skip 'LearnsCartPole' ./cmd/rlhost
	RLHOST_LONG=$(LONG) $(TEST) -count 1 -run 'TestRecord' ./bench/cuda

# Builds the programs and tests that bench/cuda/record.py runs on a machine with a GPU, and packs them, with the commit that they are of, into one
# file of 35 MiB at most.
RECORDED = $(addprefix bin/,commit rlhost rlhost-cuda cuda.test kernels.test driver.test rlhost.test)
cuda-record:
	$(GO) build -trimpath -ldflags '-s -w' -o bin/ ./cmd/rlhost ./cmd/rlhost-cuda
	@for package in gpu/cuda gpu/cuda/kernels gpu/cuda/driver cmd/rlhost; do $(GO) test -c -trimpath -ldflags '-s -w' -o bin/$$(basename $$package).test ./$$package || exit 1; done
	@git describe --always --abbrev=40 --dirty --exclude '*' >bin/commit
	@tar -cf - $(RECORDED) | xz -T0 >bin/cuda-record.tar.xz
	@du -h bin/cuda-record.tar.xz
	@test $$(stat -c %s bin/cuda-record.tar.xz) -le $$((35 << 20)) || { echo 'bin/cuda-record.tar.xz is larger than 35 MiB'; exit 1; }

# Processes killed at random moments, KILLS of them a test; hosts killed before every operation of a swap on the disk;
# every promise of environments through Python; components that hang, and all ways to lose a block.
test-kills: tools
	RLHOST_KILLS=$(KILLS) $(TEST) -count 1 -run 'Kill|Stopped' ./core/arena ./core/ring ./plugins/process/... ./cmd/rlhost
	RLHOST_KILLS=$(KILLS) $(TEST) -count 1 -run TestKill_ClientsOfAChannel ./sdk/python
	RLHOST_LONG=1 $(TEST) -count 1 -run 'KeepsThePromises' ./plugins/process/worker
	RLHOST_LONG=1 $(TEST) -count 1 -run 'TestSwapForced|TestCounts' ./cmd/rlhost

# Runs of the real program with random swaps, kills, pauses, scalings and resumes, for MINUTES, a third of them with invariants. A run's
# seed is its test's name: RLHOST_CHAOS_SEED repeats it.
test-chaos: tools
	RLHOST_CHAOS=$$(($(MINUTES) - $(MINUTES) / 3)) $(TEST) -timeout $$(($(MINUTES) + 20))m -count 1 -v -run TestChaos ./cmd/rlhost
	RLHOST_CHAOS=$$(($(MINUTES) / 3)) $(TEST) -timeout $$(($(MINUTES) + 20))m -count 1 -v -tags invariants -run TestChaos ./cmd/rlhost

# EPISODES random episodes of each of 26 runs, played again and compared with what the run saw: 1,040 of them.
EPISODES ?= 40
test-replay:
	$(TEST) -count 1 ./pipeline/replay -replay.episodes $(EPISODES)

# Hosts of a run in virtual time: FAULTS of them, blocks and joins alike; then mistakes put into the code, all of which the
# simulations find. RLHOST_SEED=N repeats faults. Then command lines over several hosts, and four machines out of network namespaces, where this
# user may make them.
FAULTS ?= 200000
test-hosts:
	RLHOST_FAULTS=$(FAULTS) $(TEST) -count 1 -run TestFaults ./core/relay ./core/members
	RLHOST_LONG=1 $(TEST) -count 1 -run TestMistakes ./core/relay ./core/members
	$(TEST) -count 1 -run '$(HOSTS)' ./cmd/rlhost
	@if unshare --net true 2>/dev/null; then $(MAKE) demo-hosts; else echo 'examples/clusters/namespaces.sh is left out: network namespaces need root'; fi

# Four machines on this one, in network namespaces: one learns, three step its environments; one is cut off, one leaves and one is killed; then KILLS
# are killed and PARTITIONS cut off at random, while the run is changed. An hour: KILLS=200 PARTITIONS=50 nohup make demo-hosts >hosts.log 2>&1 &
demo-hosts: build
	examples/clusters/namespaces.sh

# Pages in a real browser, Debian's headless Chromium, which is installed where it is missing.
BROWSED = ./internal/testkit/browser ./pipeline/dash ./pipeline/page ./pipeline/play/web ./docs/site
test-browser: docs
	@./bench/browser.sh
	RLHOST_BROWSER=1 $(TEST) -count 1 -run '^TestBrowser' $(BROWSED)

# Modules that exhaust a compiler, given to a run of the real program; the cache of compiled modules, every byte of an entry flipped;
# components that mean harm, each through its life; one of each kind, and each bomb, swapped into a run that has to go on; calls of the host's functions
# in random order; native plugins that mean ill in synchronous runs.
test-hostile:
	RLHOST_HOSTILE=1 $(TEST) -count 1 -v -run 'TestHostile|TestCache' ./plugins/wasm
	RLHOST_HOSTILE=1 $(TEST) -count 1 -run TestHostile ./plugins/wasm/component
	$(GO) test -run '^$$' -fuzz '^FuzzImports$$' -fuzztime 20s ./plugins/wasm/component
	RLHOST_HOSTILE=1 $(TEST) -count 1 -run TestFault_HostilePlugin ./plugins/process/proxy
	RLHOST_HOSTILE=1 $(TEST) -count 1 -run TestHostile ./cmd/rlhost

# Three seeds of each task that has a bar in docs/results/learning.md, ten of brief tasks, and one of each probe, an entropy bonus alone over a million env steps, games of turns
# at all horizons, and a short self-play of Connect Four: under eight minutes on two cores.
test-learn: build tools
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check $(TASKS)
	$(GO) run ./bench/learn test
	RLHOST_LONG=$(LONG) $(TEST) -count 1 -run 'TestS20|TestS27' ./internal/probe
	rm -rf .cache/selfplay
	bin/rlhost train examples/pipelines/connectfour.toml --set run.dir=$(CURDIR)/.cache/selfplay --set run.stop.env_steps=1500000 --set run.evaluation.episodes=2
	$(GO) run ./bench/selfplay -dir .cache/selfplay -least 0.9 connectfour

# Ten seeds of each, three of each probe, and CartPole with scaled rewards: writes bench/learn/results and the tables of docs/results/learning.md. It goes on
# where it was interrupted; rm -r .cache/learn begins anew.
learn: build tools
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check $(TASKS)
	$(GO) run ./bench/learn train

# What needs PyTorch (5 GB), and rliable, TensorBoard and onnxruntime (1 GB), which peers installs first; and signal-slot's own tests, on ours.
test-peers: tools peers
	bench/python/signal_slot_tests.sh
	@python=$$(examples/plugins/pytorch-learner/prepare.sh) && set -x && \
	  $$python -m unittest discover -s examples/plugins/pytorch-learner && \
	  $$python -m unittest discover -s examples/plugins/pytorch-policy && \
	  RLHOST_TORCH=$$python $(TEST) -count 1 -run TestPeers ./cmd/rlhost
	RLHOST_TORCH=$$(examples/plugins/pytorch-learner/prepare.sh) $(TEST) -count 1 -run TestPeers_Torch ./pipeline/export
	RLHOST_PEERS=$(CURDIR)/.cache/peers/judge/bin/python $(TEST) -count 1 -run TestPeers ./pipeline/seeds ./pipeline/export ./plugins/runner ./sdk/python
	bench/objects/install.sh && $(TEST) -count 1 -run TestMigration ./bench/objects

peers:
	@bench/peers/install.sh sb3 judge

# The detector needs cgo; what lies in mapped memory it cannot see, so arenas use the heap there. Packages that start no goroutine are left out,
# as are compilers of modules, which take minutes in it and which sessions use, and tests of exact results, which synchronous runs have.
race:
	RLHOST_FAULTS=4000 CGO_ENABLED=1 $(TEST) -race -short -skip '^TestS[0-9]|Exact' ./core/... ./pipeline $(addprefix ./pipeline/,bench graph loops players runs seeds session) ./gpu/cuda/driver ./gpu/cuda/fake ./plugins/wasm/guest $(HOLDERS)

# Runs the AVX-512 kernels on an emulated processor, for machines without the instructions (Debian).
test-avx512:
	@./bench/emulate.sh

check: lint race

# Packages that have files of the build with invariants.
TAGGED = ./core/arena ./plugins/author ./plugins/wasm/component
lint: tools
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo 'run: make format'; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags invariants $(TAGGED)
	$(GO) run $(STATICCHECK) ./...
	$(GO) run $(STATICCHECK) -tags invariants $(TAGGED)
	$(GO) run $(ERRORLINT) ./...
	GOFLAGS=-tags=invariants $(GO) run $(ERRORLINT) $(TAGGED)
	$(GO) run $(REVIVE) -config internal/shape/revive.toml -set_exit_status ./...
	$(GO) mod tidy -diff
	cd sdk/python && ../../.venv/bin/python -m mypy --strict rlhost
	@$(GO) test -count 1 -v -run TestShape_TellsTheLargest ./internal/shape | grep '^ '

format:
	gofmt -w $$(git ls-files '*.go')

# Builds the committed guests anew.
plugins: tools
	$(GO) run ./examples/plugins/build

fuzz:
	@for package in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz'); do \
	    $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$package || exit 1; \
	  done; \
	done

bench: build
	$(GO) test -run '^$$' -bench . -benchmem ./...
	$(GO) run ./bench/swap pauses
	$(GO) run ./bench/swap many
	$(GO) run ./bench/swap throughput

# How long a save takes to be in a running training, by language.
bench-dev:
	./bench/dev.sh

# Installs the peers with pinned versions into an environment of their own and measures both sides in one run.
bench-peers: build
	./bench/peers/run.sh

# Archives of a release: programs without cgo for both architectures, and their checksums. The same sources make the same bytes.
dist:
	rm -rf dist
	for arch in amd64 arm64; do \
	  dir=dist/rlhost_linux_$$arch; mkdir -p $$dir; \
	  GOARCH=$$arch $(GO) build -trimpath -ldflags '-s -w' -o $$dir/ ./cmd/rlhost ./cmd/rlhost-cuda || exit 1; \
	  $(GO) run ./cmd/rlhost man >$$dir/rlhost.1 || exit 1; \
	  cp LICENSE README.md CHANGELOG.md cmd/rlhost/completion.*sh $$dir/; \
	  tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C dist -cf - rlhost_linux_$$arch | gzip -n > $$dir.tar.gz; \
	done
	[ $$(stat -c %s dist/rlhost_linux_amd64/rlhost) -le 48000000 ] || { echo 'rlhost for amd64 has more than 48 MB' >&2; exit 1; }
	cd dist && sha256sum *.tar.gz > SHA256SUMS

# The wheels of the package for Python, for both architectures.
wheel: tools
	@sdk/python/wheel.sh

# The package's own tests under each Python from 3.10 to 3.14 that is found: two minutes each.
test-pythons:
	@sdk/python/interpreters.sh

# The wheel of this machine in a fresh environment without a compiler: from pip install to a policy that plays.
test-wheel: tools
	@sdk/python/wheel.sh $$(uname -m)
	@sdk/python/fresh.sh

clean:
	rm -rf bin dist .venv .cache
