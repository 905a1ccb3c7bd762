"""Which of MaxText's model configurations a model is, and its sequence length."""

from agents.exporters.account import Account
from agents.exporters.exporter import Job
from projector.catalog import architectures
from projector.specs.architecture import ModelArchitecture

# name in the catalogue -> configuration under src/maxtext/configs/models; only those of the same shape
MODEL_NAMES = {
    "deepseek-v2": "deepseek2-236b",
    "deepseek-v2-lite": "deepseek2-16b",
    "deepseek-v3": "deepseek3-671b",
    "gemma-2b": "gemma-2b",
    "gemma-3-12b": "gemma3-12b",
    "gemma-3-27b": "gemma3-27b",
    "gemma-3-4b": "gemma3-4b",
    "gemma-7b": "gemma-7b",
    "gpt-oss-120b": "gpt-oss-120b",
    "gpt-oss-20b": "gpt-oss-20b",
    "gpt3-175b": "gpt3-175b",
    "kimi-k2": "kimi-k2-1t",
    "llama-2-13b": "llama2-13b",
    "llama-2-70b": "llama2-70b",
    "llama-2-7b": "llama2-7b",
    "llama-3-70b": "llama3-70b",
    "llama-3-8b": "llama3-8b",
    "llama-3.1-405b": "llama3.1-405b",
    "llama-3.1-70b": "llama3.1-70b",
    "llama-3.1-8b": "llama3.1-8b",
    "llama-3.3-70b": "llama3.3-70b",
    "llama-4-maverick": "llama4-17b-128e",
    "llama-4-scout": "llama4-17b-16e",
    "mistral-7b": "mistral-7b",
    "mixtral-8x7b": "mixtral-8x7b",
    "olmo-3-32b": "olmo3-32b",
    "olmo-3-7b": "olmo3-7b",
    "qwen2.5-1.5b": "qwen2.5-1.5b",
    "qwen2.5-14b": "qwen2.5-14b",
    "qwen2.5-7b": "qwen2.5-7b",
    "qwen3-0.6b": "qwen3-0.6b",
    "qwen3-1.7b": "qwen3-1.7b",
    "qwen3-14b": "qwen3-14b",
    "qwen3-235b-a22b": "qwen3-235b-a22b",
    "qwen3-30b-a3b": "qwen3-30b-a3b",
    "qwen3-32b": "qwen3-32b",
    "qwen3-4b": "qwen3-4b",
    "qwen3-8b": "qwen3-8b",
    "qwen3-coder-480b-a35b": "qwen3-480b-a35b",
}

OPEN = (
    "Left to you: run_name, base_output_directory, data set, tokenizer, steps, learning rate. "
    "MaxText keeps weights in float32 unless weight_dtype says otherwise."
)


def describe_model(account: Account, job: Job) -> None:
    """model_name and max_target_length, or placeholders, and what is left to the user."""
    name = None if job.architecture is None else model_name(job.architecture)
    if name is None:
        account.add("model_name", account.fill("MODEL_NAME", "one of the names under src/maxtext/configs/models"))
        account.note("No MaxText configuration is known to be this model: name one, or set the base_* sizes yourself.")
    else:
        account.add("model_name", name)
        account.note(f"model_name {name} is MaxText's own configuration, of the same shape as the catalogue's model.")
    length = None if job.workload is None else job.workload.seq_len
    account.add("max_target_length", account.fill("SEQ_LENGTH", "tokens a sequence") if length is None else length)
    account.note(OPEN)
    if job.documents_note is not None:
        account.note(job.documents_note)


def model_name(architecture: ModelArchitecture) -> str | None:
    """MaxText's configuration of this model, None where none is known to be it.

    A model that only shares the name of a catalogue entry, with other numbers, has none.
    """
    name = MODEL_NAMES.get(architecture.name)
    if name is None or architecture not in architectures():
        return None
    return name
