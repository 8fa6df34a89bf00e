# Place the library in the downloaded archive. Set by profiler_download.sh: url, result, partial.
tar -xf "$partial/download" -C "$partial" || fail "the archive from $url cannot be extracted"
library=$(find "$partial" -name 'libcupti.so.*.*.*' -type f | head -n 1)
[ -n "$library" ] || fail "the archive from $url contains no libcupti.so"
mv -f "$library" "$result"
