//! How an engine is opened.
use crate::call::{duration_ns, lend, switch};
use crate::host::{Host, HostHooks};
use crate::log::{log_fields, LogLevel, LogSink};
use inlay_sys as sys;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What keys and values are kept as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum KvType {
    /// f16.
    Default = sys::LLM_KV_DEFAULT,
    /// 4 bytes.
    F32 = sys::LLM_KV_F32,
    /// 2 bytes.
    F16 = sys::LLM_KV_F16,
    /// 2 bytes.
    Bf16 = sys::LLM_KV_BF16,
    /// 1 byte and a scale per token and head.
    Fp8E4m3 = sys::LLM_KV_FP8_E4M3,
    /// 1 byte and a scale per token and head.
    Int8 = sys::LLM_KV_INT8,
}

/// Who is served first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Policy {
    /// Who came first.
    Fcfs = sys::LLM_POLICY_FCFS,
    /// Who has the lowest [`Request::priority`](crate::Request::priority).
    Priority = sys::LLM_POLICY_PRIORITY,
    /// Who has the earliest [`Request::first_token_deadline`](crate::Request::first_token_deadline).
    Deadline = sys::LLM_POLICY_DEADLINE,
}

/// How much room must be free before a request starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Admission {
    /// For its prompt and its expected output, beside all that run.
    Predict = sys::LLM_ADMISSION_PREDICT,
    /// For its prompt and the longest output that it may have.
    Reserve = sys::LLM_ADMISSION_RESERVE,
    /// For its prompt and little more.
    Greedy = sys::LLM_ADMISSION_GREEDY,
}

/// Whose threads run the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Drive {
    /// The engine's own.
    Threads = sys::LLM_DRIVE_THREADS,
    /// Those that call [`Engine::step`](crate::Engine::step), or wait for a completion.
    Manual = sys::LLM_DRIVE_MANUAL,
}

/// What a step takes on [`Device::Sim`](crate::Device::Sim): the sum of these, each times its number, as
/// [`Metrics`](crate::Metrics) tell it of a real engine (`cost_*`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SimCosts {
    /// ns of each step.
    pub fixed_ns: u64,
    /// ns of each sequence that decodes.
    pub decode_row_ns: u64,
    /// ns of each token of a prompt.
    pub prefill_token_ns: u64,
    /// ps of each key that a decode sees.
    pub decode_key_ps: u64,
    /// ps of each key that a token of a prompt sees.
    pub prefill_pair_ps: u64,
}

/// A builder; what is not set is the library's default.
#[derive(Clone, Default)]
pub struct EngineOptions {
    fields: Fields,
    spill_folder: Option<PathBuf>,
    pub(crate) log: Option<Arc<LogSink>>,
    pub(crate) host: Option<Arc<HostHooks>>,
    sim_costs: Option<Arc<sys::llm_sim_costs>>,
}

#[derive(Clone, Default)]
struct Fields(sys::llm_engine_options);

// SAFETY: its pointers are NULL until a call fills in a copy.
unsafe impl Send for Fields {}
// SAFETY: as above.
unsafe impl Sync for Fields {}

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $value:expr;)*) => {$(
        $(#[$doc])*
        pub fn $name(mut self, $name: $type) -> Self {
            self.fields.0.$name = $value;
            self
        }
    )*};
}

impl EngineOptions {
    /// The library's defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wished between two tokens of a request that states no gap of its own.
    pub fn token_gap_target(mut self, target: Duration) -> Self {
        self.fields.0.token_gap_target_ns = duration_ns(target).max(1);
        self
    }

    /// What steps take, for a model that was opened with [`Device::Sim`](crate::Device::Sim).
    pub fn sim_costs(mut self, costs: SimCosts) -> Self {
        self.sim_costs = Some(Arc::new(sys::llm_sim_costs {
            fixed_ns: costs.fixed_ns,
            decode_row_ns: costs.decode_row_ns,
            prefill_token_ns: costs.prefill_token_ns,
            decode_key_ps: costs.decode_key_ps,
            prefill_pair_ps: costs.prefill_pair_ps,
            ..Default::default()
        }));
        self
    }

    fields! {
        /// Whether requests that will miss their deadlines are refused, or given up while they wait; default: yes.
        refuse_late: bool = switch(refuse_late);
        /// Busy threads of a step; default: the cores that this process may use.
        num_threads: u32 = num_threads;
        /// What keys and values are kept as.
        kv_dtype: KvType = kv_dtype as u32;
        /// Tokens of a block: a power of two, at least 16.
        block_size: u32 = block_size;
        /// Tokens whose keys and values fit.
        kv_tokens: u64 = kv_tokens;
        /// Prompt and output of one request.
        max_context_tokens: u32 = max_context_tokens;
        /// Requests that run at once.
        max_sequences: u32 = max_sequences;
        /// Tokens of one step.
        max_step_tokens: u32 = max_step_tokens;
        /// Who is served first.
        policy: Policy = policy as u32;
        /// How much room must be free before a request starts.
        admission: Admission = admission as u32;
        /// Requests that wait and run.
        max_queued_requests: u32 = max_queued_requests;
        /// Whether prompts share what they begin with; default: yes.
        prefix_cache: bool = switch(prefix_cache);
        /// Prompt tokens of requests that wait and run.
        max_queued_tokens: u64 = max_queued_tokens;
        /// The most that keys, values and workspace may take.
        max_memory_bytes: u64 = max_memory_bytes;
        /// Undelivered events of one request, beyond which it pauses.
        max_pending_bytes: u64 = max_pending_bytes;
        /// The most bytes that the file in [`spill_folder`](Self::spill_folder) takes.
        spill_bytes: u64 = spill_bytes;
        /// Microseconds that requests which come to an idle engine wait at most for others to share their first step.
        hold_us: u32 = hold_us;
        /// Requests of [`long_request_tokens`](Self::long_request_tokens) that run at once.
        max_long_requests: u32 = max_long_requests;
        /// Prompt and output so far that make a request a long one.
        long_request_tokens: u64 = long_request_tokens;
        /// Whose threads run the steps.
        drive: Drive = drive as u32;
        /// Microseconds that idle workers poll before they park.
        spin_us: u32 = spin_us;
        /// For CUDA: the same bits whatever else is in the batch. The CPU always does that.
        batch_invariant: bool = switch(batch_invariant);
        /// For CUDA: steps of decodes are launched as CUDA graphs; default: yes.
        graphs: bool = switch(graphs);
        /// For CUDA: the GPU begins steps of decodes before the tokens of the step before are looked
        /// at; default: yes.
        run_ahead: bool = switch(run_ahead);
    }

    /// Where log lines of the engine go, from any thread; default: nowhere. A panic in it is swallowed.
    pub fn log(mut self, log: impl Fn(LogLevel, &str) + Send + Sync + 'static) -> Self {
        self.log = Some(LogSink::new(log));
        self
    }

    /// Where evicted blocks of the prefix cache go to a file, to be read back instead of computed; default: nowhere.
    pub fn spill_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.spill_folder = Some(folder.into());
        self
    }

    /// What the host lends, as long as the engine lives.
    pub fn host(mut self, host: Host) -> Self {
        self.host = Some(HostHooks::new(host));
        self
    }

    pub(crate) fn is_manual(&self) -> bool {
        self.fields.0.drive == sys::LLM_DRIVE_MANUAL
    }

    /// The C struct. The log must live as long as what is opened with it.
    pub(crate) fn fields(&self) -> sys::llm_engine_options {
        let (log, log_user_data) = log_fields(self.log.as_ref());
        let host = self.host.as_ref().map_or(std::ptr::null(), |host| host.fields());
        let folder = self.spill_folder.as_ref().map_or(&[][..], |folder| folder.as_os_str().as_bytes());
        let sim_costs = self.sim_costs.as_deref().map_or(std::ptr::null(), |costs| costs as *const _);
        sys::llm_engine_options { log, log_user_data, host, sim_costs, spill_folder: lend(folder), ..self.fields.0 }
    }
}
