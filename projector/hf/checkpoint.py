"""The dtype a checkpoint stores most of its weights in, from the quantization_config of its config."""

from projector.errors import InvalidDescription
from projector.hf.fields import Config
from projector.specs.plan import Dtype

# quant_method (or, for compressed-tensors and ModelOpt, the format below) -> what a weight is stored in
METHODS: dict[str, Dtype] = {"mxfp4": "fp4", "fp8": "fp8", "fbgemm_fp8": "fp8"}
FORMATS: dict[str, Dtype] = {
    "float-quantized": "fp8",
    "int-quantized": "int8",
    "nvfp4-pack-quantized": "fp4",
    "nvfp4": "fp4",
    "fp8": "fp8",
}


def checkpoint_dtype(config: Config) -> Dtype | None:
    """The storage dtype a quantization_config states; None without one and for a format the projector cannot price.

    config: the parsed config.json. quant_method mxfp4 and fp8 name their dtype; compressed-tensors says it in
    `format`, ModelOpt in `quant_algo`. 4-bit integers (awq, gptq, pack-quantized) have no dtype here: None.
    InvalidDescription when quantization_config is no object.
    """
    stated = config.get("quantization_config")
    if stated is None:
        return None
    if not isinstance(stated, dict):
        raise InvalidDescription(f"config key quantization_config is {stated!r}, not an object")
    method = str(stated.get("quant_method", "")).lower()
    form = str(stated.get("format") or stated.get("quant_algo") or "").lower()
    return METHODS.get(method) or FORMATS.get(form)
