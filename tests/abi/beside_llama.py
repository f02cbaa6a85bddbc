"""Another inference library in the same process changes nothing of ours, nor we of it.

Usage: beside_llama.py LIBINLAY, with a GGUF file that both can run in INLAY_SMOLLM2. Needs the PyPI package llama-cpp-python (or its source folder in PYTHONPATH and its
built library in LLAMA_CPP_LIB_PATH); exits with 77, skipped, without either.
"""
import ctypes
import os
import sys

try:
    import llama_cpp
except ImportError as error:
    print(f"llama-cpp-python is not here: {error}")
    sys.exit(77)

PROMPT = "The capital of France is"
NUM_TOKENS = 24


class String(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_size_t)]


class Request(ctypes.Structure):  # as far as this test fills it; the library takes the rest as its defaults
    _fields_ = [("struct_size", ctypes.c_uint32), ("choices", ctypes.c_uint32), ("set", ctypes.c_uint64), ("text", String),
                ("chat", String), ("prompt_ids", ctypes.c_void_p), ("num_prompt_ids", ctypes.c_size_t),
                ("parse_special", ctypes.c_uint32), ("max_new_tokens", ctypes.c_uint32)]


class Event(ctypes.Structure):
    _fields_ = [("type", ctypes.c_uint32), ("choice", ctypes.c_uint32), ("id", ctypes.c_uint64),
                ("user_data", ctypes.c_void_p), ("text", String), ("token_ids", ctypes.POINTER(ctypes.c_int32)),
                ("num_tokens", ctypes.c_size_t), ("logprobs", ctypes.c_void_p), ("logprob_size", ctypes.c_uint32),
                ("logprobs_per_token", ctypes.c_uint32), ("finish_reason", ctypes.c_int32), ("status", ctypes.c_int32),
                ("message", String), ("stats", ctypes.c_void_p), ("stop_index", ctypes.c_int32),
                ("reserved", ctypes.c_int32)]


class Inlay:
    """A model and an engine through ctypes, without a shim."""

    def __init__(self, library, model_path):
        self.library = ctypes.CDLL(library)
        self.library.llm_last_error.restype = ctypes.c_char_p
        self.library.llm_engine_queue.restype = ctypes.c_void_p
        self.library.llm_engine_queue.argtypes = self.library.llm_engine_close.argtypes = [ctypes.c_void_p]
        self.library.llm_model_release.argtypes = [ctypes.c_void_p]
        self.library.llm_poll.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int64,
                                          ctypes.c_void_p]
        self.model, self.engine = ctypes.c_void_p(), ctypes.c_void_p()
        path = model_path.encode()
        self.check(self.library.llm_model_open(path, ctypes.c_size_t(len(path)), None, ctypes.byref(self.model)))
        self.check(self.library.llm_engine_open(self.model, None, ctypes.byref(self.engine)))

    def check(self, status):
        if status != 0:
            raise RuntimeError(f"status {status}: {self.library.llm_last_error().decode()}")

    def submit(self):
        request, request_id, prompt = Request(), ctypes.c_uint64(), PROMPT.encode()
        request.struct_size = ctypes.sizeof(Request)
        request.text = String(prompt, len(prompt))
        request.max_new_tokens = NUM_TOKENS
        self.check(self.library.llm_submit(self.engine, ctypes.byref(request), ctypes.byref(request_id)))

    def answer(self):
        queue, ids, event, count = self.library.llm_engine_queue(self.engine), [], Event(), ctypes.c_size_t()
        while True:
            self.check(self.library.llm_poll(queue, ctypes.byref(event), ctypes.sizeof(event), 1, -1, ctypes.byref(count)))
            if event.type == 3:  # LLM_EVENT_FINISHED
                return ids
            ids += event.token_ids[:event.num_tokens]

    def close(self):
        self.check(self.library.llm_engine_close(self.engine))
        self.library.llm_model_release(self.model)


def generate_theirs(model_path):
    llama = llama_cpp.Llama(model_path=model_path, n_ctx=256, n_threads=2, verbose=False)
    ids = llama.tokenize(PROMPT.encode())
    answer = []
    for token in llama.generate(ids, temp=0.0):
        answer.append(token)
        if len(answer) == NUM_TOKENS:
            break
    llama.close()
    return answer


def main():
    library, model_path = sys.argv[1], os.environ.get("INLAY_SMOLLM2")
    if not model_path:
        print("INLAY_SMOLLM2 names no model")
        sys.exit(77)
    theirs_alone = generate_theirs(model_path)
    ours = Inlay(library, model_path)
    ours.submit()
    ours_alone = ours.answer()
    ours.submit()  # our threads work while theirs do
    theirs_beside = generate_theirs(model_path)
    ours_beside = ours.answer()
    ours.close()
    assert len(ours_alone) > 0 and ours_beside == ours_alone, (ours_alone, ours_beside)
    assert len(theirs_alone) > 0 and theirs_beside == theirs_alone, (theirs_alone, theirs_beside)
    assert generate_theirs(model_path) == theirs_alone  # after ours has gone, too
    print(f"both libraries answer as they do alone: {len(ours_alone)} and {len(theirs_alone)} tokens")


if __name__ == "__main__":
    main()
