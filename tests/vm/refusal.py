"""refusal.py STATUS: writes a JUnit report of whether caisson rejected this kernel correctly."""

import sys

status = int(sys.argv[1])
output = open("/job/out/run.json").read() + open("/job/out/run.err").read()
doctor = open("/job/out/doctor.txt").read()
checks = {
    "ExitsWith125": status == 125,
    "SaysWhichKernelItNeeds": "6.1 or newer" in output,
    "NothingRan": '"outcome":"setup_failed"' in output,
    "DoctorListsWhatIsMissing": "kernel" in doctor.lower() and "6.1" in doctor,
}
cases = "".join(
    f'<testcase name="{name}" classname="OldKernel">' + ("" if held else '<failure message="see run.json"/>') + "</testcase>"
    for name, held in checks.items()
)
print(f'<testsuites><testsuite name="OldKernel">{cases}</testsuite></testsuites>')
