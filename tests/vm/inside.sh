#!/bin/bash
# inside.sh LAYOUT FILTER PROGRAM...: runs the test programs in the machine, as root or as the ordinary user. Reports are
# in /job/out.
export CAISSON_BIN=/job/bin/caisson CAISSON_PAYLOAD=/job/bin/payload CAISSON_WEAKENED=/job/bin/caisson-weakened
export CAISSON_SOURCE_DIR=/job TMPDIR=/job/tmp
# An emulated processor is about 20 times slower.
export CAISSON_TEST_SECONDS=1500 CAISSON_TEST_SLOWNESS=8
if [ -e /job/rung ]; then # run the suite in a weaker rung
  printf '#!/bin/sh\nexec sh /job/in_rung.sh %s /job/bin/without /job/bin/caisson "$@"\n' "$(cat /job/rung)" >/job/tmp/caisson
  chmod 755 /job/tmp/caisson
  export CAISSON_BIN=/job/tmp/caisson
fi
layout=$1 filter=$2
shift 2
cd /job/tmp || exit 125
uname -rm >/job/out/kernel
"$CAISSON_BIN" doctor >/job/out/doctor.txt 2>&1
"$CAISSON_BIN" run --json -- true >/job/out/run.json 2>/job/out/run.err
status=$?
if [ "$layout" = refusal ]; then # a kernel that is too old: the run must fail with an error that contains the fix
  python3 /job/refusal.py $status >/job/out/refusal.xml
  exit
fi
"$CAISSON_BIN" verify --junit /job/out/verify.xml >/job/out/verify.txt 2>&1
for program in "$@"; do
  pattern=$filter
  if [ "$program" = unit_tests ]; then pattern='Cgroup*'; fi
  "/job/bin/$program" --gtest_filter="$pattern" --gtest_output="xml:/job/out/$program.xml" </dev/null
  status=$?
  # A program that crashes writes no report: count that as one failure.
  if [ ! -e "/job/out/$program.xml" ]; then
    printf '<testsuites><testsuite name="%s"><testcase classname="%s" name="ends"><failure message="status %d"/></testcase></testsuite></testsuites>\n' \
      "$program" "$program" $status >"/job/out/$program.xml"
  fi
done
