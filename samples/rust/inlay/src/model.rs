//! A model: weights and tokenizer.
use crate::call::{copy_text, non_null, sized, utf8};
use crate::error::{check, Result};
use crate::host::HostHooks;
use crate::log::LogSink;
use crate::model_options::ModelOptions;
use crate::source::{Source, SourceCall};
use inlay_sys as sys;
use std::ptr::{null_mut, NonNull};
use std::sync::Arc;

/// Weights and tokenizer, shared by any number of engines. Clones are one model.
#[derive(Clone)]
pub struct Model {
    shared: Arc<Shared>,
}

struct Shared {
    raw: NonNull<sys::llm_model>,
    // As long as the handle: it may call them at any time.
    _log: Option<Arc<LogSink>>,
    _host: Option<Arc<HostHooks>>,
}

// SAFETY: every function of the library is safe from any thread, and a model does not change once it is open.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: ours, released once.
        unsafe { sys::llm_model_release(self.raw.as_ptr()) }
    }
}

/// What a model is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelInfo {
    /// Of the graph: "llama", "gemma3", ...
    pub architecture: String,
    /// As the file gives it.
    pub name: String,
    /// The kernels in use.
    pub kernels: String,
    /// Tokens that there are.
    pub vocab_size: i32,
    /// Tokens that the model was made for.
    pub context_length: i32,
    /// Width of the residual stream.
    pub hidden_size: i32,
    /// Blocks of attention and feed-forward.
    pub num_layers: i32,
    /// Begin of sequence.
    pub bos_id: Option<i32>,
    /// End of sequence.
    pub eos_id: Option<i32>,
    /// Whether [`Model::chat_render`] and chat prompts work.
    pub has_chat_template: bool,
    /// Of the weights in memory.
    pub weights_bytes: u64,
    /// Of the tokenizer's tables, beside them.
    pub tokenizer_bytes: u64,
    /// Tensors in the file.
    pub num_tensors: u64,
    /// Metadata entries in the file.
    pub num_metadata: u64,
    /// What the open took.
    pub open_ns: u64,
    /// Of it, reading the header.
    pub header_ns: u64,
    /// Of it, the tokenizer and the chat template.
    pub tokenizer_ns: u64,
    /// Reading weights, summed over the threads.
    pub read_ns: u64,
    /// Repacking them, likewise.
    pub repack_ns: u64,
    /// Computing checksums, likewise; 0 without [`ModelOptions::verify_pack`].
    pub check_ns: u64,
}

/// What a model's files propose for sampling: see [`Model::sampling`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct Sampling {
    /// 0: greedy; 1 where the files sample but say none.
    pub temperature: Option<f32>,
    /// Only the most likely ones; 0: off.
    pub top_k: Option<i32>,
    /// Only the most likely ones that have this probability together.
    pub top_p: Option<f32>,
    /// Only those with this share of the most likely one's probability.
    pub min_p: Option<f32>,
    /// Of what was there before.
    pub repetition_penalty: Option<f32>,
}

impl Model {
    /// Loads a GGUF file; a path is a source too.
    pub fn open<'s>(source: impl Into<Source<'s>>, mut options: ModelOptions<'_>) -> Result<Model> {
        let source = source.into();
        let call = SourceCall::new(&source);
        let mut progress = options.take_progress();
        let mut fields = options.fields();
        if let Some(progress) = &mut progress {
            progress.set(&mut fields);
        }
        let mut raw = null_mut();
        // SAFETY: what the structs point to outlives the call, which keeps the log alone.
        let opened = check(unsafe { open_raw(&call.fields(), &fields, &mut raw) });
        if let Some(progress) = progress {
            progress.caught.resume();
        }
        call.resume();
        opened?;
        Ok(Model {
            shared: Arc::new(Shared { raw: non_null(raw)?, _log: options.log.take(), _host: options.host.take() }),
        })
    }

    /// What the model is.
    pub fn info(&self) -> Result<ModelInfo> {
        let mut info = sys::llm_model_info::default();
        // SAFETY: the handle is open; its three strings live as long as it does and are copied.
        unsafe {
            check(sys::llm_model_get_info(self.raw(), &mut info))?;
            Ok(ModelInfo {
                architecture: copy_text(info.architecture),
                name: copy_text(info.name),
                kernels: copy_text(info.kernels),
                vocab_size: info.vocab_size,
                context_length: info.context_length,
                hidden_size: info.hidden_size,
                num_layers: info.num_layers,
                bos_id: Some(info.bos_id).filter(|&id| id >= 0),
                eos_id: Some(info.eos_id).filter(|&id| id >= 0),
                has_chat_template: info.has_chat_template != 0,
                weights_bytes: info.weights_bytes,
                tokenizer_bytes: info.tokenizer_bytes,
                num_tensors: info.num_tensors,
                num_metadata: info.num_metadata,
                open_ns: info.open_ns,
                header_ns: info.header_ns,
                tokenizer_ns: info.tokenizer_ns,
                read_ns: info.read_ns,
                repack_ns: info.repack_ns,
                check_ns: info.check_ns,
            })
        }
    }

    /// What the model's files propose for sampling. Requests take it with [`Request::sampling`](crate::Request::sampling)
    /// alone: what one leaves unset means the same with every model.
    pub fn sampling(&self) -> Result<Sampling> {
        let mut sampling = sys::llm_model_sampling::default();
        // SAFETY: the handle is open.
        check(unsafe { sys::llm_model_get_sampling(self.raw(), &mut sampling) })?;
        let said = |bit: u32| sampling.set & u64::from(bit) != 0;
        Ok(Sampling {
            temperature: Some(sampling.temperature).filter(|_| said(sys::LLM_SAMPLING_TEMPERATURE)),
            top_k: Some(sampling.top_k).filter(|_| said(sys::LLM_SAMPLING_TOP_K)),
            top_p: Some(sampling.top_p).filter(|_| said(sys::LLM_SAMPLING_TOP_P)),
            min_p: Some(sampling.min_p).filter(|_| said(sys::LLM_SAMPLING_MIN_P)),
            repetition_penalty: Some(sampling.repetition_penalty)
                .filter(|_| said(sys::LLM_SAMPLING_REPETITION_PENALTY)),
        })
    }

    /// The ids of a text. `add_special` adds the bos and eos that the model asks for; `parse_special` makes control
    /// tokens that are written in the text their ids.
    pub fn tokenize(&self, text: &str, add_special: bool, parse_special: bool) -> Result<Vec<i32>> {
        let flags = flag(add_special, sys::LLM_TEXT_ADD_SPECIAL) | flag(parse_special, sys::LLM_TEXT_PARSE_SPECIAL);
        sized(text.len() + 4, |ids, capacity, count| {
            // SAFETY: the text and the room for the ids are lent for the call.
            unsafe { sys::llm_tokenize(self.raw(), text.as_ptr().cast(), text.len(), flags, ids, capacity, count) }
        })
    }

    /// The text of ids, as bytes: a cut through a character leaves what is not UTF-8. `render_special` shows control
    /// tokens.
    pub fn detokenize(&self, ids: &[i32], render_special: bool) -> Result<Vec<u8>> {
        let flags = flag(render_special, sys::LLM_TEXT_RENDER_SPECIAL);
        sized(8 * ids.len(), |text: *mut u8, capacity, size| {
            // SAFETY: the ids and the room for the text are lent for the call.
            unsafe { sys::llm_detokenize(self.raw(), ids.as_ptr(), ids.len(), flags, text.cast(), capacity, size) }
        })
    }

    /// Renders the chat template of the model's file. `chat` is JSON: an array of messages, or an object with
    /// "messages" and further variables of the template.
    pub fn chat_render(&self, chat: &str) -> Result<String> {
        let rendered = sized(2 * chat.len() + 256, |text: *mut u8, capacity, size| {
            // SAFETY: the JSON and the room for the text are lent for the call.
            unsafe { sys::llm_chat_render(self.raw(), chat.as_ptr().cast(), chat.len(), text.cast(), capacity, size) }
        })?;
        Ok(utf8(rendered))
    }

    pub(crate) fn raw(&self) -> *mut sys::llm_model {
        self.shared.raw.as_ptr()
    }
}

fn flag(on: bool, value: u32) -> u32 {
    if on {
        value
    } else {
        0
    }
}

/// The open function of the source's kind.
///
/// # Safety
/// What `source` and `options` point to is valid.
unsafe fn open_raw(
    source: &sys::llm_model_source,
    options: &sys::llm_model_options,
    model: &mut *mut sys::llm_model,
) -> sys::llm_status {
    // SAFETY: as above.
    unsafe {
        match source.kind {
            sys::LLM_SOURCE_PATH => sys::llm_model_open(source.path.data, source.path.size, options, model),
            sys::LLM_SOURCE_FD => sys::llm_model_open_fd(source.fd, source.offset, source.size, options, model),
            sys::LLM_SOURCE_MEMORY => sys::llm_model_open_memory(source.data, source.size as usize, options, model),
            _ => sys::llm_model_open_reader(source.read, source.user_data, source.size, options, model),
        }
    }
}
