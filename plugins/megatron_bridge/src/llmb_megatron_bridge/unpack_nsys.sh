# Install nsys with the downloaded installer. Set by profiler_download.sh: url, result, partial.
bash "$partial/download" --target "$partial/files" -- -noprompt -targetpath "$partial/nsys" </dev/null ||
  fail "the installer from $url failed with exit code $?"
[ -e "$partial/nsys/bin/nsys" ] || fail "the installer from $url installed no bin/nsys"
rm -rf "$result"
mv "$partial/nsys" "$result"
