"""vLLM: a serving plan as the command of one engine, `vllm serve`.

Argument definitions: vllm/engine/arg_utils.py and vllm/config, with their validators;
tests/data/exporters/vllm_arguments.json lists the ones used here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agents.exporters.account import Account, Closed
from agents.exporters.exporter import UNKNOWN, ConfigFile, Job, Known, LaunchConfig, ParsedLaunch, Setting, spread
from agents.exporters.identifiers import model_identifier
from agents.exporters.refusal import cannot_launch
from agents.exporters.render import command_arguments
from agents.exporters.vllm_engine import engine_settings
from agents.exporters.vllm_formats import choose_formats
from agents.exporters.vllm_parse import parse_vllm
from projector.rules.serving_rules import TRAINING_FIELDS
from projector.specs.plan import Phase

START = ("vllm", "serve")
FILE = "vllm.yaml"


@dataclass(frozen=True)
class Vllm:
    """The exporter of vLLM."""

    framework: str = "vllm"
    title: str = "vLLM"
    version: str = "0.33.0"
    phases: tuple[Phase, ...] = ("serving",)

    def export(self, job: Job) -> LaunchConfig:
        """The command of one engine, started once a replica; nothing to launch for training plans."""
        if job.plan.phase not in self.phases:
            return cannot_launch(self, job, f"{self.title} serves, this is a {job.plan.phase} plan")
        account = Account(job.plan)
        account.imply("phase", "vllm serve serves")
        _layout(account, job)
        _experts(account, job)
        _nodes(account, job)
        choose_formats(account, job)
        _scheduler(account, job)
        _graphs(account, job)
        account.foreign(TRAINING_FIELDS, "training")
        engine_settings(account, job)
        model = model_identifier(account, job.architecture)
        return self._config(job, model, account.close())

    def _config(self, job: Job, model: str, closed: Closed) -> LaunchConfig:
        in_file = tuple(
            Setting(name=setting.name.removeprefix("--"), value=setting.value)
            for setting in (Setting(name="model", value=model), *closed.settings)
        )
        return LaunchConfig(
            framework=self.framework,
            title=self.title,
            version=self.version,
            devices=job.plan.devices // job.plan.cp,
            copies=job.plan.replicas,
            command=(*START, model, *command_arguments(closed.settings)),
            config_file=ConfigFile(name=FILE, settings=in_file, command=(*START, "--config", FILE)),
            **dict(closed),
        )

    def parse(self, arguments: Sequence[str], known: Known = UNKNOWN) -> ParsedLaunch:
        """The plan of a `vllm serve` command; without known devices it is one engine."""
        return parse_vllm(arguments, known)


def _layout(account: Account, job: Job) -> None:
    plan = job.plan
    account.say("tp", ("--tensor-parallel-size", plan.tp))
    account.say("pp", ("--pipeline-parallel-size", plan.pp))
    if plan.attention_dp > 1:
        account.say("attention_dp", ("--data-parallel-size", plan.attention_dp))
        if job.moe is False:
            account.note("Of a dense model, data-parallel ranks are independent engines behind one address.")
    else:
        account.imply("attention_dp", "one data-parallel rank is the default")
    if plan.replicas > 1:
        account.note(f"Start {plan.replicas} engines and spread the requests over them evenly.")
    account.imply("dp", "engines times data-parallel ranks of one")
    if plan.cp == 1:
        account.imply("cp", "no context parallelism is the default")
    else:
        account.refuse(
            "cp",
            "--prefill-context-parallel-size splits prefill only, which is not what the plan's cp means",
            instead=f"1, leaving {plan.devices - plan.devices // plan.cp} devices idle",
        )


def _experts(account: Account, job: Job) -> None:
    """Expert layers take all ranks of the engine's stage: whole experts (flag) or slices of each (no flag)."""
    plan = job.plan
    ranks = plan.attention_dp * plan.tp
    if job.moe is False:
        account.no_experts()
    elif ranks == 1:
        for field in ("ep", "etp"):
            if getattr(plan, field) == 1:
                account.imply(field, "one rank holds all experts")
            else:
                account.refuse(field, "one rank holds all experts", instead="1")
    elif plan.ep > 1:
        _spread_experts(account, ranks)
    elif job.moe is None:
        account.imply("ep", "off is the default")
        account.imply("etp", "the model is unknown: if it has experts, they are sliced over all ranks")
    else:
        account.imply("ep", "off is the default")
        _sliced_experts(account, job, ranks)


def _spread_experts(account: Account, ranks: int) -> None:
    plan = account.plan
    if plan.ep == ranks:
        account.say("ep", ("--enable-expert-parallel", None), note="over data-parallel times tensor-parallel ranks")
    else:
        account.add("--enable-expert-parallel")
        account.refuse("ep", "expert parallelism spans all ranks of the engine", instead=str(ranks))
    if plan.etp == 1:
        account.imply("etp", "with expert parallelism each expert is whole")
    else:
        account.refuse("etp", "with expert parallelism each expert is whole", instead="1")


def _sliced_experts(account: Account, job: Job, ranks: int) -> None:
    reason = "without expert parallelism experts are sliced over data-parallel times tensor-parallel ranks"
    if job.architecture is None:
        account.refuse("etp", f"{reason}, and nothing in the arguments says that the model has any", instead=str(ranks))
    elif account.plan.etp == ranks:
        account.imply("etp", reason)
    else:
        account.refuse("etp", reason, instead=str(ranks))


def _nodes(account: Account, job: Job) -> None:
    """An engine of several hosts needs to know their number and its place among them."""
    plan, per_node = job.plan, job.devices_per_node
    engine = plan.attention_dp * plan.tp * plan.pp
    if per_node is None:
        account.note(f"The chip is unknown: if a host has fewer than {engine} devices, add --nnodes and --node-rank.")
        return
    nodes, each = spread(engine, per_node)
    if nodes == 1:
        return
    account.add("--nnodes", nodes)
    account.add("--node-rank", account.fill("NODE_RANK", "0 on the first host of an engine, counting up"))
    account.add("--master-addr", account.fill("MASTER_ADDRESS", "name or address of the engine's first host"))
    account.note(
        f"Run the command on all {nodes} hosts of an engine, {each} devices each, with --headless on all but the first."
    )


def _scheduler(account: Account, job: Job) -> None:
    """Sequences and tokens a step; both count for one data-parallel rank."""
    plan = job.plan
    a_rank, left = divmod(plan.max_num_seqs, plan.attention_dp)
    if left:
        a_rank += 1
        account.add("--max-num-seqs", a_rank)
        account.refuse(
            "max_num_seqs",
            f"the limit is one of each of the {plan.attention_dp} data-parallel ranks",
            instead=str(a_rank * plan.attention_dp),
        )
    else:
        account.say("max_num_seqs", ("--max-num-seqs", a_rank), note="of one data-parallel rank")
    if plan.chunked_prefill_tokens >= a_rank:
        account.say(
            "chunked_prefill_tokens",
            ("--enable-chunked-prefill", None),
            ("--max-num-batched-tokens", plan.chunked_prefill_tokens),
            note="tokens of a step on one data-parallel rank, those being decoded included",
        )
    elif plan.chunked_prefill_tokens:
        account.add("--enable-chunked-prefill")
        account.add("--max-num-batched-tokens", a_rank)
        account.refuse("chunked_prefill_tokens", "a step has to hold max_num_seqs tokens", instead=str(a_rank))
    else:
        _whole_prompts(account, job, a_rank)


def _whole_prompts(account: Account, job: Job, a_rank: int) -> None:
    """A step has to hold the longest request; its length comes from the workload or is left to the user."""
    load = job.workload
    account.note("This release warns that it does not officially support whole-prompt prefill.")
    if load is not None and load.input_len is not None and load.output_len is not None:
        longest = max(load.input_len + load.output_len, a_rank)
        account.note(f"Requests longer than {longest} tokens are refused; raise both limits if there are any.")
        limit: int | str = longest
    else:
        limit = account.fill("MAX_MODEL_LEN", "tokens of the longest request, prompt and output, at least max-num-seqs")
    account.say(
        "chunked_prefill_tokens",
        ("--disable-chunked-prefill", None),
        ("--max-model-len", limit),
        ("--max-num-batched-tokens", limit),
    )


def _graphs(account: Account, job: Job) -> None:
    if account.plan.cuda_graphs:
        account.imply("cuda_graphs", "captured by default")
    else:
        account.say("cuda_graphs", ("--enforce-eager", None), note="switches torch.compile off as well")
    if job.hardware is not None and job.hardware.kind != "gpu":
        account.note(
            f"On {job.hardware.id} vLLM runs through a plugin; these arguments were checked in vLLM itself only."
        )


EXPORTER = Vllm()
