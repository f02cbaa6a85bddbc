//! What one request took.
use inlay_sys as sys;

/// Counts and times of a request, or of one choice of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RequestStats {
    /// Of the prompt.
    pub prompt_tokens: i32,
    /// Those of the prompt whose keys and values came from the prefix cache, or from another choice.
    pub cached_tokens: i32,
    /// Of the output.
    pub generated_tokens: i32,
    /// How often it had to make room.
    pub preemptions: i32,
    /// What that cost.
    pub recomputed_tokens: i64,
    /// Submit to first scheduled.
    pub queue_ns: i64,
    /// Submit to first token; None: none came.
    pub ttft_ns: Option<i64>,
    /// Submit to finish: queue, prefill, stall, decode and deliver together.
    pub total_ns: i64,
    /// Inside its steps, up to the first token.
    pub prefill_ns: i64,
    /// In no step, after its first.
    pub stall_ns: i64,
    /// Inside its steps, from the first token on.
    pub decode_ns: i64,
    /// From the end of its last step until its last event left.
    pub deliver_ns: i64,
    /// Between two steps that gave it tokens, of any of its choices.
    pub longest_gap_ns: i64,
    /// The one used.
    pub seed: u64,
}

impl RequestStats {
    /// # Safety
    /// NULL, or valid for as many bytes as its struct_size says.
    pub(crate) unsafe fn copy(stats: *const sys::llm_request_stats) -> RequestStats {
        if stats.is_null() {
            return RequestStats::default();
        }
        // SAFETY: integers are valid when zero; no more is read than is there, also of an older library's struct.
        let stats = unsafe {
            let mut copy: sys::llm_request_stats = std::mem::zeroed();
            let size = (stats.cast::<u32>().read() as usize).min(std::mem::size_of_val(&copy));
            let to: *mut sys::llm_request_stats = &mut copy;
            std::ptr::copy_nonoverlapping(stats.cast::<u8>(), to.cast::<u8>(), size);
            copy
        };
        RequestStats {
            prompt_tokens: stats.prompt_tokens,
            cached_tokens: stats.cached_tokens,
            generated_tokens: stats.generated_tokens,
            preemptions: stats.preemptions,
            recomputed_tokens: stats.recomputed_tokens,
            queue_ns: stats.queue_ns,
            ttft_ns: Some(stats.ttft_ns).filter(|&ns| ns >= 0),
            total_ns: stats.total_ns,
            prefill_ns: stats.prefill_ns,
            stall_ns: stats.stall_ns,
            decode_ns: stats.decode_ns,
            deliver_ns: stats.deliver_ns,
            longest_gap_ns: stats.longest_gap_ns,
            seed: stats.seed,
        }
    }
}
