//! How a model is opened.
use crate::call::{lend, switch, Caught};
use crate::host::{Host, HostHooks};
use crate::log::{log_fields, LogLevel, LogSink};
use inlay_sys as sys;
use std::ops::ControlFlow;
use std::os::raw::c_void;
use std::sync::Arc;

/// Bounds on what an untrusted model file may claim, checked before memory is taken. 0: the default.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// All that comes before the tensors' data.
    pub max_header_bytes: u64,
    /// Tensors of the file.
    pub max_tensors: u64,
    /// Metadata entries of the file.
    pub max_metadata_entries: u64,
    /// Elements of one metadata array.
    pub max_array_elements: u64,
    /// Bytes of one metadata string.
    pub max_string_bytes: u64,
    /// Of the chat template, which is left out, with a warning, beyond it.
    pub max_template_bytes: u64,
}

/// What computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Device {
    /// The GPU where there is one that the library can use, else the CPU.
    Default = sys::LLM_DEVICE_DEFAULT,
    /// The CPU.
    Cpu = sys::LLM_DEVICE_CPU,
    /// An NVIDIA GPU.
    Cuda = sys::LLM_DEVICE_CUDA,
    /// A simulation.
    Sim = sys::LLM_DEVICE_SIM,
}

/// What F32, F16 and BF16 weights become when a model opens; what is in low bits already stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Weights {
    /// As the file has them.
    Stored = sys::LLM_WEIGHTS_STORED,
    /// 8 bits and a scale for each output.
    Int8 = sys::LLM_WEIGHTS_INT8,
    /// 8 bits and a scale for 32 inputs of an output: closer, and no larger.
    Int8G32 = sys::LLM_WEIGHTS_INT8_G32,
    /// For 64 inputs.
    Int8G64 = sys::LLM_WEIGHTS_INT8_G64,
    /// For 128 inputs.
    Int8G128 = sys::LLM_WEIGHTS_INT8_G128,
    /// 4 bits and a scale for 32 inputs.
    Int4G32 = sys::LLM_WEIGHTS_INT4_G32,
    /// For 64 inputs.
    Int4G64 = sys::LLM_WEIGHTS_INT4_G64,
    /// For 128 inputs.
    Int4G128 = sys::LLM_WEIGHTS_INT4_G128,
    /// 4 bits, a scale and a minimum for 32 inputs.
    Int4AsymG32 = sys::LLM_WEIGHTS_INT4_ASYM_G32,
    /// For 64 inputs.
    Int4AsymG64 = sys::LLM_WEIGHTS_INT4_ASYM_G64,
    /// For 128 inputs.
    Int4AsymG128 = sys::LLM_WEIGHTS_INT4_ASYM_G128,
    /// 8 bits in floating point (E4M3) and a scale for each output.
    Fp8E4M3 = sys::LLM_WEIGHTS_FP8_E4M3,
}

/// Which weights of linear layers become 0 before they are quantised.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Prune {
    /// Of four inputs of an output the two smallest.
    TwoOfFour,
    /// This part of each output's weights, the smallest.
    Magnitude(f32),
}

pub(crate) type Progress<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

/// A builder; what is not set is the library's default.
#[derive(Default)]
pub struct ModelOptions<'a> {
    device: u32,
    device_index: u32,
    num_threads: u32,
    float_activations: u32,
    kernels: Option<String>,
    max_memory_bytes: u64,
    header_only: u32,
    map_pack: u32,
    verify_pack: u32,
    linear_weights: u32,
    expert_weights: u32,
    embedding_weights: u32,
    head_weights: u32,
    requantize: u32,
    prune: u32,
    prune_fraction: f32,
    limits: Option<sys::llm_limits>,
    pub(crate) log: Option<Arc<LogSink>>,
    pub(crate) host: Option<Arc<HostHooks>>,
    progress: Option<Box<Progress<'a>>>,
}

impl<'a> ModelOptions<'a> {
    /// The library's defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// What computes.
    pub fn device(mut self, device: Device) -> Self {
        self.device = device as u32;
        self
    }

    /// Which of the GPUs that the library can use, from 0 on; default: the first.
    pub fn device_index(mut self, index: u32) -> Self {
        self.device_index = index;
        self
    }

    /// Threads that load; default: the cores that this process may use.
    pub fn num_threads(mut self, num_threads: u32) -> Self {
        self.num_threads = num_threads;
        self
    }

    /// Integer weights meet f32 activations, not int8 ones: slower, closer to the float model.
    pub fn float_activations(mut self, on: bool) -> Self {
        self.float_activations = switch(on);
        self
    }

    /// "avx512", "avx2", "generic" or "reference"; default: the fastest that this machine runs.
    pub fn kernels(mut self, kernels: impl Into<String>) -> Self {
        self.kernels = Some(kernels.into());
        self
    }

    /// The most that weights may take.
    pub fn max_memory_bytes(mut self, bytes: u64) -> Self {
        self.max_memory_bytes = bytes;
        self
    }

    /// Reads no weights: such a model tells what it is and tokenizes, and no engine opens on it.
    pub fn header_only(mut self, on: bool) -> Self {
        self.header_only = switch(on);
        self
    }

    /// Maps the weights of a pack ([`save`](crate::save)) and shares them with every process that does. Trusts whoever
    /// can write the file: one that is made shorter kills the process, one that is changed changes answers.
    pub fn map_pack(mut self, on: bool) -> Self {
        self.map_pack = switch(on);
        self
    }

    /// Holds the weights of a pack to their checksums: [`DataLoss`](crate::Code::DataLoss) names the tensor that
    /// differs.
    pub fn verify_pack(mut self, on: bool) -> Self {
        self.verify_pack = switch(on);
        self
    }

    /// What the weights of linear layers become; default: as they are stored.
    pub fn linear_weights(mut self, weights: Weights) -> Self {
        self.linear_weights = weights as u32;
        self
    }

    /// What the weights of experts become; default: as those of linear layers.
    pub fn expert_weights(mut self, weights: Weights) -> Self {
        self.expert_weights = weights as u32;
        self
    }

    /// What the embedding becomes; default: as it is stored.
    pub fn embedding_weights(mut self, weights: Weights) -> Self {
        self.embedding_weights = weights as u32;
        self
    }

    /// What the head becomes where the model has its own; default: as it is stored.
    pub fn head_weights(mut self, weights: Weights) -> Self {
        self.head_weights = weights as u32;
        self
    }

    /// Quantises weights in low bits as well, with the error of both.
    pub fn requantize(mut self, on: bool) -> Self {
        self.requantize = switch(on);
        self
    }

    /// Which weights of linear layers and experts become 0.
    pub fn prune(mut self, prune: Prune) -> Self {
        let (prune, fraction) = match prune {
            Prune::TwoOfFour => (sys::LLM_PRUNE_2_OF_4, 0.0),
            Prune::Magnitude(fraction) => (sys::LLM_PRUNE_MAGNITUDE, fraction),
        };
        self.prune = prune;
        self.prune_fraction = fraction;
        self
    }

    /// What the host lends, as long as the model and all its engines live.
    pub fn host(mut self, host: Host) -> Self {
        self.host = Some(HostHooks::new(host));
        self
    }

    /// Bounds for a file that is not trusted.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(sys::llm_limits {
            max_header_bytes: limits.max_header_bytes,
            max_tensors: limits.max_tensors,
            max_metadata_entries: limits.max_metadata_entries,
            max_array_elements: limits.max_array_elements,
            max_string_bytes: limits.max_string_bytes,
            max_template_bytes: limits.max_template_bytes,
            ..Default::default()
        });
        self
    }

    /// Where log lines of the model go, from any thread; default: nowhere. A panic in it is swallowed.
    pub fn log(mut self, log: impl Fn(LogLevel, &str) + Send + Sync + 'static) -> Self {
        self.log = Some(LogSink::new(log));
        self
    }

    /// Called on the opening thread with the bytes of weights read so far and in all. `Break` ends the open with
    /// [`Cancelled`](crate::Code::Cancelled); a panic ends it too and goes on.
    pub fn progress(mut self, progress: impl FnMut(u64, u64) -> ControlFlow<()> + 'a) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// The C struct without progress. What it points to lives as long as `self` and stays where it is.
    pub(crate) fn fields(&self) -> sys::llm_model_options {
        let (log, log_user_data) = log_fields(self.log.as_ref());
        let mut fields = sys::llm_model_options {
            device: self.device,
            device_index: self.device_index,
            num_threads: self.num_threads,
            float_activations: self.float_activations,
            max_memory_bytes: self.max_memory_bytes,
            header_only: self.header_only,
            map_pack: self.map_pack,
            verify_pack: self.verify_pack,
            linear_weights: self.linear_weights,
            expert_weights: self.expert_weights,
            embedding_weights: self.embedding_weights,
            head_weights: self.head_weights,
            requantize: self.requantize,
            prune: self.prune,
            prune_fraction: self.prune_fraction,
            log,
            log_user_data,
            ..Default::default()
        };
        if let Some(kernels) = &self.kernels {
            fields.kernels = lend(kernels.as_bytes());
        }
        if let Some(host) = &self.host {
            fields.host = host.fields();
        }
        if let Some(limits) = &self.limits {
            fields.limits = limits;
        }
        fields
    }

    pub(crate) fn take_progress(&mut self) -> Option<ProgressCall<'a>> {
        self.progress.take().map(|progress| ProgressCall { progress, caught: Caught::default() })
    }
}

/// The progress closure during one open.
pub(crate) struct ProgressCall<'a> {
    progress: Box<Progress<'a>>,
    pub(crate) caught: Caught,
}

impl ProgressCall<'_> {
    /// REQUIRES: `self` stays in place, untouched, until the open returns.
    pub(crate) fn set(&mut self, fields: &mut sys::llm_model_options) {
        fields.progress = Some(on_progress);
        fields.progress_user_data = self as *mut ProgressCall<'_> as *mut c_void;
    }
}

unsafe extern "C" fn on_progress(user_data: *mut c_void, done_bytes: u64, total_bytes: u64) -> i32 {
    // SAFETY: user_data is the ProgressCall of the open that runs on this very thread and does not touch it meanwhile.
    let call = unsafe { &mut *user_data.cast::<ProgressCall<'_>>() };
    let progress = &mut call.progress;
    match call.caught.run(|| progress(done_bytes, total_bytes)) {
        Some(ControlFlow::Continue(())) => 0,
        _ => 1,
    }
}
