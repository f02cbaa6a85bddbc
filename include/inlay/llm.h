/* llm.h: the whole C ABI of the library. */
/* clang-format off */
/*
 * Handles   Opaque. Made by *_open or *_create, released once by *_close or *_release; NULL is a no-op.
 * Status    A call that can fail returns llm_status. On failure its outputs are untouched and
 *           llm_last_error() tells why, on the calling thread, until that thread's next failing call.
 * Structs   Owned by the caller and started with *_init(). struct_size says how much of the struct the
 *           caller knows. Zero means the library's default; where zero is itself a wish, `set` names the field.
 *           A switch is a uint32_t: 0 default, LLM_ON, LLM_OFF. A larger struct than the library's is accepted
 *           when its unknown bytes are zero, else LLM_UNIMPLEMENTED; so are reserved fields.
 *           What the library shows (events, rows, stats) says in struct_size how much of it the library knows.
 * Numbers   Lists of constants grow: pass over events, reasons and records that you do not know. One that
 *           the library does not know is LLM_INVALID_ARGUMENT; a bit of `set`, LLM_UNIMPLEMENTED.
 * Strings   UTF-8, pointer and size; one of size 0 is not given, whatever its pointer. Inputs are copied
 *           before return. What is not UTF-8 in a text that becomes tokens is read as U+FFFD; in a chat it
 *           is LLM_INVALID_ARGUMENT.
 * Threads   Every call is safe from any thread, except where its comment narrows that.
 * Signals   The library installs no handler. Its threads block all but SIGPROF, SIGABRT and those that mean a
 *           fault of their own.
 * Fork      A child process must not use handles made before the fork; it may open its own.
 * Targets   64-bit; offsets are the same on all.
 * Stability Within an ABI major nothing is removed, renumbered or reordered; things are only appended.
 */
/* clang-format on */
#ifndef INLAY_LLM_H_
#define INLAY_LLM_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LLM_API __attribute__((visibility("default")))
#else
#define LLM_API
#endif

/* ---- Version and status ---- */

#define LLM_ABI_MAJOR 1
#define LLM_ABI_MINOR 1
LLM_API uint32_t
llm_abi_version(void); /* LLM_ABI_MAJOR << 16 | LLM_ABI_MINOR of the loaded library */

typedef int32_t llm_status; /* an integer: the size of a C enum is the compiler's choice; numbered
                               as absl::StatusCode */
#define LLM_OK 0
#define LLM_CANCELLED 1
#define LLM_UNKNOWN 2
#define LLM_INVALID_ARGUMENT 3
#define LLM_DEADLINE_EXCEEDED 4
#define LLM_NOT_FOUND 5
#define LLM_ALREADY_EXISTS 6
#define LLM_PERMISSION_DENIED 7
#define LLM_RESOURCE_EXHAUSTED 8
#define LLM_FAILED_PRECONDITION 9
#define LLM_ABORTED 10
#define LLM_OUT_OF_RANGE 11
#define LLM_UNIMPLEMENTED 12
#define LLM_INTERNAL 13
#define LLM_UNAVAILABLE 14
#define LLM_DATA_LOSS 15
#define LLM_UNAUTHENTICATED 16

LLM_API const char* llm_status_name(llm_status status); /* "INVALID_ARGUMENT"; static, never NULL */
LLM_API const char* llm_last_error(
    void); /* of this thread; "" before its first failing call; never NULL */

/* ---- Common types ---- */

typedef struct llm_model llm_model;   /* weights and tokenizer, shared by any number of engines */
typedef struct llm_engine llm_engine; /* KV memory, scheduler, threads */
typedef struct llm_queue llm_queue;   /* completion queue: where events wait for llm_poll */
typedef uint64_t llm_request_id;      /* never reused within an engine; 0 is no request */

typedef struct llm_string {
  const char* data; /* not terminated; not read when size is 0 */
  size_t size;      /* bytes */
} llm_string;

#define LLM_ON 1u
#define LLM_OFF 2u

#define LLM_LOG_DEBUG 0
#define LLM_LOG_INFO 1
#define LLM_LOG_WARNING 2
#define LLM_LOG_ERROR 3
/* Called from any thread, with no lock of the library held. Messages never hold prompts or outputs.
 */
typedef void (*llm_log_callback)(void* user_data, int32_t level, const char* message,
                                 uint64_t message_size);

/* ---- Host hooks ---- */

/* What a host lends a model or an engine. Hooks are called from any thread, several at once, until
 * what they were given to is gone (a model's memory: the model and all its engines). They must not
 * call this library. A C++ exception out of one is caught. */
typedef struct llm_host {
  uint32_t struct_size;
  uint32_t reserved;
  /* Weights, keys and values, workspace: all that max_memory_bytes counts. Both or neither. NULL
   * from allocate: LLM_RESOURCE_EXHAUSTED; not so aligned: LLM_INVALID_ARGUMENT. */
  void* (*allocate)(void* user_data, size_t bytes, size_t alignment); /* 64; bytes: any number */
  void (*deallocate)(void* user_data, void* memory, size_t bytes);
  void* allocator_user_data;
  /* Takes the place of worker threads: calls task(data, i) once for each i below `count`, which is
   * at most num_threads, and returns when all have returned. One after the other or all at once, in
   * any order, on any threads: the answer is the same to the bit. Breaking this makes the engine
   * unhealthy (an opening model: LLM_INTERNAL); `data` must not be used after the return. */
  void (*run)(void* user_data, void (*task)(void* data, uint32_t index), void* data,
              uint32_t count);
  void* executor_user_data;
  /* The engine's time in ns, for deadlines, statistics and traces; not for a model, nor for how
   * long a call waits. A step back, and what is below 1, counts as no time passed; while it stands
   * still nothing is due. */
  int64_t (*now_ns)(void* user_data);
  void* clock_user_data;
  /* Thread i of the library's that computes runs on cpu_ids[i % num_cpu_ids] alone; thread 0 is the
   * engine's own, or the host's, which is left as it is. num_threads then defaults to num_cpu_ids.
   * LLM_INVALID_ARGUMENT, naming it: a CPU that this process cannot use. */
  const int32_t* cpu_ids;
  size_t num_cpu_ids;
} llm_host;

static inline void llm_host_init(llm_host* host) {
  memset(host, 0, sizeof(*host));
  host->struct_size = (uint32_t)sizeof(*host);
}

/* ---- Model ---- */

#define LLM_DEVICE_DEFAULT 0 /* the GPU when there is one that this build can use, else the CPU */
#define LLM_DEVICE_CPU 1
/* One NVIDIA GPU of compute capability 8.0 or later, the driver's first. LLM_UNAVAILABLE, saying
 * which: this library was built without CUDA, there is no driver, or no such GPU;
 * LLM_UNIMPLEMENTED, naming it: an op or a weight format that the model needs. By default a model
 * goes to the CPU for any of these. */
#define LLM_DEVICE_CUDA 2
/* Computes nothing: no weights are read, KV takes the account of its blocks alone, and a step moves
 * a virtual clock by what sim_costs of llm_engine_options say. Its engines are driven by hand.
 * Since ABI 1.1. */
#define LLM_DEVICE_SIM 3

/* Bounds on what an untrusted model file may claim, checked before memory is taken. 0: the default.
 */
typedef struct llm_limits {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t max_header_bytes;     /* all that comes before the tensors' data; default 1 GiB */
  uint64_t max_tensors;          /* default 65536 */
  uint64_t max_metadata_entries; /* default 65536 */
  uint64_t max_array_elements;   /* of one metadata array; default 16 Mi */
  uint64_t max_string_bytes;     /* of one metadata string; default 64 MiB */
  uint64_t max_template_bytes;   /* of the chat template, which is left out (with a warning) beyond
                                    it; default 1 MiB */
} llm_limits;

static inline void llm_limits_init(llm_limits* limits) {
  memset(limits, 0, sizeof(*limits));
  limits->struct_size = (uint32_t)sizeof(*limits);
}

/* Called on the opening thread with the bytes of weights read so far and in all, every few
 * milliseconds. Not 0: the open ends with LLM_CANCELLED and leaves nothing behind. */
typedef int32_t (*llm_progress_callback)(void* user_data, uint64_t done_bytes,
                                         uint64_t total_bytes);

/* What weights become when a model opens, in bits a weight as packed, scales included. Since
 * ABI 1.1. */
#define LLM_WEIGHTS_DEFAULT 0
#define LLM_WEIGHTS_STORED 1   /* as the file has them */
#define LLM_WEIGHTS_INT8 2     /* 8.5; one scale for each output, stored with every 32 weights */
#define LLM_WEIGHTS_INT8_G32 3 /* 8.5; one for 32 inputs of an output: closer, and no larger */
#define LLM_WEIGHTS_INT8_G64 4 /* 8.5; for 64, likewise stored twice, and so on */
#define LLM_WEIGHTS_INT8_G128 5
#define LLM_WEIGHTS_INT4_G32 6 /* 4.5 */
#define LLM_WEIGHTS_INT4_G64 7
#define LLM_WEIGHTS_INT4_G128 8
#define LLM_WEIGHTS_INT4_ASYM_G32 9 /* 5; a scale and a minimum */
#define LLM_WEIGHTS_INT4_ASYM_G64 10
#define LLM_WEIGHTS_INT4_ASYM_G128 11
#define LLM_WEIGHTS_FP8_E4M3 12 /* 8.5; one scale for each output, stored with every 64 weights */

#define LLM_PRUNE_NONE 0
#define LLM_PRUNE_2_OF_4 1    /* of four inputs of an output the two smallest weights */
#define LLM_PRUNE_MAGNITUDE 2 /* of each output's weights the smallest, prune_fraction of them */

typedef struct llm_model_options {
  uint32_t struct_size;
  uint32_t device;            /* LLM_DEVICE_* */
  uint32_t num_threads;       /* for loading; 0: the cores this process may use */
  uint32_t float_activations; /* switch, default off: integer weights meet int8 activations, BF16
                                 weights bf16 ones; on: f32 ones, slower */
  llm_string kernels; /* "avx512", "avx2", "generic", "reference", "cuda"; default: the fastest that
                         the device runs */
  uint64_t max_memory_bytes; /* for weights, a GPU's memory included; beyond it the open fails with
                                LLM_RESOURCE_EXHAUSTED. Default: no limit */
  llm_log_callback log;      /* default: silent */
  void* log_user_data;
  llm_progress_callback progress; /* default: none */
  void* progress_user_data;
  const llm_limits* limits; /* read during the call; default: those of llm_limits */
  uint32_t header_only; /* switch, default off; on: no weights are read. Such a model tells what it
                           is and tokenizes; llm_engine_open answers LLM_FAILED_PRECONDITION */
  uint32_t reserved;
  const llm_host* host; /* read during the call; default: no hooks */
  /* For a pack (llm_model_save). Switch, default off; on: its weights are mapped, not read, and
   * shared with every process that maps the file. Trusts whoever can write it: one that is made
   * shorter while it is open kills the process, one that is changed changes answers. Not counted by
   * max_memory_bytes. LLM_FAILED_PRECONDITION: the model comes from memory or a callback;
   * LLM_INVALID_ARGUMENT: it is no pack. */
  uint32_t map_pack;
  uint32_t verify_pack; /* switch, default off; on: its weights are held to their checksums.
                           LLM_DATA_LOSS names the tensor that differs */
  /* LLM_WEIGHTS_* for F32, F16 and BF16 weights, quantised on the loading threads with the scales
   * that leave the least error; what the file has in low bits stays as it is. Norms, biases and
   * routers always do. LLM_INVALID_ARGUMENT: nothing is left to quantise; a pack; rows that are no
   * multiple of 32, for fp8 of 64. The model's tensors are then listed as llm_model_save_gguf
   * writes them. */
  uint32_t linear_weights;    /* default: stored */
  uint32_t expert_weights;    /* default: as linear_weights */
  uint32_t embedding_weights; /* default: stored. With a tied head, both */
  uint32_t head_weights;      /* default: stored. LLM_INVALID_ARGUMENT: a tied head */
  uint32_t requantize;  /* switch, default off; on: weights in low bits are decoded and quantised as
                           well, with the error of both */
  uint32_t prune;       /* LLM_PRUNE_*, of linear layers and experts, before they are quantised */
  float prune_fraction; /* 0..1, for LLM_PRUNE_MAGNITUDE */
  uint32_t device_index; /* of the GPUs that this build can use, from 0 on, in the driver's order;
                            default: the first. LLM_INVALID_ARGUMENT, saying how many there are:
                            there is no such GPU, or the device is none */
} llm_model_options;

static inline void llm_model_options_init(llm_model_options* options) {
  memset(options, 0, sizeof(*options));
  options->struct_size = (uint32_t)sizeof(*options);
}

/* Loads a GGUF file, a pack, or a directory as model hubs hand them out (config.json, safetensors,
 * tokenizer.json). options may be NULL. LLM_NOT_FOUND, LLM_PERMISSION_DENIED: the path, or a file
 * of the directory; LLM_INVALID_ARGUMENT: a malformed file; LLM_UNIMPLEMENTED: a format,
 * architecture, key or rule that this version does not know; LLM_RESOURCE_EXHAUSTED: memory;
 * LLM_DATA_LOSS: a pack that is cut or damaged; LLM_FAILED_PRECONDITION: one made for other kernels
 * or by another format version. */
LLM_API llm_status llm_model_open(const char* path, size_t path_size,
                                  const llm_model_options* options, llm_model** model);
/* The same from bytes [offset, offset + size) of a file that the caller has open for reading (size
 * 0: up to its end). Reads by pread during the call alone: the descriptor stays the caller's, its
 * position unchanged. */
LLM_API llm_status llm_model_open_fd(int32_t fd, uint64_t offset, uint64_t size,
                                     const llm_model_options* options, llm_model** model);
/* The same from memory, which is read during the call alone. */
LLM_API llm_status llm_model_open_memory(const void* data, size_t size,
                                         const llm_model_options* options, llm_model** model);

/* Like pread: writes up to `size` bytes at `offset` to `buffer` and returns how many, 0 where
 * nothing is left, or a negated errno. Called from several threads at once. */
typedef int64_t (*llm_read_callback)(void* user_data, uint64_t offset, void* buffer, uint64_t size);
/* The same through `read`, for a file of `size` bytes; called during the call alone. LLM_DATA_LOSS:
 * it ended early. */
LLM_API llm_status llm_model_open_reader(llm_read_callback read, void* user_data, uint64_t size,
                                         const llm_model_options* options, llm_model** model);
/* Engines keep what they need: the order of release is free. */
LLM_API void llm_model_release(llm_model* model);

typedef struct llm_model_info {
  uint32_t struct_size;
  int32_t vocab_size;
  int32_t context_length; /* tokens that the model was made for */
  int32_t hidden_size;
  int32_t num_layers;
  int32_t bos_id;             /* -1: none */
  int32_t eos_id;             /* -1: none */
  uint32_t has_chat_template; /* 0 or 1 */
  uint64_t weights_bytes;     /* in memory; header_only: as llm_plan tells */
  llm_string architecture;    /* these three live as long as the model */
  llm_string kernels;
  llm_string name;
  uint64_t tokenizer_bytes; /* its tables, beside weights_bytes */
  uint64_t num_tensors;     /* in the file */
  uint64_t num_metadata;    /* likewise: keys */
  uint64_t open_ns;         /* what the open took; the next four are stages of it */
  uint64_t header_ns;
  uint64_t tokenizer_ns; /* and the chat template; of a pack, beside read_ns */
  uint64_t read_ns;      /* these two overlap on several threads: the sum over the threads */
  uint64_t repack_ns;    /* 0: a pack */
  uint64_t check_ns;     /* verify_pack: computing checksums, summed likewise; else 0 */
} llm_model_info;

static inline void llm_model_info_init(llm_model_info* info) {
  memset(info, 0, sizeof(*info));
  info->struct_size = (uint32_t)sizeof(*info);
}
LLM_API llm_status llm_model_get_info(const llm_model* model, llm_model_info* info);

#define LLM_SAMPLING_TEMPERATURE 1ull
#define LLM_SAMPLING_TOP_K 2ull
#define LLM_SAMPLING_TOP_P 4ull
#define LLM_SAMPLING_MIN_P 8ull
#define LLM_SAMPLING_REPETITION_PENALTY 16ull

typedef struct llm_model_sampling {
  uint32_t struct_size;
  int32_t top_k;
  uint64_t set; /* LLM_SAMPLING_*: what the files say; the other fields are 0, as a request's are */
  float temperature; /* 0: they do not sample (do_sample false); 1: they do, and say none */
  float top_p;
  float min_p;
  float repetition_penalty;
} llm_model_sampling;

static inline void llm_model_sampling_init(llm_model_sampling* sampling) {
  memset(sampling, 0, sizeof(*sampling));
  sampling->struct_size = (uint32_t)sizeof(*sampling);
}
/* What the model's files propose (generation_config.json, general.sampling.* of GGUF), as fields of
 * llm_request. A request takes none of it by itself: what it leaves unset means the same with every
 * model. Since ABI 1.1. */
LLM_API llm_status llm_model_get_sampling(const llm_model* model, llm_model_sampling* sampling);

typedef struct llm_tensor_info {
  uint32_t struct_size;
  uint32_t num_dims;    /* 1..4 */
  uint64_t shape[8];    /* [num_dims], the last contiguous; then zeros */
  uint64_t file_offset; /* of its data, from the start of the file */
  uint64_t size_bytes;  /* of its data in the file: of a pack, as packed */
  llm_string name;      /* these two live as long as the model */
  llm_string type;      /* "F16", "Q4_K" */
} llm_tensor_info;

static inline void llm_tensor_info_init(llm_tensor_info* info) {
  memset(info, 0, sizeof(*info));
  info->struct_size = (uint32_t)sizeof(*info);
}
/* What the file holds, in its order. LLM_OUT_OF_RANGE: index is not below num_tensors. */
LLM_API llm_status llm_model_tensor(const llm_model* model, uint64_t index, llm_tensor_info* info);
/* Likewise its metadata, values as text: of a string the first 64 KiB, of an array all elements
 * ("[1, 2]") or, beyond 16, their number ("49152 strings"). Both live as long as the model.
 * LLM_OUT_OF_RANGE: index is not below num_metadata. */
LLM_API llm_status llm_model_metadata(const llm_model* model, uint64_t index, llm_string* key,
                                      llm_string* value);

/* Flags of llm_tokenize and llm_detokenize. */
#define LLM_TEXT_ADD_SPECIAL 1u /* tokenize: add the bos/eos that the model asks for */
#define LLM_TEXT_PARSE_SPECIAL \
  2u /* tokenize: control tokens written in the text become their ids */
#define LLM_TEXT_RENDER_SPECIAL 4u /* detokenize: control tokens appear as text */

/* *count is the number of ids of the whole text, of which min(*count, capacity) are written: call
 * with capacity 0 to size. */
LLM_API llm_status llm_tokenize(const llm_model* model, const char* text, size_t text_size,
                                uint32_t flags, int32_t* ids, size_t capacity, size_t* count);
/* Likewise in bytes; bytes that are not UTF-8 come out as they are. LLM_INVALID_ARGUMENT: an id
 * outside the vocabulary. */
LLM_API llm_status llm_detokenize(const llm_model* model, const int32_t* ids, size_t num_ids,
                                  uint32_t flags, char* text, size_t capacity, size_t* size);
/* Renders the chat template of the model file. `chat` is JSON: an array of messages, or an object
 * with "messages" and further template variables ("tools", "add_generation_prompt" (default true),
 * ...). *size as above. LLM_FAILED_PRECONDITION: the model has no chat template, or one that does
 * not parse, with the reason; LLM_INVALID_ARGUMENT: bad JSON, or the template refuses it;
 * LLM_RESOURCE_EXHAUSTED: it takes more steps, depth or memory than a template may. */
LLM_API llm_status llm_chat_render(const llm_model* model, const char* chat, size_t chat_size,
                                   char* text, size_t capacity, size_t* size);

/* ---- Queue ---- */

LLM_API llm_status llm_queue_create(llm_queue** queue);
/* Refused with LLM_FAILED_PRECONDITION while a thread polls it, and for an engine's own. Engines
 * keep a queue that their requests name; its unread events are dropped with it. */
LLM_API llm_status llm_queue_close(llm_queue* queue);
/* A level-triggered, close-on-exec eventfd, readable while events wait. The library's: never read
 * or close it. LLM_RESOURCE_EXHAUSTED: no descriptor was left (polling still works). */
LLM_API llm_status llm_queue_fd(llm_queue* queue, int32_t* fd);

/* ---- Engine ---- */

#define LLM_KV_DEFAULT 0 /* f16 */
#define LLM_KV_F32 1
#define LLM_KV_F16 2
#define LLM_KV_BF16 3
#define LLM_KV_FP8_E4M3 4
#define LLM_KV_INT8 5
#ifdef LLM_EXPERIMENTAL
#define LLM_KV_INT4 6 /* in groups of 32 values, so head_dim is a multiple of 32. May change */
#endif

/* Who is served first. LLM_POLICY_DEADLINE is there since ABI 1.1. */
#define LLM_POLICY_FCFS 0
#define LLM_POLICY_PRIORITY 1 /* lowest priority; a step of it is worth 10 s of waiting */
#define LLM_POLICY_DEADLINE \
  2 /* who has to start first for its first_token_deadline_ns; none counts as 10 s */

/* What must fit in kv_tokens, beside the running requests, before one starts. */
#define LLM_ADMISSION_PREDICT 0 /* its prompt and the output that it is expected to have */
#define LLM_ADMISSION_RESERVE 1 /* its prompt and max_new_tokens: none is ever preempted */
#define LLM_ADMISSION_GREEDY 2  /* its prompt and little more: many may be preempted */

#define LLM_DRIVE_THREADS 0 /* the engine has its own threads */
#define LLM_DRIVE_MANUAL 1  /* the host calls llm_engine_step; callbacks run inside it */

/* What a step takes on LLM_DEVICE_SIM: the sum of these, each times its number, as
 * llm_metrics_snapshot tells it of a real engine (cost_*). Since ABI 1.1. */
typedef struct llm_sim_costs {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t fixed_ns;
  uint64_t decode_row_ns;
  uint64_t prefill_token_ns;
  uint64_t decode_key_ps;
  uint64_t prefill_pair_ps;
} llm_sim_costs;

static inline void llm_sim_costs_init(llm_sim_costs* costs) {
  memset(costs, 0, sizeof(*costs));
  costs->struct_size = (uint32_t)sizeof(*costs);
}

typedef struct llm_engine_options {
  uint32_t struct_size;
  uint32_t num_threads; /* busy threads of a step; 0: the cores this process may use. With a GPU it
                           is always 1 */
  uint32_t kv_dtype;    /* LLM_KV_* */
  uint32_t block_size;  /* tokens; a power of two >= 16; default 16 */
  uint64_t kv_tokens;   /* default: max(context, 8 x 2048) tokens, at most a quarter of free memory;
                           on a GPU all that is left of its memory, or of max_memory_bytes, but a
                           twentieth, or 256 MiB where that is more */
  uint32_t max_context_tokens;  /* prompt and output of one request; default: the model's, at most
                                   kv_tokens */
  uint32_t max_sequences;       /* running at once; default 32 */
  uint32_t max_step_tokens;     /* step budget; default: as many as past steps let expect within
                                   100 ms, 64..512 */
  uint32_t policy;              /* LLM_POLICY_* */
  uint32_t max_queued_requests; /* waiting and running; default 1024 */
  uint32_t prefix_cache;        /* switch, default on */
  uint64_t max_queued_tokens;   /* prompt tokens of waiting and running requests; default 4 Mi */
  uint64_t max_memory_bytes;    /* KV and workspace, beyond which the open fails: lower kv_tokens
                                   then. Default: no limit. Undelivered events are bounded by
                                   max_pending_bytes a request */
  uint64_t max_pending_bytes;  /* undelivered events of one request, beyond which it pauses; default
                                  1 MiB */
  uint32_t drive;              /* LLM_DRIVE_* */
  uint32_t spin_us;            /* how long idle workers poll before they park; default 50 */
  int64_t token_gap_target_ns; /* of requests that state none; default: none */
  uint32_t num_ranks;          /* reserved */
  uint32_t batch_invariant;    /* switch, default on, and the CPU always is. Off: linear layers on a
                                  GPU may be cuBLASLt's, and an answer may depend on the batch */
  llm_log_callback log;
  void* log_user_data;
  const llm_host* host; /* read during the call; default: no hooks */
  uint32_t admission;   /* LLM_ADMISSION_*; since ABI 1.1, as are the next */
  uint32_t reserved;
  const llm_sim_costs* sim_costs; /* of a model opened for LLM_DEVICE_SIM, and of no other; read
                                     during the call */
  uint32_t refuse_late; /* switch, default on: a request whose first token is predicted to miss its
                           deadline is refused, and one that waits ends once it cannot meet it any
                           more. Off: it ends when the deadline has passed */
  uint32_t reserved2;
  /* A folder: whole blocks that the prefix cache evicts go to a file there, which has no name and
   * ends with the engine, and come back when past reads and steps let expect that reading them
   * takes less time than computing them. Each is held to a checksum: one that fails is computed.
   * Default: none. */
  llm_string spill_folder;
  uint64_t spill_bytes; /* the most that the file takes; default 1 GiB */
  uint32_t hold_us;     /* how long requests that come to an idle engine wait at most for others to
                           share their first step, and at most half of the time to their first-token
                           deadline; default 0. Never those with a completion deadline, nor scores,
                           pins and the like. Manual drive: steps say that they worked meanwhile */
  uint32_t max_long_requests; /* running at once, of those that knew long_request_tokens tokens when
                                 they started; shorter ones pass others that wait, and may grow
                                 long. Default: no bound */
  uint64_t long_request_tokens; /* prompt and output so far; default: max_context_tokens / 4 */
  uint32_t graphs; /* switch, for CUDA, default on: a step in which all requests decode is launched
                      as one CUDA graph. With batch_invariant off there are none. No stream is
                      captured for them: the host's own CUDA calls work as ever meanwhile */
  /* Switch, for CUDA, default on: while all that run decode and nobody who waits could start, the
   * GPU begins a step before the host has looked at the tokens of the one before. The same tokens;
   * who comes meanwhile starts a step later. */
  uint32_t run_ahead;
} llm_engine_options;

static inline void llm_engine_options_init(llm_engine_options* options) {
  memset(options, 0, sizeof(*options));
  options->struct_size = (uint32_t)sizeof(*options);
}

/* options may be NULL. LLM_RESOURCE_EXHAUSTED: memory or a thread, with the numbers;
 * LLM_FAILED_PRECONDITION: a model opened with header_only; LLM_INVALID_ARGUMENT,
 * LLM_UNIMPLEMENTED: the option. A simulated engine knows no logits, nor what needs them
 * (LLM_UNIMPLEMENTED); an answer of it ends with an end token behind min_new_tokens, where there
 * are both, else by its length. */
LLM_API llm_status llm_engine_open(llm_model* model, const llm_engine_options* options,
                                   llm_engine** engine);
/* Stops intake and ends every open request (CANCELLED), whose FINISHED events can still be polled;
 * later submits answer LLM_FAILED_PRECONDITION. Waits up to timeout_ns for the running step to end
 * and callbacks to return (< 0: for ever); LLM_DEADLINE_EXCEEDED: not yet, call again. */
LLM_API llm_status llm_engine_shutdown(llm_engine* engine, int64_t timeout_ns);
/* Shuts down, waits, frees. LLM_FAILED_PRECONDITION inside one of its callbacks: nothing happens.
 * A call that waits inside (llm_score, llm_prefix_save, ...) returns first; any other use during
 * close or after it is undefined. */
LLM_API llm_status llm_engine_close(llm_engine* engine);
/* Manual drive: runs one step on this thread. *worked (may be NULL) is 0 when there was nothing to
 * do. LLM_FAILED_PRECONDITION: an engine with threads, or a step within a step. */
LLM_API llm_status llm_engine_step(llm_engine* engine, uint32_t* worked);
/* The queue of requests that name none; lives as long as the engine. NULL for a NULL engine. */
LLM_API llm_queue* llm_engine_queue(llm_engine* engine);
/* Empties the prefix cache before the next step: a request submitted after it finds only what
 * running requests hold. Never waits. LLM_FAILED_PRECONDITION after shutdown. */
LLM_API llm_status llm_cache_flush(llm_engine* engine);

/* ---- Sessions ---- */

/* What comes after the answer that a session has just got. */
#define LLM_HINT_TOOL_CALL 1 /* its next request, soon: its cached prefix is evicted late */
#define LLM_HINT_HUMAN 2     /* its next request, late or never: evicted early */

/* Orders the eviction of cached blocks that requests of this session alone have used, until another
 * request of it gives its blocks back; blocks that others use too are left alone. The last hint
 * counts. It shifts the blocks by four turnovers of the KV memory and grows old with them. For
 * after a FINISHED; never waits, takes effect before the next step, changes no answer. An unknown
 * session is LLM_OK: its blocks may be gone. LLM_RESOURCE_EXHAUSTED: manual drive, and thousands
 * wait for a step; LLM_FAILED_PRECONDITION after shutdown. */
LLM_API llm_status llm_session_hint(llm_engine* engine, uint64_t session_id, uint32_t hint);
/* The same hint for a session that will not come back: its blocks go before all others. It may come
 * back all the same. */
LLM_API llm_status llm_session_close(llm_engine* engine, uint64_t session_id);

/* ---- Memory plan ---- */

#define LLM_SOURCE_PATH 1   /* path */
#define LLM_SOURCE_FD 2     /* fd, offset, size: as llm_model_open_fd */
#define LLM_SOURCE_MEMORY 3 /* data, size */
#define LLM_SOURCE_READER 4 /* read, user_data, size: as llm_model_open_reader */

typedef struct llm_model_source {
  uint32_t struct_size;
  uint32_t kind; /* LLM_SOURCE_*: which of the other fields count */
  llm_string path;
  int32_t fd;
  uint32_t reserved;
  uint64_t offset;
  uint64_t size;
  const void* data;
  llm_read_callback read;
  void* user_data;
} llm_model_source;

static inline void llm_model_source_init(llm_model_source* source) {
  memset(source, 0, sizeof(*source));
  source->struct_size = (uint32_t)sizeof(*source);
}

typedef struct llm_memory_plan {
  uint32_t struct_size;
  uint32_t max_sequences;
  uint64_t weights_bytes;   /* of the open model; counted by max_memory_bytes of its options, as the
                               next is */
  uint64_t loading_bytes;   /* beside them, while it opens */
  uint64_t tokenizer_bytes; /* beside them, not counted by a limit */
  uint64_t kv_bytes;        /* of the engine, from open on */
  uint64_t workspace_bytes; /* likewise */
  uint64_t event_bytes; /* the most that undelivered events are to hold, all requests together; none
                           at open */
  uint64_t kv_tokens;   /* what the options come to */
  uint32_t max_context_tokens;
  uint32_t max_step_tokens; /* the upper end, where the first steps choose it */
} llm_memory_plan;

static inline void llm_memory_plan_init(llm_memory_plan* plan) {
  memset(plan, 0, sizeof(*plan));
  plan->struct_size = (uint32_t)sizeof(*plan);
}

/* What a model and an engine on it will take, in bytes, from the header of the model file alone.
 * Fails as the two opens would, except for what only the weights can tell. Exact, but where
 * kv_tokens is left to the memory that is free at open. Either options may be NULL. */
LLM_API llm_status llm_plan(const llm_model_source* source, const llm_model_options* model_options,
                            const llm_engine_options* engine_options, llm_memory_plan* plan);

/* ---- Packs ---- */

/* Writes the model of `source`, a GGUF file or a directory, as a pack: its tokenizer, template and
 * metadata, and its weights as the kernels read them, so that opening is reading, and may be
 * mapping (map_pack). A pack opens as a model file does and gives the same answers to the bit, with
 * the kernels that it was made for (those of `options`) and a library that knows its format; others
 * refuse it. The file appears at `path` whole, replacing what was there, or not at all. Takes the
 * memory that opening takes. Progress counts reading as one half, writing as the other. `options`
 * may be NULL. Errors are those of the open; LLM_NOT_FOUND, LLM_PERMISSION_DENIED, ...: the path;
 * LLM_RESOURCE_EXHAUSTED: the disk is full; LLM_FAILED_PRECONDITION: the source is a pack. */
LLM_API llm_status llm_model_save(const llm_model_source* source, const llm_model_options* options,
                                  const char* path, size_t path_size);
/* The same as a GGUF file, its weights quantised and pruned as `options` say, for this and other
 * programs. Takes some memory for each thread, never the weights. Progress counts bytes written.
 * LLM_FAILED_PRECONDITION: the source is a pack; LLM_UNIMPLEMENTED: a directory, since GGUF has no
 * keys for its tokenizer; weights that GGUF has no type for. Since ABI 1.1. */
LLM_API llm_status llm_model_save_gguf(const llm_model_source* source,
                                       const llm_model_options* options, const char* path,
                                       size_t path_size);

/* ---- Requests ---- */

#define LLM_FINISH_NONE 0
#define LLM_FINISH_END_TOKEN 1 /* status LLM_OK for these four */
#define LLM_FINISH_STOP_TOKEN 2
#define LLM_FINISH_STOP_STRING 3
#define LLM_FINISH_LENGTH 4
#define LLM_FINISH_CANCELLED 5 /* LLM_CANCELLED */
#define LLM_FINISH_DEADLINE 6  /* LLM_DEADLINE_EXCEEDED */
#define LLM_FINISH_REJECTED 7  /* LLM_RESOURCE_EXHAUSTED */
#define LLM_FINISH_ERROR 8     /* LLM_INTERNAL */

typedef struct llm_request_stats {
  uint32_t struct_size;
  int32_t prompt_tokens;
  int32_t cached_tokens; /* prompt tokens whose keys and values came from the prefix cache */
  int32_t generated_tokens;
  int32_t preemptions;
  int32_t reserved;
  int64_t recomputed_tokens;
  int64_t queue_ns;   /* submit to first scheduled, or to FINISHED when it never was */
  int64_t ttft_ns;    /* submit to first token; -1: none came */
  int64_t total_ns;   /* submit to FINISHED: exactly queue + prefill + stall + decode + deliver */
  uint64_t seed;      /* the one used; alone, a request with that of a choice gives its answer */
  int64_t prefill_ns; /* inside steps that it was part of, up to its first token */
  int64_t
      stall_ns; /* in no step after its first: preempted, paused, left out, or the step failed */
  int64_t decode_ns;      /* inside its steps from the first token on */
  int64_t deliver_ns;     /* end of its last step, or its end between steps, until FINISHED left */
  int64_t longest_gap_ns; /* between two steps that gave it tokens, or one of its choices; since
                             ABI 1.1 */
} llm_request_stats;

typedef struct llm_logprob {
  int32_t id;
  float logprob; /* natural log, of the unmodified distribution */
} llm_logprob;

#define LLM_EVENT_TOKENS 1 /* token_ids, text, logprobs */
#define LLM_EVENT_CHOICE_FINISHED \
  2 /* choices > 1: one for each, its last; as FINISHED, of that choice alone */
#define LLM_EVENT_FINISHED \
  3 /* exactly one, the last: finish_reason, status, message, stats; no tokens and no text */
#define LLM_EVENT_PROMPT                                                                \
  4 /* any number, before TOKENS: token_ids of the prompt from the second on, logprobs; \
       choices > 1: of choice 0 */

/* FINISHED with choices > 1: finish_reason, status, message, stop_index and `choice` are those of
 * the first choice, by index, whose status is not LLM_OK, else choice 0's. In its stats cached,
 * generated, preemptions and recomputed are sums, ttft_ns is that of the first token of any choice,
 * the other times are those of the choice that ended last, and the rest is choice 0's. */
typedef struct llm_event {
  uint32_t type;
  uint32_t choice; /* from 0 */
  llm_request_id id;
  void* user_data;
  llm_string
      text; /* what may be shown now; whole UTF-8 characters; need not line up with token_ids */
  const int32_t* token_ids; /* [num_tokens] */
  size_t num_tokens;
  const llm_logprob* logprobs; /* [num_tokens, logprobs_per_token], logprob_size bytes apart: the
                                  chosen id, then the most likely */
  uint32_t logprob_size;
  uint32_t logprobs_per_token; /* 0: not asked for; PROMPT: of num_prompt_logprobs */
  int32_t finish_reason;
  llm_status status;
  llm_string message;
  const llm_request_stats* stats; /* NULL but in CHOICE_FINISHED and FINISHED */
  int32_t stop_index;   /* STOP_STRING: which one; END_TOKEN, STOP_TOKEN: the id; else -1 */
  uint32_t struct_size; /* sizeof(llm_event) of the library */
} llm_event;

/* Runs on the engine's delivery thread (manual drive: inside llm_engine_step), in order per
 * request, with no lock held. What the event points to is valid until it returns. It may submit and
 * cancel; it must not close the engine. */
typedef void (*llm_event_callback)(void* user_data, const llm_event* event);

typedef struct llm_logit_bias {
  int32_t id;
  float bias; /* added to the logit */
} llm_logit_bias;

#define LLM_SET_SEED 1ull                /* seed is meant, also when 0 */
#define LLM_SET_NUM_LOGPROBS 2ull        /* num_logprobs is meant, also when 0 */
#define LLM_SET_NUM_PROMPT_LOGPROBS 4ull /* num_prompt_logprobs is meant, also when 0 */

typedef struct llm_request {
  uint32_t struct_size;
  uint32_t choices; /* answers to the prompt, up to 128; default 1. Choice 0 draws with `seed`, the
                       others with seeds made from it. The prompt is computed once while one of them
                       runs, also without prefix cache. Each counts as a request in the queue's
                       bounds, for deadlines and for max_pending_bytes; cancel ends all */
  uint64_t set;     /* LLM_SET_* */
  /* Exactly one of the three is the prompt. */
  llm_string text;           /* tokenized with the bos that the model asks for */
  llm_string chat;           /* JSON as for llm_chat_render */
  const int32_t* prompt_ids; /* taken as they are */
  size_t num_prompt_ids;
  uint32_t parse_special; /* switch; control tokens in `text` or `chat` become ids. Default: off for
                             text, on for chat (but see literal_content) */
  uint32_t max_new_tokens; /* 0: as many as the context holds */
  float temperature;       /* 0: greedy */
  int32_t top_k;           /* 0: off */
  float top_p;             /* 0 or 1: off */
  float min_p;             /* 0: off */
  uint64_t seed;           /* default: drawn, and told in the stats */
  int32_t num_logprobs; /* 0..20 most likely ones beside the chosen; default: no log-probabilities
                           at all */
  uint32_t ignore_eos;  /* switch, default off */
  const int32_t* stop_ids;
  size_t num_stop_ids;
  const llm_string* stop_strings;
  size_t num_stop_strings;
  uint32_t include_stop_string;    /* switch, default off: the text ends before it */
  uint32_t render_special;         /* switch, default off: control tokens give no text */
  uint32_t prefix_cache;           /* switch, default on */
  int32_t priority;                /* lower first; only under LLM_POLICY_PRIORITY */
  int64_t first_token_deadline_ns; /* from submit; 0: none; see refuse_late of llm_engine_options */
  int64_t completion_deadline_ns;  /* likewise */
  llm_string cache_salt;           /* cached prefixes are shared only between equal salts */
  uint64_t session_id;             /* what llm_session_hint names; 0: none */
  uint64_t trace_id;               /* shown in traces, as a signed number */
  uint64_t adapter_id;             /* reserved */
  int64_t token_gap_target_ns;     /* between two tokens: while this request decodes, prompts of
                                      others are computed in chunks that past steps let expect within
                                      it, of 8 tokens at least. Default: the engine's */
  int64_t arrival_ns;              /* LLM_DEVICE_SIM: when it arrives on the virtual clock, which
                                      begins at 1: submit first runs steps up to then, or lets the
                                      clock jump. 0: now */
  uint32_t request_class;          /* outputs of one class are expected to be as long as its last
                                      ones; from the 64th class of an engine on all are one */
  uint32_t reserved;
  llm_string kv_transfer;      /* reserved */
  llm_event_callback on_event; /* events go here, or else to ... */
  llm_queue* queue;            /* ... this queue; default: the engine's */
  void* user_data;             /* comes back in each event */
  /* These change what is drawn, not the log-probabilities that are told: bias first, then the
   * penalties. */
  float repetition_penalty; /* 0.01..100, over prompt and output: divides a positive logit,
                               multiplies another; 0 or 1: off */
  float presence_penalty;   /* -2..2, subtracted for each id in the output */
  float frequency_penalty;  /* -2..2, subtracted each time an id is in the output */
  uint32_t min_new_tokens;  /* no end token, stop token or stop string ends the output before */
  const llm_logit_bias* logit_bias;
  size_t num_logit_bias;
  uint32_t logit_bias_size;    /* sizeof(llm_logit_bias), where there are any */
  uint32_t reserved2;          /* reserved */
  const llm_string* bad_words; /* never drawn as these tokens, alone or behind a space; other
                                  spellings in tokens are not found */
  size_t num_bad_words;
  int32_t num_prompt_logprobs; /* 0..20 most likely ones beside each prompt token, in PROMPT events;
                                  default: none. The prompt is then computed, not read from the
                                  prefix cache */
  uint32_t reserved3;          /* reserved */
  uint32_t literal_content; /* switch, default on: control tokens that the messages, tools and other
                               arrays and objects of `chat` spell stay text, wherever the template
                               moves them; its own, and those of string variables and of a
                               message's role, become ids. Off: all do. Needs parse_special */
  uint32_t reserved4;       /* reserved */
} llm_request;

static inline void llm_request_init(llm_request* request) {
  memset(request, 0, sizeof(*request));
  request->struct_size = (uint32_t)sizeof(*request);
}

/* Takes the prompt in. LLM_OK: *id is set and exactly one FINISHED event will follow; any other
 * status: neither. LLM_RESOURCE_EXHAUSTED: the queue is full, or the chat template took more time
 * or memory than it may; LLM_INVALID_ARGUMENT: among others a request that can never fit, or never
 * be queued with its choices; LLM_DEADLINE_EXCEEDED: its first token is predicted to come after
 * one of its deadlines. The messages of a full queue and of a late request tell when to try
 * again, where waiting would help; before an engine's first steps none is late. */
LLM_API llm_status llm_submit(llm_engine* engine, const llm_request* request, llm_request_id* id);
/* Takes effect within one step, on all choices. LLM_NOT_FOUND: finished long ago or never
 * submitted; harmless. */
LLM_API llm_status llm_cancel(llm_engine* engine, llm_request_id id);

/* Moves up to `capacity` events out of `queue`, waiting at most `timeout_ns` for the first (0: not
 * at all, < 0: for ever). Element i is written at events + i * event_size bytes. What events point
 * to is valid until the next poll of this queue. Nothing yet: LLM_OK with *count 0.
 * LLM_FAILED_PRECONDITION: another thread is polling this queue, or a wait on the queue of a
 * manually driven engine; LLM_INVALID_ARGUMENT: capacity 0, or an event_size of no version. */
LLM_API llm_status llm_poll(llm_queue* queue, llm_event* events, size_t event_size, size_t capacity,
                            int64_t timeout_ns, size_t* count);

/* ---- Scoring ---- */

typedef struct llm_score_row {
  uint32_t struct_size; /* sizeof(llm_score_row) of the library */
  uint32_t reserved;
  uint64_t position; /* of `id` in the text, from 0 */
  int32_t id;
  float logprob;       /* natural log, given all tokens before it */
  const float* logits; /* [num_logits]: what `id` was predicted by */
  size_t num_logits;   /* the vocabulary */
} llm_score_row;

/* Runs once for each scored token, in order, inside a step: all requests of the engine wait for it.
 * What the row points to is valid until it returns. Not 0: the score ends with LLM_CANCELLED. It
 * may submit and cancel; it must not close the engine. */
typedef int32_t (*llm_score_callback)(void* user_data, const llm_score_row* row);

typedef struct llm_score_request {
  uint32_t struct_size;
  uint32_t parse_special; /* switch, default off: control tokens in `text` become ids */
  /* Exactly one of the two. */
  llm_string text;    /* tokenized with the bos that the model asks for */
  const int32_t* ids; /* taken as they are */
  size_t num_ids;
  uint64_t first;   /* position of the first token that is scored; default 1, since nothing comes
                       before the first */
  int32_t priority; /* as of llm_request */
  uint32_t reserved;
  llm_score_callback on_row; /* default: none */
  void* user_data;
} llm_score_request;

static inline void llm_score_request_init(llm_score_request* request) {
  memset(request, 0, sizeof(*request));
  request->struct_size = (uint32_t)sizeof(*request);
}

/* Computes the log-probability of each token of a text from `first` on, given those before it,
 * among the engine's other requests, and waits for it; with manual drive it runs their steps.
 * Bit-identical whatever else runs; does not read the prefix cache. *count is the number of scored
 * tokens, of which min(*count, capacity) are written; `logprobs` may be NULL with capacity 0.
 * Errors as llm_submit's; LLM_CANCELLED: by the callback or a shutdown; LLM_FAILED_PRECONDITION:
 * inside a step or, with manual drive, while another thread runs one. */
LLM_API llm_status llm_score(llm_engine* engine, const llm_score_request* request, float* logprobs,
                             size_t capacity, size_t* count);

/* ---- Pinned prefixes ---- */

typedef uint64_t llm_pin_id; /* never reused within an engine; 0 is no pin */

typedef struct llm_prefix {
  uint32_t struct_size;
  uint32_t parse_special; /* switch, as of llm_request */
  /* Exactly one of the three, as of llm_request. The prompts that begin with it are those whose
   * token ids do: end a text where a word ends, and give a chat "add_generation_prompt": false. */
  llm_string text;
  llm_string chat;
  const int32_t* prompt_ids;
  size_t num_prompt_ids;
  llm_string cache_salt;    /* only requests of an equal salt find it */
  int32_t priority;         /* as of llm_request, like the next two */
  uint32_t literal_content; /* a prefix is found by requests that agree in it */
  uint64_t adapter_id;      /* reserved */
} llm_prefix;

static inline void llm_prefix_init(llm_prefix* prefix) {
  memset(prefix, 0, sizeof(*prefix));
  prefix->struct_size = (uint32_t)sizeof(*prefix);
}

/* Computes the prefix where it is not cached, among the engine's other requests, and holds its
 * whole blocks against eviction until llm_prefix_unpin or the close of the engine, also through
 * llm_cache_flush. Waits for it as llm_score does, with its errors. Pins may take what a request of
 * max_context_tokens leaves of kv_tokens, so that none ever waits for them; shared blocks count
 * once. LLM_RESOURCE_EXHAUSTED: beyond that, or 1024 pins; LLM_INVALID_ARGUMENT: among others a
 * prefix shorter than a block; LLM_FAILED_PRECONDITION: an engine without prefix cache. */
LLM_API llm_status llm_prefix_pin(llm_engine* engine, const llm_prefix* prefix, llm_pin_id* id);
/* Its blocks are cached ones from the next step on. Never waits. LLM_NOT_FOUND: no such pin;
 * LLM_FAILED_PRECONDITION after shutdown. */
LLM_API llm_status llm_prefix_unpin(llm_engine* engine, llm_pin_id id);

/* Computes the prefix where it is not cached, as llm_prefix_pin does and with its errors, and
 * writes the keys and values of its whole blocks to a file, which appears at `path` whole or not at
 * all. They are held and copied, a slice between two steps, so that nobody else waits for them,
 * into memory that max_memory_bytes counts. The file tells who reads it what the prefix says: only
 * its owner may (mode 0600). LLM_INVALID_ARGUMENT: something else than a file stands at `path`. */
LLM_API llm_status llm_prefix_save(llm_engine* engine, const llm_prefix* prefix, const char* path,
                                   size_t path_size);
/* Makes a saved prefix findable as if it had just been computed, for requests of that salt (NULL:
 * none): its blocks are cached ones or, where `pin` is not NULL, held as llm_prefix_pin holds them.
 * Answers are those of recomputation to the bit; whoever can write the file can change them.
 * *num_tokens (may be NULL): how many it holds. LLM_FAILED_PRECONDITION, naming it: the file is of
 * another model, other kernels or activations, another kv_dtype, block_size or format version, or
 * the engine has no prefix cache; LLM_DATA_LOSS: it is cut or damaged; LLM_INVALID_ARGUMENT: no
 * saved prefix, or a malformed one; LLM_RESOURCE_EXHAUSTED: running requests leave no room for it,
 * or need it before all is copied, which is done a slice between two steps. */
LLM_API llm_status llm_prefix_load(llm_engine* engine, const char* path, size_t path_size,
                                   const llm_string* cache_salt, size_t* num_tokens,
                                   llm_pin_id* pin);

/* ---- Embeddings ---- */

#define LLM_POOLING_MEAN 1 /* of all tokens, bos included */
#define LLM_POOLING_LAST 2 /* the last token's */

typedef struct llm_embed_request {
  uint32_t struct_size;
  uint32_t parse_special; /* switch, default off: control tokens in `text` become ids */
  /* Exactly one of the two. */
  llm_string text;    /* tokenized with the bos and eos that the model asks for */
  const int32_t* ids; /* taken as they are */
  size_t num_ids;
  uint32_t pooling; /* LLM_POOLING_*; default mean: files do not say which they were trained for */
  uint32_t normalize; /* switch, default on: to length 1, so that a dot product is the cosine */
  int32_t priority;   /* as of llm_request */
  uint32_t reserved;
} llm_embed_request;

static inline void llm_embed_request_init(llm_embed_request* request) {
  memset(request, 0, sizeof(*request));
  request->struct_size = (uint32_t)sizeof(*request);
}

/* Computes the hidden states of a text (of the last layer, after the final norm), pools them into
 * one vector, and waits for it, as llm_score does and with its errors. Every model that opens
 * serves it. *count is hidden_size of llm_model_info, of which min(*count, capacity) are written;
 * `values` may be NULL with capacity 0. */
LLM_API llm_status llm_embed(llm_engine* engine, const llm_embed_request* request, float* values,
                             size_t capacity, size_t* count);

/* ---- Counters ---- */

typedef struct llm_metrics_snapshot {
  uint32_t struct_size;
  uint32_t healthy; /* 0 after an internal fault: every call then says why */
  uint64_t steps_total;
  uint64_t failed_steps_total;
  uint64_t scheduled_tokens_total;
  uint64_t computed_tokens_total; /* prompt tokens computed, recomputation included */
  uint64_t cached_tokens_total;
  uint64_t queried_tokens_total; /* prompt tokens looked up in the prefix cache */
  uint64_t generated_tokens_total;
  uint64_t recomputed_tokens_total;
  uint64_t rehit_tokens_total; /* found in the cache again by preempted requests */
  uint64_t preemptions_total;
  uint64_t evicted_blocks_total;
  uint64_t submitted_requests_total;
  uint64_t finished_requests_total; /* cancelled, deadline, failed, stopped and length are parts of
                                       it; choices end as one request */
  uint64_t cancelled_requests_total;
  uint64_t deadline_requests_total;
  uint64_t rejected_requests_total; /* refused at submit: not in finished */
  uint64_t failed_requests_total;
  uint64_t queue_ns_total; /* of requests that ended, as in their stats */
  uint64_t ttft_ns_total;  /* of requests that got a token */
  uint64_t ttft_requests_total;
  uint64_t step_ns_total;
  uint64_t callback_ns_total;
  uint64_t running_current;
  uint64_t waiting_current;
  uint64_t total_blocks_current;
  uint64_t free_blocks_current;
  uint64_t held_blocks_current;
  uint64_t cached_blocks_current;
  uint64_t kv_bytes_current;
  uint64_t
      memory_bytes_current; /* counted by the engine's allocator: KV, workspace, event buffers */
  uint64_t busy_ns_total;   /* the engine at work: the sum of the next six, which are the parts of a
                               step */
  uint64_t admit_ns_total;
  uint64_t schedule_ns_total;
  uint64_t forward_ns_total;
  uint64_t sample_ns_total;
  uint64_t commit_ns_total;
  uint64_t deliver_ns_total;
  uint64_t prompt_tokens_total;    /* of requests that got a token */
  uint64_t stopped_requests_total; /* finished by an end token, a stop token or a stop string */
  uint64_t length_requests_total;  /* finished by their length */
  uint64_t rejected_full_requests_total; /* LLM_RESOURCE_EXHAUSTED; the next two are the rest of the
                                            rejected */
  uint64_t rejected_invalid_requests_total; /* LLM_INVALID_ARGUMENT */
  uint64_t rejected_other_requests_total;
  uint64_t deadline_queue_requests_total;   /* deadlines that passed before the first step; with the
                                               next two, all */
  uint64_t deadline_prefill_requests_total; /* before the first token */
  uint64_t deadline_decode_requests_total;
  uint64_t request_prefill_ns_total; /* these four as queue_ns_total */
  uint64_t request_stall_ns_total;
  uint64_t request_decode_ns_total;
  uint64_t request_deliver_ns_total;
  uint64_t weight_bytes_read_total; /* predicted by arithmetic, failed steps included: each weight
                                       once a step */
  uint64_t kv_bytes_read_total;     /* likewise: for each chunk, the keys and values it sees once */
  uint64_t kv_bytes_written_total; /* activations, which stay in caches, are in none of the three */
  uint64_t memory_bandwidth_current; /* bytes per second that the engine's threads read weights at,
                                        measured at open in some 2 ms; 0: under 16 MiB of weights */
  uint64_t engine_open_ns;           /* what llm_engine_open took */
  uint64_t calibrate_ns;             /* always 0: steps tell what they cost while they serve */
  uint64_t pinned_blocks_current;    /* of llm_prefix_pin; part of held_blocks_current */
  /* What a step is predicted to take: the sum of these five, each times its number, fitted to past
   * steps. Since ABI 1.1. */
  uint64_t cost_fixed_ns_current;
  uint64_t cost_decode_row_ns_current; /* a sequence that decodes, or a chunk of one token */
  uint64_t cost_prefill_token_ns_current;
  uint64_t cost_decode_key_ps_current;   /* a key that a decode sees, average over the layers */
  uint64_t cost_prefill_pair_ps_current; /* a key that a token of a prefill sees, likewise */
  /* Of |predicted - taken| / taken over the last 128 steps, in millionths. */
  uint64_t cost_error_p50_ppm_current;
  uint64_t cost_error_p95_ppm_current;
  /* Requests that ended, not by a cancel, and had stated a target, and those of them that met it: a
   * gap target, with no gap above 1.25 times it. */
  uint64_t first_token_target_requests_total;
  uint64_t first_token_met_requests_total;
  uint64_t token_gap_target_requests_total;
  uint64_t token_gap_met_requests_total;
  uint64_t completion_target_requests_total;
  uint64_t completion_met_requests_total;
  uint64_t good_requests_total; /* ended by themselves and met every target that they had stated */
  uint64_t good_tokens_total;   /* generated by those */
  uint64_t rejected_late_requests_total; /* LLM_DEADLINE_EXCEEDED; part of rejected_other */
  uint64_t hopeless_requests_total; /* ended in the queue before a deadline that they could not meet
                                       any more; part of deadline_queue */
  uint64_t clock_ns_current;        /* the engine's clock */
  /* Of spill_folder; all 0 without one. */
  uint64_t spilled_blocks_total;
  uint64_t returned_blocks_total;
  uint64_t spill_written_bytes_total;
  uint64_t spill_read_bytes_total;
  uint64_t spill_failed_blocks_total; /* damaged or unreadable: computed again */
  uint64_t spilled_blocks_current;
  uint64_t graph_steps_total;    /* steps of decodes that a device got as one graph */
  uint64_t graph_failures_total; /* graphs that could not be made or launched: the next steps like
                                    theirs are launched op by op, with the same answers */
  uint64_t ahead_steps_total; /* steps that the GPU began before they were asked for (run_ahead) */
  uint64_t ahead_dropped_total;  /* begun so, and then not wanted: their requests had ended, or the
                                    step before had failed */
  uint64_t ahead_failures_total; /* that could not be begun, and were done when asked for */
} llm_metrics_snapshot;

static inline void llm_metrics_snapshot_init(llm_metrics_snapshot* metrics) {
  memset(metrics, 0, sizeof(*metrics));
  metrics->struct_size = (uint32_t)sizeof(*metrics);
}
/* One consistent copy, as of the end of the last step. */
LLM_API llm_status llm_metrics(const llm_engine* engine, llm_metrics_snapshot* metrics);

#define LLM_HISTOGRAM_STEP_TOKENS 0      /* of a step */
#define LLM_HISTOGRAM_STEP_SEQUENCES 1   /* the batch that a step achieved */
#define LLM_HISTOGRAM_QUEUE_TIME 2       /* ns; submit to first scheduled, of requests that ended */
#define LLM_HISTOGRAM_TTFT 3             /* ns; submit to first token */
#define LLM_HISTOGRAM_TOKEN_GAP 4        /* ns; between two tokens of a request, or of a choice */
#define LLM_HISTOGRAM_COMPLETION_TIME 5  /* ns; submit to end, whatever the reason */
#define LLM_HISTOGRAM_PREFILL_TIME 6     /* ns; first scheduled to first token */
#define LLM_HISTOGRAM_DECODE_TIME 7      /* ns; first token to end */
#define LLM_HISTOGRAM_PROMPT_TOKENS 8    /* of a request that ended */
#define LLM_HISTOGRAM_GENERATED_TOKENS 9 /* likewise */
#define LLM_HISTOGRAM_RETAINED_TOKENS                                                           \
  10 /* computed tokens that a running request left findable in the prefix cache when it ended, \
        was preempted or paused */
#define LLM_HISTOGRAM_VICTIM_TOKENS 11 /* computed tokens of a preempted request */

typedef struct llm_histogram {
  uint32_t struct_size;
  uint32_t num_buckets;  /* the last has no upper edge */
  const uint64_t* edges; /* [num_buckets - 1], rising, fixed, as long as the library is loaded */
  uint64_t count;        /* the sum of the buckets */
  uint64_t sum;          /* of the values */
  uint64_t buckets[64];  /* [num_buckets]; i holds values above edges[i - 1] and up to edges[i] */
} llm_histogram;

static inline void llm_histogram_init(llm_histogram* histogram) {
  memset(histogram, 0, sizeof(*histogram));
  histogram->struct_size = (uint32_t)sizeof(*histogram);
}
/* One histogram, LLM_HISTOGRAM_*, as of the end of the last step. LLM_INVALID_ARGUMENT: no such
 * one. */
LLM_API llm_status llm_metrics_histogram(const llm_engine* engine, uint32_t which,
                                         llm_histogram* histogram);
/* The same of the requests of one request_class; empty where none was seen. Of the first 32
 * classes; later ones count with the last of them. LLM_INVALID_ARGUMENT: `which` is not TTFT,
 * TOKEN_GAP or COMPLETION_TIME. */
LLM_API llm_status llm_metrics_class_histogram(const llm_engine* engine, uint32_t request_class,
                                               uint32_t which, llm_histogram* histogram);

/* Every counter and histogram as Prometheus text (version 0.0.4): vLLM's names where it has the
 * same, `inlay:` else; labels model_name and engine. *size is the whole size in bytes, of which
 * min(*size, capacity) are written, without a terminator. Numbers grow between calls: leave room,
 * and call again when *size > capacity. */
LLM_API llm_status llm_metrics_text(const llm_engine* engine, char* text, size_t capacity,
                                    size_t* size);

/* One step, as the engine's clock and its plan saw it. A chunk of one token behind the prompt is a
 * decode, any other a prefill, also when it recomputes. Contexts count keys: the chunk's own and
 * all before it. */
typedef struct llm_step_record {
  uint64_t index; /* from 0, without gaps but for those that were overwritten */
  int64_t begin_ns;
  int64_t end_ns;     /* before its FINISHED events left */
  int64_t forward_ns; /* in the model */
  int64_t host_ns;    /* the rest */
  uint32_t failed;    /* 1: it was rolled back, and what it computed does not count */
  uint32_t preemptions;
  uint32_t prefill_sequences;
  uint32_t decode_sequences; /* as many decode tokens */
  uint32_t prefill_tokens;
  uint32_t generated_tokens;
  uint64_t prefill_tokens_squared; /* sum of squares over the chunks, for a variance */
  uint64_t prefill_context_tokens;
  uint64_t decode_context_tokens;
  uint64_t decode_context_tokens_squared;
  uint32_t waiting_prefill_sequences; /* in no step, without a token yet */
  uint32_t waiting_decode_sequences;  /* preempted or paused, with tokens */
  uint64_t waiting_prefill_tokens;    /* known ones of those: to compute or to find in the cache */
  uint64_t waiting_decode_tokens;
  uint32_t free_blocks; /* these three at its end */
  uint32_t held_blocks;
  uint32_t cached_blocks;
  uint32_t reserved;
  uint64_t weight_bytes_read; /* as in llm_metrics_snapshot */
  uint64_t kv_bytes_read;
  uint64_t kv_bytes_written;
} llm_step_record;

#define LLM_RECORD_ENQUEUED 1 /* tokens: of the prompt */
#define LLM_RECORD_REJECTED 2 /* id 0; detail: the status of the submit */
#define LLM_RECORD_ADMITTED 3 /* scheduled for the first time; tokens: known */
#define LLM_RECORD_CACHED 4   /* tokens: found in the prefix cache when admitted or resumed */
#define LLM_RECORD_PREFILL_CHUNK \
  5                            /* tokens: computed by a step that held; detail: from which one on */
#define LLM_RECORD_TOKENS 6    /* tokens: generated */
#define LLM_RECORD_PREEMPTED 7 /* tokens: computed ones; detail: of these, left in the cache */
#define LLM_RECORD_PAUSED 8    /* likewise; for its slow reader */
#define LLM_RECORD_RESUMED 9   /* tokens: known */
#define LLM_RECORD_FINISHED 10 /* tokens: generated; detail: LLM_FINISH_* */
#define LLM_RECORD_STEP_FAILED 11 /* id 0; tokens: of the step; detail: its llm_status */

typedef struct llm_request_record {
  uint64_t index;  /* as of llm_step_record */
  int64_t time_ns; /* when it happened: records stand in the order in which they were made */
  llm_request_id id;
  uint32_t kind; /* LLM_RECORD_* */
  uint32_t tokens;
  int64_t detail; /* else 0 */
} llm_request_record;

/* Copies up to `capacity` records, of the last 2,048 steps, and moves *cursor behind them: begin
 * with 0 and pass it on. *cursor jumps over records that were overwritten since. Element i is
 * written at records + i * record_size bytes. Always on; never waits for the engine, nor it for a
 * reader; each reader has its own cursor. Nothing new: LLM_OK with *count 0. */
LLM_API llm_status llm_step_records_read(const llm_engine* engine, uint64_t* cursor,
                                         llm_step_record* records, size_t record_size,
                                         size_t capacity, size_t* count);
/* Likewise, of the last 8,192 events of requests. */
LLM_API llm_status llm_request_records_read(const llm_engine* engine, uint64_t* cursor,
                                            llm_request_record* records, size_t record_size,
                                            size_t capacity, size_t* count);

/* Records steps with their parts, ops on each worker, requests with their stages, submits and
 * callbacks, until llm_trace_stop or the close of the engine writes them to the file at `path`,
 * which is created or emptied now, as Chrome's trace format (JSON; Perfetto opens it). Requests
 * appear when they end, a choice on the track of its request's id + choice * 2^40. Holds up to
 * 128 Ki spans and 512 Ki ops (some 1,000 steps) in some 25 MB; later ones are counted in
 * otherData.dropped_spans.
 * LLM_FAILED_PRECONDITION: one is running; LLM_NOT_FOUND, LLM_PERMISSION_DENIED, ...: the path. */
LLM_API llm_status llm_trace_start(llm_engine* engine, const char* path, size_t path_size);
/* LLM_FAILED_PRECONDITION: none is running; LLM_DATA_LOSS: the file is incomplete (a full disk). */
LLM_API llm_status llm_trace_stop(llm_engine* engine);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* INLAY_LLM_H_ */
