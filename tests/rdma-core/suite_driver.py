# SPDX-License-Identifier: BSD-2-Clause
"""Runs tests of rdma-core's suite in this process and reports each on a descriptor of its own.

Usage: suite_driver.py REPORT_FD TESTS_FILE [suite options]; the working directory holds the suite.
Reports are lines of tab-separated words: 'test ID' once for each test when TESTS_FILE is empty,
otherwise 'start ID' and then 'ok ID', 'skip ID REASON' or 'FAIL ID REASON TRACE-LINE...' for each
test named.
"""

import importlib.machinery
import os
import sys
import traceback
import unittest

report_fd = int(sys.argv[1])
with open(sys.argv[2]) as names:
    wanted = names.read().split()
sys.argv[1:3] = []
sys.path.insert(0, os.getcwd())

from args_parser import parser

parser.parse_args()
suite = importlib.machinery.SourceFileLoader('tests', os.path.abspath('__init__.py')).load_module()


def report(*words):
    line = '\t'.join(' '.join(word.split()) for word in words)
    os.write(report_fd, (line + '\n').encode())


def identity(test):
    return test.id().removeprefix('tests.')


def last_line(error):
    return f'{error[0].__name__}: {error[1]}'


class Reporter(unittest.TestResult):
    def startTest(self, test):
        super().startTest(test)
        report('start', identity(test))

    def addSuccess(self, test):
        report('ok', identity(test))

    def addSkip(self, test, reason):
        report('skip', identity(test), reason)

    def addFailure(self, test, error):
        trace = traceback.format_exception(*error)
        report('FAIL', identity(test), last_line(error), *''.join(trace).splitlines())

    addError = addFailure


def flatten(tests):
    for test in tests:
        if isinstance(test, unittest.TestSuite):
            yield from flatten(test)
        else:
            yield test


tests = {identity(test): test for test in flatten(unittest.TestLoader().loadTestsFromModule(suite))}
if not wanted:
    for name in tests:
        report('test', name)
result = Reporter()
for name in wanted:
    tests[name].run(result)
    sys.stdout.flush()
