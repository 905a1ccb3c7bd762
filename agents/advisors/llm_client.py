"""One question to a language model through litellm: a deadline, a bounded number of retries, tokens and cost counted.

litellm takes seconds to import and looks up prices on the network unless told otherwise before its import, so it is
imported here alone, when first needed. It keeps tasks and connections on the event loop of its first call: all calls
run on one private loop in a thread of its own, which `close` ends cleanly.
"""

import asyncio
import atexit
import logging
import os
import threading
import warnings
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pydantic import SecretStr

from agents.advisors.protocol import AdvisorFailed
from agents.findings import LlmUsage

TRANSIENT_STATUS = frozenset({408, 409, 429, 500, 502, 503, 504})
# providers whose own price list holds although the address is the customer's
PRICED_AT_ANY_ADDRESS = ("azure/", "azure_ai/")
REASONS = {
    400: "the endpoint refused the request",
    401: "the endpoint refused the key",
    402: "the account at the endpoint has no credit",
    403: "the endpoint refused access",
    404: "the endpoint does not know the model or the address",
    408: "the endpoint timed out",
    413: "the question is too long for the endpoint",
    422: "the endpoint refused the request",
    429: "the endpoint limits the rate of requests",
}
Result = TypeVar("Result")


@dataclass(frozen=True)
class Reply:
    """What the model wrote, unread. truncated: it stopped at the limit on its length."""

    text: str
    truncated: bool
    usage: LlmUsage


class ModelCalls(Protocol):
    """Whatever answers a question as a model does: a model, a record of one, a recording around one."""

    model: str

    def ask(self, system: str, user: str, schema: dict[str, Any], *, timeout_s: float | None = None) -> Reply:
        """The reply to one question; AdvisorFailed where none came."""
        ...

    def close(self) -> None:
        """Give up what is held open."""
        ...


class ModelClient:
    """Asks one model, from any thread. Nothing is imported or started before the first question.

    model: a litellm provider string, `openai/gpt-5-mini`, `anthropic/...`, `hosted_vllm/...`.
    api_base: address of an OpenAI-compatible or other own endpoint; it is sent `api_key` alone, never a key that the
    environment holds for somebody else. Without it litellm knows the address, and may read the provider's own variable.
    timeout_s: of one question with all its retries. retries: further requests after a transient failure.
    """

    def __init__(
        self,
        model: str,
        *,
        api_base: str | None,
        api_key: SecretStr | None,
        timeout_s: float,
        retries: int,
        retry_wait_s: float,
        max_output_tokens: int,
    ) -> None:
        self.model = model
        self._api_base = api_base
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._retries = retries
        self._retry_wait_s = retry_wait_s
        self._max_output_tokens = max_output_tokens
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def ask(self, system: str, user: str, schema: dict[str, Any], *, timeout_s: float | None = None) -> Reply:
        """The model's reply to one question, constrained to the JSON schema where the provider can do that.

        timeout_s: of this question with all its retries; None: that of the client.

        AdvisorFailed, with what was used, when no reply came. The message repeats nothing the endpoint said.
        """
        litellm = _imported()
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        call = {
            "model": self.model,
            "api_base": self._api_base,
            "api_key": self._key(),
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "choice", "strict": True, "schema": schema},
            },
            "temperature": 0,
            "max_tokens": self._max_output_tokens,
            "timeout": limit_s,
            "drop_params": True,
            "num_retries": 0,
            "max_retries": 0,
        }
        return self._run(self._request(litellm, call, limit_s))

    def close(self) -> None:
        """End the loop with its connections; a later question starts another."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None:
            return
        atexit.unregister(self.close)
        asyncio.run_coroutine_threadsafe(_wind_down(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def _key(self) -> str | None:
        if self._api_key is not None:
            return self._api_key.get_secret_value()
        return "none" if self._api_base is not None else None

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="shardwise-llm", daemon=True)
                self._thread.start()
                atexit.register(self.close)  # an ending process leaves no task behind
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except CancelledError as error:
            raise AdvisorFailed("the advisor was closed before an answer came") from error

    async def _request(self, litellm: Any, call: dict[str, Any], limit_s: float) -> Reply:
        sent = 0
        try:
            async with asyncio.timeout(limit_s):
                while True:
                    sent += 1
                    try:
                        response = await litellm.acompletion(**call)
                        return self._reply(litellm, response, sent)
                    except Exception as error:
                        if sent > self._retries or _status(error) not in TRANSIENT_STATUS or _is_too_long(error):
                            raise
                    await asyncio.sleep(self._retry_wait_s * 2 ** (sent - 1))
        except Exception as error:  # whatever a third party raises, the rules can still answer
            reason = _reason(error, limit_s)
            tries = f" after {sent} requests" if sent > 1 else ""
            usage = LlmUsage(model=self.model, requests=sent)
            raise AdvisorFailed(f"{reason}{tries}", usage=usage) from error

    def _reply(self, litellm: Any, response: Any, sent: int) -> Reply:
        choice, used = response.choices[0], getattr(response, "usage", None)
        usage = LlmUsage(
            model=self.model,
            requests=sent,
            # endpoints that do not count say 0 or nothing
            prompt_tokens=getattr(used, "prompt_tokens", None) or None,
            completion_tokens=getattr(used, "completion_tokens", None) or None,
            cost_usd=self._cost_usd(litellm, response) if used is not None and used.prompt_tokens else None,
        )
        return Reply(choice.message.content or "", choice.finish_reason == "length", usage)

    def _cost_usd(self, litellm: Any, response: Any) -> float | None:
        """List price in litellm's bundled table. None: no entry, or an own endpoint, whose price no table knows."""
        if self._api_base is not None and not self.model.startswith(PRICED_AT_ANY_ADDRESS):
            return None
        try:
            cost = litellm.completion_cost(completion_response=response, model=self.model)
        except Exception:  # its own error type where a model has no price, others where an entry is incomplete
            return None
        return float(cost) if cost else None


_import_lock = threading.Lock()


def _imported() -> Any:
    """litellm, quiet and offline but for the call itself."""
    with _import_lock:
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of third parties, while they are imported
            try:
                import litellm
            except ImportError as error:
                raise AdvisorFailed("litellm cannot be imported here") from error
        # pydantic on litellm's own types, which it builds as late as in its first call
        warnings.filterwarnings("ignore", message=r".*using the `ReadOnly` qualifier", category=UserWarning)
        litellm.telemetry = False
        litellm.suppress_debug_info = True
        # httpx closes its connections with the loop; the aiohttp transport leaves sessions behind
        litellm.disable_aiohttp_transport = True
        from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

        from agents.advisors.llm_transport import bounded_transport

        # the one place where every provider's transport is made; litellm has no setting for a limit on bytes
        AsyncHTTPHandler.create_async_transport = staticmethod(bounded_transport)
        for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        return litellm


async def _wind_down() -> None:
    """Close litellm's connections of this loop and end the tasks it left running on it."""
    import litellm

    await litellm.close_litellm_async_clients()
    litellm.in_memory_llm_clients_cache.flush_cache()
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def _status(error: Exception) -> int | None:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _is_too_long(error: BaseException | None) -> bool:
    """Whether an error was caused by an answer past the limit on bytes."""
    while error is not None:
        if type(error).__name__ == "ReplyTooLong":
            return True
        error = error.__cause__ or error.__context__
    return False


def _reason(error: Exception, timeout_s: float) -> str:
    """Why there is no reply, in our words: an endpoint's own message is foreign text and may hold part of a key."""
    if _is_too_long(error):
        return "the endpoint sent more than any answer needs"
    if isinstance(error, TimeoutError) or type(error).__name__ in ("Timeout", "APITimeoutError"):
        return f"no answer within {timeout_s:.3g} s"
    if type(error).__name__ == "ContextWindowExceededError":
        return "the question is too long for the model"
    status = _status(error)
    if status in REASONS:
        return REASONS[status]
    if status is not None and status >= 500:
        return f"the endpoint failed or could not be reached (status {status})"
    return f"the call failed ({type(error).__name__})"
