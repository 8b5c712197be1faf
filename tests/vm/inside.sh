#!/bin/bash
# Runs in the machine, as root or as the ordinary user: the suites, each with its report in /job/out.
export CAISSON_BIN=/job/bin/caisson CAISSON_PAYLOAD=/job/bin/payload CAISSON_SOURCE_DIR=/job TMPDIR=/job/tmp
cd /job/tmp || exit 125
uname -r >/job/out/kernel
"$CAISSON_BIN" doctor >/job/out/doctor.txt 2>&1
"$CAISSON_BIN" run --json -- true >/job/out/run.json 2>/job/out/run.err
status=$?
if [ "$1" = refusal ]; then # a kernel that is too old: the run is refused, says so, and names the remedy
  python3 /job/refusal.py $status >/job/out/refusal.xml
  exit
fi
"$CAISSON_BIN" verify --junit /job/out/verify.xml >/job/out/verify.txt 2>&1
/job/bin/unit_tests --gtest_filter='Cgroup*' --gtest_output=xml:/job/out/unit_tests.xml
/job/bin/functional_limits --gtest_filter="${2:-*}" --gtest_output=xml:/job/out/functional_limits.xml
