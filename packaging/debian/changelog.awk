# Converts CHANGELOG.md to Debian's changelog format.
#   awk -v version=0.2.0 -v maintainer="NAME <ADDRESS>" -v today=YYYY-MM-DD -f changelog.awk CHANGELOG.md CHANGELOG.md
# The section "Unreleased" becomes `version`, unless a section of that version exists. To check that first, the file is
# read twice.
function add_item(   words, count, line, i) {
  if (item == "") return
  count = split(item, words, " ")
  line = "  *"
  for (i = 1; i <= count; i++) {
    if (length(line) + 1 + length(words[i]) > 79) {
      entry = entry line "\n"
      line = "   "
    }
    line = line " " words[i]
  }
  entry = entry line "\n"
  items++
  item = ""
}
function add_entry(   command, date) {
  add_item()
  if (items) {
    command = "date -u -R -d " day
    command | getline date
    close(command)
    printf "caisson (%s) unstable; urgency=medium\n%s\n -- %s  %s\n\n", name, entry, maintainer, date
  }
  entry = ""
  items = 0
}
FNR == NR { if ($1 == "##" && $2 == version) released = 1; next }
/^## / {
  add_entry()
  name = $2
  day = today
  if (match($0, /[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]/)) day = substr($0, RSTART, RLENGTH)
  if (name == "Unreleased") name = released ? "" : version
  next
}
name == "" { next }
/^### / { add_item(); entry = entry "\n  [ " substr($0, 5) " ]\n"; next }
/^- / { add_item(); item = substr($0, 3); next }
/^  / { item = item " " $0 }
END { add_entry() }
