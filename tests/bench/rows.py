"""The workloads of the comparison: one row of the table each."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    model: str           # a key of models.py
    kind: str            # prefill, decode, streams or arrival, as llm-bench --workload; busy: decode beside a process that
                         # takes a core; cold: from the start of a process to its first token
    prompt: int          # prompt tokens of each stream
    tokens: int = 2      # generated tokens of each stream
    streams: int = 1
    kv: str = "f16"
    late: int = 0        # arrival: tokens of the prompt that comes in between
    peer_batch: int = 0  # arrival: the peer's batch size; 0: the best one
    peer_tokens: int = 0  # busy: the peer's generated tokens, since it may be a hundred times slower; 0: `tokens`
    packed: bool = False  # cold: ours opens a pack of the model
    goal: float = 0.0    # ratio to reach; busy: share of the quiet rate that we keep; 0: none
    quick: bool = False

    @property
    def lower_is_better(self):
        return self.kind in ("arrival", "cold")

    @property
    def unit(self):
        return "s" if self.lower_is_better else "tok/s"


COLD_PROMPT = 32  # tokens: short, so that opening the model is most of a cold start


def _synthetic(kind, prefill_goal, decode_goal):
    model, label = f"synthetic-{kind}", f"Llama 1B shape {kind.upper()}"
    return [Row(f"{label}, prefill 256", model, "prefill", 256, goal=prefill_goal),
            Row(f"{label}, decode, one stream", model, "decode", 32, 64, goal=decode_goal)]


def _cold(label, model):
    return [Row(f"{label}, cold start, from GGUF", model, "cold", COLD_PROMPT),
            Row(f"{label}, cold start, from a pack", model, "cold", COLD_PROMPT, packed=True)]


ROWS = [
    Row("SmolLM2-135M Q4_1, prefill 512", "smollm2", "prefill", 512, goal=3.5, quick=True),
    Row("SmolLM2-135M Q4_1, decode, one stream", "smollm2", "decode", 32, 128, goal=1.7, quick=True),
    Row("SmolLM2-135M Q4_1, decode, 32 streams, 128-token prompts", "smollm2", "streams", 128, 64, 32, goal=4.0,
        quick=True),
    Row("SmolLM2-135M Q4_1, decode at 7,500 tokens, KV f16", "smollm2", "decode", 7500, 64, goal=1.5),
    Row("SmolLM2-135M Q4_1, decode at 7,500 tokens, KV int8", "smollm2", "decode", 7500, 64, kv="int8", goal=1.5),
    Row("SmolLM2-135M Q4_1, decode at 7,500 tokens, KV fp8", "smollm2", "decode", 7500, 64, kv="fp8", goal=1.5),
    Row("Gemma-3-270M Q4_K_M, prefill 512", "gemma3", "prefill", 512, goal=2.2),
    Row("Gemma-3-270M Q4_K_M, decode, one stream", "gemma3", "decode", 32, 128, goal=1.3),
    *_synthetic("q4_0", 1.9, 1.1),
    Row("Llama 1B shape Q4_0, decode, 32 streams, 32-token prompts", "synthetic-q4_0", "streams", 32, 32, 32, goal=2.0),
    *_synthetic("q8_0", 2.2, 1.05),
    *_synthetic("f16", 1.05, 1.0),
    *_synthetic("bf16", 1.05, 1.0),
    Row("SmolLM2-135M Q4_1, 4 streams, a 3,000-token prompt arrives, peer's default batch: worst gap", "smollm2",
        "arrival", 128, 64, 4, late=3000, peer_batch=2048, goal=0.1),
    Row("SmolLM2-135M Q4_1, 4 streams, a 3,000-token prompt arrives, peer's best batch: worst gap", "smollm2",
        "arrival", 128, 64, 4, late=3000),
    Row("SmolLM2-135M Q4_1, decode beside a busy process", "smollm2", "busy", 0, 384, peer_tokens=96, goal=0.4),
    Row("Llama 1B shape Q4_0, decode beside a busy process", "synthetic-q4_0", "busy", 0, 96, peer_tokens=32, goal=0.4),
    *_cold("SmolLM2-135M Q4_1", "smollm2"),
    *_cold("Gemma-3-270M Q4_K_M", "gemma3"),
    *_cold("Llama 1B shape Q4_0", "synthetic-q4_0"),
]
