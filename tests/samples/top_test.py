#!/usr/bin/env python3
"""llm-top on counters of this library. Usage: top_test.py PROGRAM MODEL LLM_GENERATE 03_MANY"""
import contextlib
import os
import pathlib
import socket
import subprocess
import tempfile
import threading

from tool_util import MODEL, OTHERS, PROGRAM, ToolTest, main, run, run_well

COUNTERS = """# HELP inlay:healthy 0 after an internal fault.
# TYPE inlay:healthy gauge
inlay:healthy{model_name="a \\"model\\"",engine="0"} 1
vllm:num_requests_running{engine="0"} 3
vllm:generation_tokens_total{engine="0"} %d
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.1"} 5
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.2"} 10
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf"} 10
"""


class Host:
    """A socket that answers each connection with the next text."""

    def __init__(self, path, texts):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        self.thread = threading.Thread(target=self.answer, args=(texts,))
        self.thread.start()

    def answer(self, texts):
        for text in texts:
            connection, _ = self.listener.accept()
            with contextlib.suppress(BrokenPipeError):  # who only asks whether someone serves does not wait
                connection.sendall(text.encode())
            connection.close()

    def close(self):
        self.thread.join()
        self.listener.close()


class TopTest(ToolTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name) / "metrics"

    def tearDown(self):
        self.folder.cleanup()

    def test_shows_a_file_once(self):
        self.path.write_text(COUNTERS % 7)
        frame = run_well(self.path, "--once")
        self.assertIn('a "model"  healthy', frame)
        self.assertIn("running 3", frame)
        self.assertIn("generated 7  -", frame)
        self.assertRegex(frame, r"first token +100\.0 +180\.0 +198\.0 +10")
        self.assertNotIn("\x1b", frame)

    def test_rates_come_from_two_looks_at_a_socket(self):
        host = Host(str(self.path), [COUNTERS % 100, COUNTERS % 150, COUNTERS % 20])
        frames = run_well(self.path, "--count", "3", "--interval", "0.05").split("\n\n")
        host.close()
        self.assertIn("generated 100  -", frames[0])
        self.assertRegex(frames[1], r"generated 150  [0-9]+\.[0-9]/s")
        self.assertIn("generated 20  -", frames[2])  # another process took the socket over

    def test_reads_the_file_that_llm_generate_leaves(self):
        subprocess.run([OTHERS[0], "--model", MODEL, "--ids", "5,6,7", "--max-tokens", "9", "--ignore-eos",
                        "--metrics-file", self.path], check=True, capture_output=True)
        frame = run_well(self.path, "--once")
        self.assertIn("generated 9 ", frame)
        self.assertIn("done 1 (stop 0, length 1, abort 0, error 0)", frame)
        self.assertEqual(os.listdir(self.folder.name), ["metrics"])

    def test_the_socket_of_many_requests_goes_with_the_process(self):
        leftover = socket.socket(socket.AF_UNIX)
        leftover.bind(str(self.path))  # as a killed process leaves it
        leftover.close()
        subprocess.run([OTHERS[1], MODEL, "16", self.path], check=True, capture_output=True)
        self.assertFalse(self.path.exists())

    def test_a_socket_that_someone_serves_is_not_taken(self):
        host = Host(str(self.path), [COUNTERS % 1, COUNTERS % 1])
        done = subprocess.run([OTHERS[0], "--model", MODEL, "--ids", "5", "--max-tokens", "2", "--metrics-socket",
                               self.path], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("Address already in use", done.stderr)
        self.assertIn("healthy", run_well(self.path, "--once"))
        host.close()

    def test_answers_while_the_process_runs(self):
        host = subprocess.Popen([OTHERS[0], "--model", MODEL, "--stdin", "--max-tokens", "400", "--ignore-eos",
                                 "--metrics-socket", self.path], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
        try:
            frame = ""
            while "healthy" not in frame:  # until it has opened; it then waits for its prompt
                self.assertIsNone(host.poll())
                frame = run(self.path, "--once").stdout
        finally:
            host.communicate(b"The quick brown fox")
        self.assertEqual(host.returncode, 0)

    def test_waits_for_a_source_that_is_not_there_yet(self):
        self.assertIn("waiting: ", run_well(self.path, "--count", "2", "--interval", "0.01"))

    def test_mistakes_are_named(self):
        self.check_failure([], 2, "usage: llm-top")
        self.check_failure([self.path, "--interval", "0"], 2, "--interval")
        self.check_failure([self.path, "--once"], 1, "No such file")
        self.path.write_text("something else\n")
        self.check_failure([self.path, "--once"], 1, "no sample: something else")
        self.path.write_text("")
        self.check_failure([self.path, "--once"], 1, "no samples")

    def test_a_closed_pipe_ends_it(self):
        self.path.write_text(COUNTERS % 7)
        shell = subprocess.run(["sh", "-c", '"$0" "$1" --interval 0.01 | head -1', PROGRAM, str(self.path)],
                               capture_output=True, text=True, timeout=60)
        self.assertIn("llm-top", shell.stdout)


if __name__ == "__main__":
    main()
