"""Model identifiers as arguments: only what looks like one is ever put into a command."""

import re

from agents.exporters.account import Account
from agents.wording import quoted
from projector.specs.architecture import ModelArchitecture

# Hugging Face: owner/name or name, of letters, digits, '.', '_' and '-', starting with a letter or digit
_HF_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?", re.ASCII)


def model_identifier(account: Account, architecture: ModelArchitecture | None) -> str:
    """The model's Hugging Face identifier, or a placeholder; which of the two, and why, is said in the notes."""
    if architecture is None:
        account.note("The model is unknown: its identifier is left for you to fill in.")
    elif architecture.hf_id is None:
        account.note(f"The catalogue has no Hugging Face identifier for {quoted(architecture.name)}: fill it in.")
    elif not _HF_ID.fullmatch(architecture.hf_id):
        account.note(f"{quoted(architecture.hf_id)!r} is no Hugging Face identifier: fill in the right one.")
    else:
        account.note(f"The model identifier {architecture.hf_id} comes from the catalogue entry of the model.")
        return architecture.hf_id
    return account.fill("HF_MODEL_ID", "identifier or local path of the model")
