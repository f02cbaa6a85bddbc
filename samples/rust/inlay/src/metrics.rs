//! Counters and histograms of an engine.
use crate::call::slice;
use inlay_sys as sys;

/// One consistent copy of every counter; `llm.h` says what each counts.
pub type Metrics = sys::llm_metrics_snapshot;

/// Which histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
#[non_exhaustive]
pub enum HistogramKind {
    /// Tokens of a step.
    StepTokens = sys::LLM_HISTOGRAM_STEP_TOKENS,
    /// Sequences of a step.
    StepSequences = sys::LLM_HISTOGRAM_STEP_SEQUENCES,
    /// ns, submit to first scheduled.
    QueueTime = sys::LLM_HISTOGRAM_QUEUE_TIME,
    /// ns, submit to first token.
    Ttft = sys::LLM_HISTOGRAM_TTFT,
    /// ns, between two tokens of a request.
    TokenGap = sys::LLM_HISTOGRAM_TOKEN_GAP,
    /// ns, submit to end.
    CompletionTime = sys::LLM_HISTOGRAM_COMPLETION_TIME,
    /// ns, first scheduled to first token.
    PrefillTime = sys::LLM_HISTOGRAM_PREFILL_TIME,
    /// ns, first token to end.
    DecodeTime = sys::LLM_HISTOGRAM_DECODE_TIME,
    /// Of a request that ended.
    PromptTokens = sys::LLM_HISTOGRAM_PROMPT_TOKENS,
    /// Of a request that ended.
    GeneratedTokens = sys::LLM_HISTOGRAM_GENERATED_TOKENS,
    /// Computed tokens that a request left findable in the prefix cache.
    RetainedTokens = sys::LLM_HISTOGRAM_RETAINED_TOKENS,
    /// Computed tokens of a preempted request.
    VictimTokens = sys::LLM_HISTOGRAM_VICTIM_TOKENS,
}

/// A histogram: bucket `i` counts values above `edges[i - 1]` and up to `edges[i]`; the last has no upper edge.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Histogram {
    /// Rising; one less than the buckets.
    pub edges: Vec<u64>,
    /// Counts.
    pub buckets: Vec<u64>,
    /// Their sum.
    pub count: u64,
    /// Sum of the values.
    pub sum: u64,
}

impl Histogram {
    pub(crate) fn copy(histogram: &sys::llm_histogram) -> Histogram {
        let num_buckets = (histogram.num_buckets as usize).min(histogram.buckets.len());
        // SAFETY: [num_buckets - 1], as long as the library is loaded.
        let edges = unsafe { slice(histogram.edges, num_buckets.saturating_sub(1)) };
        Histogram {
            edges: edges.to_vec(),
            buckets: histogram.buckets[..num_buckets].to_vec(),
            count: histogram.count,
            sum: histogram.sum,
        }
    }
}
