"""How the tests of the tools run their program. Usage of each: X_test.py PROGRAM MODEL [other program ...]"""
import subprocess
import sys
import unittest

PROGRAM, MODEL = sys.argv[1:3]
OTHERS = sys.argv[3:]


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)


def run_well(*arguments):
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


class ToolTest(unittest.TestCase):
    def check_failure(self, arguments, code, message):
        done = run(*arguments)
        self.assertEqual(done.returncode, code, (arguments, done.stderr))
        self.assertIn(message, done.stderr, arguments)
        self.assertEqual(done.stdout, "")


def main():
    unittest.main(argv=sys.argv[:1])
